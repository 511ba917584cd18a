"""What the ledger has of the subjects of a task: their answers, and what was known of them when."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from sqlalchemy.ext.asyncio import AsyncConnection

from contracts.histories import KeyHistory
from contracts.identity import SAME_AS
from contracts.relations import Cardinality
from contracts.resolutions import KeyResolution, Missing, ResolvedSet
from contracts.times import MICROSECOND, ValidAt
from contracts.views import View
from ledger.log import TenantKeys
from ledger.resolve import EVERYTHING, Window, as_certain, erased_from, history, occurrences, resolve
from realize import OCCURRED, THROUGH_TIME, Found, Subject, Task


def read_beside(task: Task, view: View) -> list[tuple[str, str]]:
    """Return the keys that a task needs to have resolved at its view, beside those that are named."""
    own = [(each.entity, each.relation) for each in task.subjects if _start(each, view) == view.valid_at]
    return [*own, *((each.entity, SAME_AS) for each in task.subjects)]


async def found_for(
    conn: AsyncConnection,
    keys: TenantKeys,
    view: View,
    task: Task,
    resolved: Mapping[tuple[str, str], KeyResolution],
) -> tuple[Found, ...]:
    """
    Return what the ledger has of each subject, as known at the view's cut.

    A subject's answer is that of the first instant of its period, if that is certain all through it; its
    history that of the whole. What of it was resolved at the view (`read_beside`) is not resolved anew.

    Raises:
        IntegrityFault: Something that was read is not what was written.
    """
    found = []
    for subject in task.subjects:
        start = _start(subject, view)
        end = start + MICROSECOND if subject.period is None else subject.period.end
        if start == view.valid_at:
            resolution = resolved[subject.entity, subject.relation]
        else:
            at = replace(view, valid_at=ValidAt(start))
            resolution = await resolve(conn, keys, at, subject.entity, subject.relation)
        if task.form in OCCURRED and resolution.contract.cardinality == Cardinality.OCCURRENCE:
            resolution = replace(resolution, resolution=await _happened(conn, keys, view, subject))
        else:
            resolution = await as_certain(conn, keys, resolution, until=end)
        # Who is one with whom holds for all valid time.
        names = resolved[subject.entity, SAME_AS]
        known = await history(
            conn,
            keys,
            subject.entity,
            subject.relation,
            epoch=view.epoch,
            cut=view.cut,
            window=_window(task, start, end),
        )
        found.append(
            Found(
                subject=subject,
                resolution=resolution,
                history=KeyHistory(
                    entity=subject.entity,
                    relation=subject.relation,
                    contract=resolution.contract,
                    start=start,
                    end=end,
                    rectangles=known.rectangles,
                    whole=not known.truncated and isinstance(names.resolution, Missing),
                ),
                erased_from=await erased_from(conn, keys, view, subject.entity, subject.relation)
                if task.form in THROUGH_TIME | OCCURRED
                else None,
            )
        )
    return tuple(found)


def _window(task: Task, start: datetime, end: datetime) -> Window:
    """Return what of a key's history is asked for: its whole, or what touches a time that is named."""
    if task.form in THROUGH_TIME or (task.form in OCCURRED and task.subjects[0].period is None):
        return EVERYTHING
    return Window(valid_from=start, valid_to=end, known_from=None, known_to=None)


async def _happened(conn: AsyncConnection, keys: TenantKeys, view: View, subject: Subject) -> ResolvedSet:
    """Return all that happened by the view, or within the time that is named as far as it has come."""
    period = subject.period
    start = None if period is None else period.start
    end = (view.valid_at if period is None else min(period.end - MICROSECOND, view.known_at)) + MICROSECOND
    return await occurrences(conn, keys, view, subject.entity, subject.relation, start=start, end=end)


def _start(subject: Subject, view: View) -> datetime:
    return view.valid_at if subject.period is None else subject.period.start
