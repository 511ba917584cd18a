"""The tree of RFC 6962: its published values, every proof up to a size, and no proof that was changed."""

from __future__ import annotations

from itertools import combinations

import pytest

from ledger._tree import (
    EMPTY_ROOT,
    Frontier,
    Node,
    consistency_path,
    inclusion_path,
    is_consistent,
    is_included,
    leaf_hash,
    node_hash,
    nodes_wanted,
    root_of,
)

# The leaves and roots that implementations of certificate transparency are tested with.
PUBLISHED_LEAVES = [
    bytes.fromhex(leaf)
    for leaf in ("", "00", "10", "2021", "3031", "40414243", "5051525354555657",
                 "606162636465666768696a6b6c6d6e6f")
]  # fmt: skip
PUBLISHED_ROOTS = [
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
]
LEAVES = [bytes([number + 1]) * 32 for number in range(33)]


def nodes_of(leaves):
    tree = Frontier()
    return {number: Node(hash=leaf, tree=tree.add(leaf)) for number, leaf in enumerate(leaves, start=1)}


def defined_root(leaves):
    """MTH as section 2.1 defines it."""
    if not leaves:
        return EMPTY_ROOT
    if len(leaves) == 1:
        return leaf_hash(leaves[0])
    half = 1
    while half * 2 < len(leaves):
        half *= 2
    return node_hash(defined_root(leaves[:half]), defined_root(leaves[half:]))


NODES = nodes_of(LEAVES)
ROOTS = [defined_root(LEAVES[:size]) for size in range(len(LEAVES) + 1)]


def test_the_published_roots_are_ours():
    tree = Frontier()
    grown = []
    for leaf in PUBLISHED_LEAVES:
        tree.add(leaf)
        grown.append(tree.root().hex())
    nodes = nodes_of(PUBLISHED_LEAVES)

    assert grown == PUBLISHED_ROOTS
    assert [root_of(nodes.__getitem__, size).hex() for size in range(1, 9)] == PUBLISHED_ROOTS


def test_every_root_is_as_defined():
    assert [root_of(NODES.__getitem__, size) for size in range(len(LEAVES) + 1)] == ROOTS


def test_every_inclusion_is_proved_and_no_other():
    for size in range(1, len(LEAVES) + 1):
        for commit in range(1, size + 1):
            path = inclusion_path(NODES.__getitem__, commit, size)
            given = {"commit_hash": LEAVES[commit - 1], "commit": commit, "size": size, "root": ROOTS[size]}

            assert is_included(path, **given)
            # The size is no part of the path: it is signed, with the root.
            for other in {"commit": commit + 1, "root": ROOTS[size - 1], "commit_hash": bytes(32)}.items():
                assert not is_included(path, **given | dict([other])), (size, commit, other)


def test_every_consistency_is_proved_and_no_other():
    for old, new in [*combinations(range(len(LEAVES) + 1), 2), (0, 0), (7, 7)]:
        path = consistency_path(NODES.__getitem__, old, new)
        given = {"old": old, "old_root": ROOTS[old], "new": new, "new_root": ROOTS[new]}

        assert is_consistent(path, **given), (old, new)
        if old in {0, new}:
            assert path == []
            continue
        for other in {
            "old": old + 1,
            "old_root": ROOTS[old - 1],
            "new": old,
            "new_root": ROOTS[new - 1],
        }.items():
            assert not is_consistent(path, **given | dict([other])), (old, new, other)


def test_an_old_log_that_was_not_empty_is_not_proved_by_nothing():
    assert not is_consistent([], old=0, old_root=ROOTS[1], new=5, new_root=ROOTS[5])
    assert not is_consistent([], old=3, old_root=ROOTS[3], new=5, new_root=ROOTS[5])
    assert not is_consistent([], old=3, old_root=ROOTS[3], new=3, new_root=ROOTS[4])
    assert not is_included([], commit_hash=LEAVES[0], commit=1, size=0, root=ROOTS[1])


def mutants_of(path):
    """Every byte changed; every element dropped, doubled and moved; one more at either end."""
    for index, element in enumerate(path):
        for place in range(len(element)):
            changed = bytearray(element)
            changed[place] ^= 1 << place % 8
            yield [*path[:index], bytes(changed), *path[index + 1 :]]
        yield [*path[:index], *path[index + 1 :]]
        yield [*path[: index + 1], element, *path[index + 1 :]]
        yield [*path[:index], element[:-1], *path[index + 1 :]]
        if index:
            yield [*path[: index - 1], element, path[index - 1], *path[index + 1 :]]
    yield [*path, bytes(32)]
    yield [bytes(32), *path]


@pytest.mark.parametrize(("commit", "size"), [(1, 1), (1, 2), (5, 7), (7, 7), (8, 8), (12, 33), (33, 33)])
def test_no_mutant_of_an_inclusion_proof_passes(commit, size):
    path = inclusion_path(NODES.__getitem__, commit, size)

    passed = [
        mutant
        for mutant in mutants_of(path)
        if is_included(mutant, commit_hash=LEAVES[commit - 1], commit=commit, size=size, root=ROOTS[size])
    ]
    assert passed == []


@pytest.mark.parametrize(("old", "new"), [(0, 5), (1, 2), (3, 7), (4, 7), (6, 8), (16, 33), (29, 33), (5, 5)])
def test_no_mutant_of_a_consistency_proof_passes(old, new):
    path = consistency_path(NODES.__getitem__, old, new)

    passed = [
        mutant
        for mutant in mutants_of(path)
        if is_consistent(mutant, old=old, old_root=ROOTS[old], new=new, new_root=ROOTS[new])
    ]
    assert passed == []


def test_of_a_million_commits_a_proof_reads_few():
    size = 999_999
    wanted = [
        nodes_wanted(lambda node_of: root_of(node_of, size)),
        nodes_wanted(lambda node_of: inclusion_path(node_of, 524_288, size)),
        nodes_wanted(lambda node_of: consistency_path(node_of, 777_777, size)),
    ]

    # Its height, and for each node on the way at most as many again.
    assert [len(one) <= 20 * 21 // 2 for one in wanted] == [True] * 3
