"""The JSON of the log as others can check it: checkpoints, commits and proofs. Hashes are hex."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from contracts import limits
from contracts._wire import Wire

Hash = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
Size = Annotated[int, Field(ge=0, le=2**53 - 1)]
Path = Annotated[list[Hash], Field(max_length=limits.PROOF_HASHES_MAX)]
Note = Annotated[str, Field(max_length=limits.NAME_BYTES_MAX)]


class CheckpointAnswer(Wire):
    """How a log stands: the root over so many commits, `note` says the same, signed; `key` checks it."""

    tenant: str
    size: Size
    root: Hash
    note: Note
    key: str


class CommitAnswer(Wire):
    """One commit: all that its hash covers, and the hash."""

    commit: Size
    recorded_at: str
    first_position: Size
    event_hashes: list[Hash] = Field(max_length=limits.APPEND_EVENTS_MAX)
    previous_hash: Hash
    commit_hash: Hash


class CommitsAnswer(Wire):
    """Commits in order; none are left where there are none."""

    tenant: str
    commits: list[CommitAnswer]


class InclusionAnswer(Wire):
    """A commit, and what proves that it is in the log of `size` commits, from leaf to root."""

    kind: Literal["inclusion"]
    tenant: str
    size: Size
    commit: CommitAnswer
    path: Path


class ConsistencyAnswer(Wire):
    """What proves that the log that `note` is a checkpoint of begins with the first `size` commits."""

    kind: Literal["consistency"]
    tenant: str
    size: Size
    note: Note
    path: Path


class CheckedAnswer(Wire):
    """
    What was held against a checkpoint, without a database; `ok` is false with at least one problem.

    `pinned` says that the key was given, and not taken from the file that it signs. `commits` and
    `proofs` were checked; none of either is a checkpoint alone.
    """

    tenant: str | None
    ok: bool
    size: int | None
    root: str | None
    key: str
    pinned: bool
    commits: int
    events: int
    proofs: int
    problems: list[str]
    problems_count: int
