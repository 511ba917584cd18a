"""What the ledger has of every key on which it is asked whose value something is."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from sqlalchemy.ext.asyncio import AsyncConnection

from contracts.histories import Rectangle
from contracts.identity import SAME_AS
from contracts.resolutions import KeyResolution, Missing, Resolved, ResolvedSet
from contracts.views import View
from ledger.log import TenantKeys
from ledger.resolve import as_certain, erased_from, keys_of_relation, resolve_many, timeline
from realize import HolderKey, Holders

_INSTANT: Final = timedelta(microseconds=1)


async def held_by(
    conn: AsyncConnection, keys: TenantKeys, view: View, holders: Holders
) -> tuple[list[HolderKey], bool]:
    """
    Return the keys of the relations that are asked about, and whether these are all.

    Each has its answer at the view, if that is certain all through the time that is named.

    Raises:
        IntegrityFault: Something that was read is not what was written.
    """
    pairs: list[tuple[str, str]] = []
    for relation in holders.relations:
        own, whole = await keys_of_relation(conn, keys, view, relation)
        if not whole:
            return [], False
        pairs += own
    names = list(dict.fromkeys(entity for entity, _ in pairs))
    wanted = [*pairs, *((name, SAME_AS) for name in names)]
    resolved = dict(zip(wanted, await resolve_many(conn, keys, view, wanted), strict=True))
    period = holders.period
    until = view.valid_at + _INSTANT if period is None else period.end
    found = [
        HolderKey(
            resolution=await as_certain(conn, keys, resolved[pair], until=until),
            pieces=()
            if period is None
            else await _pieces(conn, keys, view, pair, start=period.start, end=period.end),
            erased=await erased_from(conn, keys, view, *pair) is not None,
            merged=not isinstance(resolved[pair[0], SAME_AS].resolution, Missing),
        )
        for pair in pairs
    ]
    return found, not await _is_one_with_others(conn, keys, view, found)


async def _pieces(
    conn: AsyncConnection,
    keys: TenantKeys,
    view: View,
    pair: tuple[str, str],
    *,
    start: datetime,
    end: datetime,
) -> tuple[Rectangle, ...]:
    return (await timeline(conn, keys, view, *pair, valid_from=start, valid_to=end)).rectangles


async def _is_one_with_others(
    conn: AsyncConnection, keys: TenantKeys, view: View, found: list[HolderKey]
) -> bool:
    """Say whether a value that stands has other names, under which it may stand elsewhere as well."""
    values = sorted({value for key in found for value in _texts(key.resolution)})
    merges = await resolve_many(conn, keys, view, [(value, SAME_AS) for value in values])
    return any(not isinstance(answer.resolution, Missing) for answer in merges)


def _texts(answer: KeyResolution) -> list[str]:
    match answer.resolution:
        case Resolved(value=str(value)):
            return [value]
        case ResolvedSet(members=members):
            return [member.value for member in members if isinstance(member.value, str)]
        case _:
            return []
