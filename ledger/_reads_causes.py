"""
Which claims brought a change about: those of the commits at which it came, and of these the nearest.

Near are claims on the key itself and those that act on it from elsewhere; then claims on the keys that
its derived claims hang on; then claims about who is one with whom. Where none of these is in the
commit, all of the commit's claims are named: rather too many than none.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import sqlalchemy as sa

from contracts.claims import Claim
from contracts.limits import CLOSURE_EVENTS_MAX, DIFF_CAUSES_MAX
from ledger._aside import aside
from ledger._identity import identity_of
from ledger._identity_history import is_pair, keys_of_pair
from ledger._world import Key, Reader, with_merged

_At: TypeAlias = tuple[Key, int]
"""A key, and a commit at which it changed."""

_OF_COMMIT: Final = (
    "SELECT k.number, c.claim_id FROM unnest(CAST(:entities AS text[]), CAST(:relations AS text[]), "
    "CAST(:commits AS bigint[])) WITH ORDINALITY AS k(entity, relation, commit, number) "
    "CROSS JOIN LATERAL (SELECT m.first_position, m.first_position + m.event_count AS next FROM commit m "
    "WHERE m.tenant = :tenant AND m.commit = k.commit OFFSET 0) AS m CROSS JOIN LATERAL ("
)
_IN_COMMIT: Final = (
    "FROM claim c WHERE c.tenant = :tenant AND c.epoch = :epoch "
    "AND c.position >= m.first_position AND c.position < m.next "
)
_ON_KEY: Final = sa.text(
    _OF_COMMIT + "SELECT c.claim_id " + _IN_COMMIT + "AND c.entity = k.entity AND c.relation = k.relation "
    "LIMIT :limit) AS c"
)
_REACHING: Final = sa.text(
    _OF_COMMIT + "SELECT c.claim_id " + _IN_COMMIT + "AND EXISTS (SELECT FROM reach r "  # noqa: S608 — constants
    "WHERE r.tenant = :tenant AND r.epoch = :epoch AND r.entity = k.entity AND r.relation = k.relation "
    "AND r.claim_id = c.claim_id) LIMIT :limit) AS c"
)
_IDENTITY: Final = sa.text(
    _OF_COMMIT + "SELECT c.claim_id " + _IN_COMMIT + "AND c.relation IN ('same_as', 'not_same_as') "
    "LIMIT :limit) AS c"
)
_ANY: Final = sa.text(_OF_COMMIT + "SELECT c.claim_id " + _IN_COMMIT + "LIMIT :limit) AS c")


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """A key that changed, the commits at which it did, and the claims that stood or stand there."""

    key: Key
    commits: tuple[int, ...]
    claims: tuple[str, ...]


async def causes_of(
    reader: Reader, changes: Sequence[Changed], claims: Mapping[str, Claim]
) -> list[tuple[Claim, ...]]:
    """
    Return the claims that brought each change about, at most `DIFF_CAUSES_MAX`, the newest.

    Raises:
        IntegrityFault: A claim that was read is not what was written.
    """
    merges = identity_of(await reader.identity_claims(), await reader.contracts())
    found: dict[_At, set[str]] = defaultdict(set)
    open_: dict[_At, set[Key]] = {}
    stood: dict[_At, set[str]] = defaultdict(set)
    for change in changes:
        own = keys_of_pair(change.key) if is_pair(change.key) else {change.key}
        near = with_merged(own, merges) if change.commits else set()
        for commit in change.commits:
            open_[change.key, commit] = near
            stood[change.key, commit] |= set(change.claims)
    for statements in ((_ON_KEY, _REACHING), None, (_IDENTITY,), (_ANY,)):
        open_ = {at: near for at, near in open_.items() if not found[at]}
        if statements is None:
            derived = {at: [claims[name] for name in stood[at] if claims[name].inputs] for at in open_}
            open_ |= {at: await _input_keys(reader, own) for at, own in derived.items() if own}
            statements = (_ON_KEY, _REACHING)  # noqa: PLW2901 -- the same, of the keys further off
        for statement in statements:
            await _probe(reader, statement, open_, found)
    named = await reader.by_id(claim for ids in found.values() for claim in ids)
    return await aside(
        lambda: [_newest(named, found, change) for change in changes], items=len(named) + len(changes)
    )


async def _probe(
    reader: Reader, statement: sa.TextClause, wanted: Mapping[_At, Iterable[Key]], found: dict[_At, set[str]]
) -> None:
    probes = [(at, key) for at, keys in wanted.items() for key in sorted(keys)]
    if not probes:
        return
    parameters: dict[str, Any] = {
        "tenant": reader.keys.tenant,
        "epoch": reader.epoch,
        "entities": [key[0] for _, key in probes],
        "relations": [key[1] for _, key in probes],
        "commits": [commit for (_, commit), _ in probes],
        "limit": DIFF_CAUSES_MAX,
    }
    for row in await reader.conn.execute(statement, parameters):
        found[probes[row.number - 1][0]].add(bytes(row.claim_id).hex())


async def _input_keys(reader: Reader, derived: Iterable[Claim]) -> set[Key]:
    """Return the keys that derived claims hang on, however far back, of a bounded number of events."""
    waiting = {reference.event_id for claim in derived for reference in claim.inputs}
    seen: set[str] = set()
    keys: set[Key] = set()
    while waiting and len(seen) < CLOSURE_EVENTS_MAX:
        names = {name for name in waiting if name is not None}
        seen |= names
        claims = await reader.of_events(names)
        keys |= {(claim.entity, claim.relation) for claim in claims}
        waiting = {reference.event_id for claim in claims for reference in claim.inputs} - seen
    return keys


def _newest(
    named: Mapping[str, Claim], found: Mapping[_At, Iterable[str]], change: Changed
) -> tuple[Claim, ...]:
    own = {claim for commit in change.commits for claim in found.get((change.key, commit), ())}
    ordered = sorted((named[claim] for claim in own), key=lambda claim: claim.position)
    return tuple(ordered[-DIFF_CAUSES_MAX:])
