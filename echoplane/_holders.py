"""What the ledger has of every key on which it is asked whose value something is."""

from __future__ import annotations

from sqlalchemy.ext.asyncio import AsyncConnection

from contracts.histories import Rectangle
from contracts.identity import SAME_AS
from contracts.resolutions import KeyResolution, Missing, Resolved, ResolvedSet
from contracts.times import MICROSECOND
from contracts.views import View
from ledger.log import TenantKeys
from ledger.resolve import (
    as_certain,
    erased_beside,
    erased_from,
    history,
    keys_of_relation,
    relations_of_tenant,
    resolve_many,
    timeline,
)
from realize import HolderKey, Holders


async def held_by(
    conn: AsyncConnection, keys: TenantKeys, view: View, holders: Holders
) -> tuple[list[HolderKey], bool, bool]:
    """
    Return the keys of the relations that are asked about, whether these are all, and if others were erased.

    Each has its answer at the view, if that is certain all through the time that is named. They are not all
    either where the tenant has more relations than are read: on one of those it may be asked as well.

    Raises:
        IntegrityFault: Something that was read is not what was written.
    """
    _, whole = await relations_of_tenant(conn, keys, view)
    if not whole:
        return [], False, False
    pairs: list[tuple[str, str]] = []
    erased = False
    for relation in (*holders.relations, *holders.beside):
        own, whole = await keys_of_relation(conn, keys, view, relation)
        if not whole:
            return [], False, False
        pairs += own
        entities = [entity for entity, _ in own]
        erased = erased or await erased_beside(conn, keys, view, relation, entities)
    names = list(dict.fromkeys(entity for entity, _ in pairs))
    wanted = [*pairs, *((name, SAME_AS) for name in names)]
    resolved = dict(zip(wanted, await resolve_many(conn, keys, view, wanted), strict=True))
    period = holders.period
    until = view.valid_at + MICROSECOND if period is None else period.end
    pieces: dict[tuple[str, str], tuple[Rectangle, ...]] = {}
    for pair in pairs:
        own_pieces = await _pieces(conn, keys, view, pair, holders)
        if own_pieces is None:
            return [], False, False
        pieces[pair] = own_pieces
    found = [
        HolderKey(
            resolution=await as_certain(conn, keys, resolved[pair], until=until),
            pieces=pieces[pair],
            erased=await erased_from(conn, keys, view, *pair) is not None,
            merged=not isinstance(resolved[pair[0], SAME_AS].resolution, Missing),
        )
        for pair in pairs
    ]
    return found, not await _is_one_with_others(conn, keys, view, found), erased


async def _pieces(
    conn: AsyncConnection, keys: TenantKeys, view: View, pair: tuple[str, str], holders: Holders
) -> tuple[Rectangle, ...] | None:
    """Return what is needed of a key through time; None where that is more than is read."""
    if holders.ever:
        known = await history(conn, keys, *pair, epoch=view.epoch, cut=view.cut)
        return None if known.truncated else known.rectangles
    period = holders.period
    if period is None:
        return ()
    within = await timeline(conn, keys, view, *pair, valid_from=period.start, valid_to=period.end)
    return None if within.truncated else within.rectangles


async def _is_one_with_others(
    conn: AsyncConnection, keys: TenantKeys, view: View, found: list[HolderKey]
) -> bool:
    """Say whether a value that stands has other names, under which it may stand elsewhere as well."""
    told = (claim.value for key in found for piece in key.pieces for claim in piece.claims)
    texts = (value for key in found for value in _texts(key.resolution))
    values = sorted({*texts, *(value for value in told if isinstance(value, str))})
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
