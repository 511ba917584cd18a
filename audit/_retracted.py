"""What would change if an event were retracted: supposed, looked at, and undone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from audit._differences import answer_words, differences, key_differences
from contracts.errors import EchoplaneError
from contracts.events import ErasedEvent, EventDraft
from contracts.limits import FOLD_EVENTS_MAX, SUPPOSED_TRAILS_MAX
from contracts.ports import Projector, QueryPath
from contracts.resolutions import KeyResolution
from contracts.trails import AnswerChange, Rebuilt, Retraction, Trail, TrailsWanted
from contracts.views import View, ViewRequest
from ledger.log import Database, TrailHeader, list_trails, read_events_by_id, read_trail, tenant_keys
from ledger.resolve import pin, resolve_many
from ledger.write import fold, keys_of_event, supposing

_NEWEST = ViewRequest(valid_at=None, known_at=None, generation=None, min_commit=None)
_OPERATOR = {"id": "audit", "class": "operator"}


async def if_retracted(
    path_on: Callable[[Database], QueryPath],
    db: Database,
    tenant: str,
    projector: Projector,
    event_id: str,
    *,
    after_number: int,
    wait_ms: int,
) -> Retraction:
    """
    Say what an operator's retraction of an event would change now; nothing is written.

    Of the answers that used it, the first `SUPPOSED_TRAILS_MAX` after `after_number` are asked again:
    at the instant they were asked for, as known now, with and without the event. For as long as that
    takes, the tenant's appends wait.

    Args:
        path_on: Returns the query path over a database: it is asked over the one that is supposed.

    Raises:
        NotFound: No such tenant or event.
        NotYet: What is in the log is not folded within the wait.
        Poisoned: Nor will it be.
        IntegrityFault: Something read does not match what covers it.
    """
    # What cannot be had is found, and what is not folded yet waited for, before others have to wait.
    view = await pin(db, tenant, _NEWEST, wait_ms=wait_ms)
    async with db.snapshot(tenant) as conn:
        keys = await tenant_keys(db, tenant, conn)
        await keys_of_event(conn, keys, epoch=view.epoch, event_id=event_id)
        event = (await read_events_by_id(conn, keys, [event_id]))[event_id]
    wanted = TrailsWanted(event_id=event_id)
    used = await list_trails(
        db, tenant, after_number=after_number, limit=SUPPOSED_TRAILS_MAX + 1, wanted=wanted
    )
    trails = await _trails(db, tenant, used[:SUPPOSED_TRAILS_MAX])
    async with supposing(db, tenant, [_retraction(event_id)]) as (supposed, commit):
        with_it = await _folded(supposed, tenant, projector, commit=commit)
        # Both sides are read here, a commit apart: nothing that others append lies between them.
        without = replace(with_it, cut=commit - 1)
        async with supposed.snapshot(tenant) as conn:
            on = await keys_of_event(conn, keys, epoch=with_it.epoch, event_id=event_id)
            before = await resolve_many(conn, keys, without, on)
            after = await resolve_many(conn, keys, with_it, on)
        path = path_on(supposed)
        answers = [
            (await _again(path, tenant, trail, without), await _again(path, tenant, trail, with_it))
            for _, trail in trails
        ]
    return Retraction(
        event_id=event_id,
        erased=isinstance(event, ErasedEvent),
        keys=_changed(before, after),
        answers=tuple(_answer_change(one, *both) for (one, _), both in zip(trails, answers, strict=True)),
        erased_count=len(used[:SUPPOSED_TRAILS_MAX]) - len(trails),
        next_number=used[SUPPOSED_TRAILS_MAX - 1].number if len(used) > SUPPOSED_TRAILS_MAX else None,
    )


async def _folded(db: Database, tenant: str, projector: Projector, *, commit: int) -> View:
    while (await fold(db, tenant, projector, events_max=FOLD_EVENTS_MAX)).commit < commit:
        continue
    return await pin(db, tenant, replace(_NEWEST, min_commit=commit), wait_ms=0)


async def _trails(
    db: Database, tenant: str, headers: Sequence[TrailHeader]
) -> list[tuple[TrailHeader, Trail]]:
    found = [(header, await read_trail(db, tenant, header.trail_id)) for header in headers]
    return [(header, trail) for header, trail in found if isinstance(trail, Trail)]


async def _again(path: QueryPath, tenant: str, trail: Trail, view: View) -> Rebuilt | EchoplaneError:
    """Ask again at the instant that was asked for; what cannot be answered any more is said, not raised."""
    asked = replace(view, valid_at=trail.view.valid_at)
    try:
        return await path.rebuild(tenant=tenant, trail=replace(trail, view=asked))
    except EchoplaneError as error:
        return error


def _changed(before: Sequence[KeyResolution], after: Sequence[KeyResolution]) -> tuple[str, ...]:
    return tuple(key_differences(before, after))


def _answer_change(
    header: TrailHeader, before: Rebuilt | EchoplaneError, after: Rebuilt | EchoplaneError
) -> AnswerChange:
    if isinstance(before, EchoplaneError) or isinstance(after, EchoplaneError):
        failure = next(one for one in (before, after) if isinstance(one, EchoplaneError))
        return AnswerChange(
            trail_id=header.trail_id, context_hash=header.context_hash, changes=None,
            before=failure.code, after=failure.code, differences=(),
        )  # fmt: skip
    return AnswerChange(
        trail_id=header.trail_id,
        context_hash=header.context_hash,
        changes=answer_words(before) != answer_words(after),
        before=answer_words(before),
        after=answer_words(after),
        differences=differences(before, after),
    )


def _retraction(event_id: str) -> EventDraft:
    return EventDraft.model_validate(
        {
            "stream": "supposed",
            "kind": "retraction",
            "actor": _OPERATOR,
            "claims": [{"stance": "retract", "targets": [{"event": event_id}]}],
        }
    )
