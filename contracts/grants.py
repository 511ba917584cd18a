"""Authority is granted, not claimed: what a token may do, and for whom it may speak."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Right(StrEnum):
    """What a token may do in its tenant."""

    EMIT = "emit"
    ASK = "ask"
    OPERATOR = "operator"
    ERASE = "erase"
    ADMIN = "admin"
    BACKFILL = "backfill"


DECISIONS = "decisions"
ERASURES = "erasures"
RELATIONS = "relations"
EPOCHS = "epochs"
RESERVED_STREAMS = frozenset({DECISIONS, ERASURES, RELATIONS, EPOCHS})
"""Where commands write what they decided: nobody else does without the right `operator`."""

ANY: str = "*"
"""In `actors` or `classes`: every one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """
    What one token grants. `tenant` None means every tenant (the local token only).

    The class `operator` needs the right `operator` as well as being listed in `classes`, or `*`.
    """

    tenant: str | None
    rights: frozenset[Right]
    actors: frozenset[str]
    classes: frozenset[str]


LOCAL_GRANT = Grant(tenant=None, rights=frozenset(Right), actors=frozenset({ANY}), classes=frozenset({ANY}))
"""What the person at this machine's own command line may do: everything."""
