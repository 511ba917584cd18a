"""Evidence, closures and context packs: what the packer chooses from and what it builds."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class Mark(StrEnum):
    """How the ledger stands to what an event said, at the view."""

    ACTIVE = "active"
    SUPERSEDED = "superseded"
    WITHDRAWN = "withdrawn"
    DISPUTED = "disputed"
    PLAIN = "plain"
    """The event carries no claim that the ledger judged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """
    One event as a line of evidence, read anew from the ledger.

    `text_digest` and `claim_digests` are keyed with the event's data key (hex), so that a hash
    over them cannot be used to guess an erased text. `marked_commit` is the commit from which the
    mark holds, None where it always did. `offset_minutes` is the source's own offset.
    """

    event_id: str
    position: int
    stream: str
    actor_id: str
    actor_class: str
    observed_at: datetime
    offset_minutes: int
    recorded_at: datetime
    text: str
    text_digest: str
    claim_digests: tuple[str, ...]
    mark: Mark
    marked_commit: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Closure:
    """
    A unit with everything needed to verify it: admitted whole or deferred whole.

    `members` are event ids. `required` closures belong to the answer itself (the active state and
    what excludes the older one; all members of a count): if one is deferred, the answer abstains.
    """

    closure_id: str
    members: tuple[str, ...]
    utility_ppm: int
    required: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosureSet:
    """All closures of one question, and the evidence they share, by event id."""

    closures: tuple[Closure, ...]
    evidence: tuple[Evidence, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SealedClaim:
    """
    A claim as a hash may hold it: where it stands, and a digest keyed with its event's data key.

    `role` is `carries`, `superseded`, `withdrawn`, `rival`, `dispute` or `unplaced`; `group`
    counts from 0 the member, rival or dispute of the key that it belongs to. There is no claim id
    in it: that changes with the epoch, and equal evidence must stay equal.
    """

    role: str
    group: int
    event_id: str
    ordinal: int
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SealedResolution:
    """
    A key's answer as a hash may hold it: no name, no value, no text, only keyed digests.

    `key_digest` and `contract_digest` are keyed with the tenant's digest key, each of `values`
    with the data key of an event that carries it. `outcome` is `resolved`, `set`, `missing` or
    `conflict`; `reasons` are the resolver's stable words.
    """

    key_digest: str
    contract_digest: str
    outcome: str
    reasons: tuple[str, ...]
    values: tuple[str, ...]
    claims: tuple[SealedClaim, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One rendered line. `line_id` (such as `e12`: `e` and the position) is what an answer cites."""

    line_id: str
    event_id: str
    rendered: str
    text: str
    observed_at: str
    mark: Mark
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Deferred:
    """A closure that did not fit, whole, and what it would have cost."""

    closure_id: str
    cost_tokens: int
    cost_bytes: int
    required: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextPack:
    """
    A context is a value: same inputs, same bytes, same hashes (SHA-256, hex).

    `content_hash` covers rendered lines and resolutions; `context_hash` covers those with
    question, plan, budget, view, candidates, admitted and deferred. `form` is the canonical JSON
    (RFC 8785) that `context_hash` is the digest of: it holds keyed digests where a reader sees
    text. `tokens` is what `counter` says of the rendered lines and their line ends, `bytes_` what they
    take in UTF-8.
    """

    lines: tuple[Line, ...]
    admitted: tuple[str, ...]
    deferred: tuple[Deferred, ...]
    tokens: int
    budget_tokens: int
    bytes_: int
    budget_bytes: int | None
    counter: str
    content_hash: str
    context_hash: str
    form: bytes
