"""
A log's checkpoint and commits as lines that anyone can check who has the key: no database, no plane.

The first line names the checkpoint and the key; each further one is a commit, in order: all that the
checkpoint covers, or none. Every line is canonical JSON, so that there is nothing to vary in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from contracts.errors import BadRequest, EchoplaneError
from contracts.times import KnownAt, format_instant, parse_instant
from ledger._canonical import canonical, parse
from ledger._commits import Consistency, Inclusion, LoggedCommit
from ledger._hashes import ZERO_HASH
from ledger._notes import Checkpoint, PublicKey
from ledger._problems import Problems
from ledger._tree import Frontier, is_consistent, is_included

FORMAT: Final = "echoplane/log/1"
_HASH: Final = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedHead:
    """The first line: a signed note, and the key that it says it was signed with."""

    note: str
    key: str

    def line(self) -> bytes:
        """Return it as it is written."""
        return canonical({"checkpoint": self.note, "format": FORMAT, "key": self.key}) + b"\n"

    @classmethod
    def read(cls, line: bytes) -> ExportedHead:
        """
        Read the first line.

        Raises:
            BadRequest: It is none.
        """
        try:
            form = parse(line)
            found = cls(note=form["checkpoint"], key=form["key"])
            if found.line() == line:
                return found
        except (EchoplaneError, LookupError, TypeError):
            pass
        raise BadRequest(field="checkpoint", reason="its first line is none of `echoplane checkpoint`")


def commit_form(commit: LoggedCommit) -> dict[str, Any]:
    """Return a commit as JSON."""
    return {
        "commit": commit.commit,
        "recorded_at": format_instant(commit.recorded_at),
        "first_position": commit.first_position,
        "event_hashes": [one.hex() for one in commit.event_hashes],
        "previous_hash": commit.previous.hex(),
        "commit_hash": commit.hash.hex(),
    }


def commit_of(form: dict[str, Any]) -> LoggedCommit:
    """
    Return the commit of such a form.

    Raises:
        BadRequest: It is none.
    """
    try:
        found = LoggedCommit(
            commit=form["commit"],
            recorded_at=KnownAt(parse_instant(form["recorded_at"], field="recorded_at")),
            first_position=form["first_position"],
            event_hashes=tuple(_hash(one) for one in form["event_hashes"]),
            previous=_hash(form["previous_hash"]),
            hash=_hash(form["commit_hash"]),
        )
        # A number that is true is written as another; so is an instant in another zone.
        if canonical(commit_form(found)) == canonical(form):
            return found
    except (EchoplaneError, LookupError, TypeError, ValueError, AttributeError):
        pass
    raise BadRequest(field="commit", reason="not the form of a commit")


def commit_line(commit: LoggedCommit) -> bytes:
    """Return a commit as a line."""
    return canonical(commit_form(commit)) + b"\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportReport:
    """What an exported log comes to; without problems, every commit up to the checkpoint is as signed."""

    checkpoint: Checkpoint | None
    commits: int
    events: int
    problems: Problems

    @property
    def intact(self) -> bool:
        """Whether everything added up."""
        return self.problems.count == 0


def check_export(lines: Iterable[bytes], key: PublicKey | None) -> ExportReport:
    """
    Recompute an exported log: signature, each commit's hash, the chain, the tree, the root.

    Args:
        lines: Of the file, each with its end.
        key: The one that the holder trusts; else the one that the file names, which proves no more
            than that the file is whole.

    Raises:
        BadRequest: The file is no export, or names no key.
    """
    lines = iter(lines)
    head = ExportedHead.read(next(lines, b""))
    problems = Problems()
    checkpoint = open_note(head, key, problems)
    tenant = "" if checkpoint is None else checkpoint.tenant
    tree, position, last = Frontier(), 0, None
    for commit in _commits(lines, problems):
        place = f"commit {commit.commit}"
        for check in _problems_of(commit, tenant, last=last, number=tree.size + 1, position=position + 1):
            problems.add(check, place)
        tree.add(commit.hash)
        last, position = commit, position + len(commit.event_hashes)
    # A file without commits is a checkpoint alone: to be held against a log or a proof.
    if checkpoint is not None and (tree.size or not checkpoint.size):
        if tree.size != checkpoint.size:
            problems.add("checkpoint.size", f"commit {tree.size}")
        elif tree.root() != checkpoint.root:
            problems.add("checkpoint.root", f"commit {tree.size}")
    return ExportReport(checkpoint=checkpoint, commits=tree.size, events=position, problems=problems)


def open_note(head: ExportedHead, key: PublicKey | None, problems: Problems) -> Checkpoint | None:
    """Return the checkpoint of the first line, or note what is wrong with its signature."""
    if key is not None and head.key != str(key):
        problems.add("checkpoint.key", "key")
    checkpoint = (key or PublicKey.parse(head.key)).open(head.note)
    if checkpoint is None:
        problems.add("checkpoint.signature", "checkpoint")
    return checkpoint


def check_inclusion(proof: Inclusion, checkpoint: Checkpoint, problems: Problems) -> None:
    """Check that a commit is in the log that a checkpoint is of."""
    place = f"commit {proof.commit.commit}"
    if proof.size != checkpoint.size:
        problems.add("proof.size", place)
    if proof.commit.computed_hash(checkpoint.tenant) != proof.commit.hash:
        problems.add("commit.hash", place)
    if not is_included(
        proof.path,
        commit_hash=proof.commit.hash,
        commit=proof.commit.commit,
        size=proof.size,
        root=checkpoint.root,
    ):
        problems.add("proof.path", place)


def check_consistency(proof: Consistency, checkpoint: Checkpoint, problems: Problems) -> None:
    """Check that a later log begins as the one that a checkpoint is of."""
    place = f"commits {proof.size} to {proof.later.size}"
    if proof.later.tenant != checkpoint.tenant:
        problems.add("proof.tenant", place)
    if proof.size != checkpoint.size:
        problems.add("proof.size", place)
    if not is_consistent(
        proof.path,
        old=proof.size,
        old_root=checkpoint.root,
        new=proof.later.size,
        new_root=proof.later.root,
    ):
        problems.add("proof.path", place)


def _problems_of(
    commit: LoggedCommit, tenant: str, *, last: LoggedCommit | None, number: int, position: int
) -> Iterator[str]:
    if commit.commit != number:
        yield "commit.gap"
    if commit.first_position != position or not commit.event_hashes:
        yield "commit.position"
    if last is not None and commit.recorded_at <= last.recorded_at:
        yield "commit.clock"
    if commit.previous != (ZERO_HASH if last is None else last.hash):
        yield "commit.chain"
    if commit.computed_hash(tenant) != commit.hash:
        yield "commit.hash"


def _commits(lines: Iterable[bytes], problems: Problems) -> Iterator[LoggedCommit]:
    for number, line in enumerate(lines, start=2):
        try:
            commit = commit_of(parse(line))
        except EchoplaneError:
            problems.add("commit.form", f"line {number}")
            return
        if commit_line(commit) != line:
            problems.add("commit.form", f"line {number}")
        yield commit


def _hash(text: str) -> bytes:
    if not _HASH.fullmatch(text):
        raise ValueError("not a hash")
    return bytes.fromhex(text)
