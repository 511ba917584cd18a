"""
The Merkle tree over a tenant's commits, as RFC 6962 has it. Pure: hashes, proofs, and their checking.

A leaf is the hash of a commit; leaf 0 is commit 1. Stored is one node for each commit, that of the
largest whole subtree which ends there; all others are made of a few of these. What makes a proof and
what checks one share the two hashes and nothing else: the checks are those of RFC 9162.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

EMPTY_ROOT: Final = hashlib.sha256(b"").digest()
"""The root of a tree without leaves."""


@dataclass(frozen=True, slots=True)
class Node:
    """What is stored of a commit: its hash, and the root of the largest whole subtree that it ends."""

    hash: bytes
    tree: bytes


NodeOf: TypeAlias = Callable[[int], Node]
"""Returns what is stored of a commit, by its number."""


def leaf_hash(commit_hash: bytes) -> bytes:
    """Return the hash of a leaf; no node can have the same."""
    return hashlib.sha256(b"\x00" + commit_hash).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """Return the hash of two subtrees together."""
    return hashlib.sha256(b"\x01" + left + right).digest()


def nodes_wanted(make: Callable[[NodeOf], Any]) -> set[int]:
    """Return the commits of which `make` needs to know what is stored: a few times the tree's height."""
    wanted: set[int] = set()

    def note(commit: int) -> Node:
        wanted.add(commit)
        return Node(hash=b"", tree=b"")

    make(note)
    return wanted


# --- making -------------------------------------------------------------------------------------


def root_of(node_of: NodeOf, size: int) -> bytes:
    """Return the root over the first `size` commits."""
    return EMPTY_ROOT if size == 0 else _range(node_of, 0, size)


def inclusion_path(node_of: NodeOf, commit: int, size: int) -> list[bytes]:
    """Return what proves that a commit is in the tree over the first `size`, from leaf to root."""
    path, start, end = [], 0, size
    while end - start > 1:
        middle = start + _split(end - start)
        if commit <= middle:
            path.append(_range(node_of, middle, end))
            end = middle
        else:
            path.append(_range(node_of, start, middle))
            start = middle
    return path[::-1]


def consistency_path(node_of: NodeOf, old: int, new: int) -> list[bytes]:
    """Return what proves that the tree over the first `new` commits begins as that over the first `old`."""
    if old in {0, new}:
        return []
    path, start, end = [], 0, new
    while old != end:
        middle = start + _split(end - start)
        if old <= middle:
            path.append(_range(node_of, middle, end))
            end = middle
        else:
            path.append(_range(node_of, start, middle))
            start = middle
    # Where nothing was cut off on the left, this is the old root itself, which its holder has.
    if start:
        path.append(_range(node_of, start, end))
    return path[::-1]


def _range(node_of: NodeOf, start: int, end: int) -> bytes:
    """Return the root over commits `start + 1` to `end`."""
    size = end - start
    if size & (size - 1) == 0:
        return _whole(node_of, size, end)
    middle = start + _split(size)
    return node_hash(_range(node_of, start, middle), _range(node_of, middle, end))


def _whole(node_of: NodeOf, size: int, end: int) -> bytes:
    """Return the root of the whole subtree of a size that ends with a commit."""
    if end & size:
        return node_of(end).tree
    # A larger subtree ends there too, and is what is stored: put this one together from the leaf up.
    found, step = leaf_hash(node_of(end).hash), 1
    while step < size:
        found = node_hash(node_of(end - step).tree, found)
        step *= 2
    return found


def _split(size: int) -> int:
    """Return the largest power of two below a size."""
    return 1 << ((size - 1).bit_length() - 1)


# --- checking -----------------------------------------------------------------------------------


@dataclass(slots=True)
class Frontier:
    """A tree that grows leaf by leaf: the roots of its whole subtrees, largest first."""

    size: int = 0
    roots: list[bytes] = field(default_factory=list)

    def add(self, commit_hash: bytes) -> bytes:
        """Take in the next leaf, and return the root of the largest whole subtree that it ends."""
        self.size += 1
        found, rest = leaf_hash(commit_hash), self.size
        while rest & 1 == 0:
            found, rest = node_hash(self.roots.pop(), found), rest >> 1
        self.roots.append(found)
        return found

    def root(self) -> bytes:
        """Return the root over all leaves."""
        *others, found = self.roots or [EMPTY_ROOT]
        for left in reversed(others):
            found = node_hash(left, found)
        return found


def is_included(path: Sequence[bytes], *, commit_hash: bytes, commit: int, size: int, root: bytes) -> bool:
    """Return whether a path proves that a commit with this hash is in a tree (RFC 9162, 2.1.3.2)."""
    if not 1 <= commit <= size:
        return False
    place, last, found = commit - 1, size - 1, leaf_hash(commit_hash)
    for sibling in path:
        if last == 0:
            return False
        if place & 1 or place == last:
            found = node_hash(sibling, found)
            while not place & 1 and place:
                place, last = place >> 1, last >> 1
        else:
            found = node_hash(found, sibling)
        place, last = place >> 1, last >> 1
    return last == 0 and hmac.compare_digest(found, root)


def is_consistent(path: Sequence[bytes], *, old: int, old_root: bytes, new: int, new_root: bytes) -> bool:
    """Return whether a path proves that one tree begins as another one (RFC 9162, 2.1.4.2)."""
    if old == 0:
        return not path and hmac.compare_digest(old_root, EMPTY_ROOT) and new >= 0
    if old == new:
        return not path and hmac.compare_digest(old_root, new_root)
    if old > new or not path:
        return False
    # The holder of an old tree that is whole has its root already.
    nodes = iter([old_root, *path] if old & (old - 1) == 0 else path)
    place, last = old - 1, new - 1
    while place & 1:
        place, last = place >> 1, last >> 1
    found_old = found_new = next(nodes)
    for sibling in nodes:
        if last == 0:
            return False
        if place & 1 or place == last:
            found_old, found_new = node_hash(sibling, found_old), node_hash(sibling, found_new)
            while not place & 1 and place:
                place, last = place >> 1, last >> 1
        else:
            found_new = node_hash(found_new, sibling)
        place, last = place >> 1, last >> 1
    both = hmac.compare_digest(found_old, old_root) and hmac.compare_digest(found_new, new_root)
    return last == 0 and both
