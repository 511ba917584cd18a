"""What the ledger has of the subjects of a task: their answers, and what was known of them when."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Final

from sqlalchemy.ext.asyncio import AsyncConnection

from contracts.histories import KeyHistory
from contracts.identity import SAME_AS
from contracts.resolutions import Missing
from contracts.times import ValidAt
from contracts.views import View
from ledger.log import TenantKeys
from ledger.resolve import EVERYTHING, Window, history, resolve_many
from realize import THROUGH_TIME, Found, Task

_INSTANT: Final = timedelta(microseconds=1)


async def found_for(conn: AsyncConnection, keys: TenantKeys, view: View, task: Task) -> tuple[Found, ...]:
    """
    Return what the ledger has of each subject, as known at the view's cut.

    A subject's answer is that of the first instant of its period; its history that of the whole.

    Raises:
        IntegrityFault: Something that was read is not what was written.
    """
    found = []
    for subject in task.subjects:
        start = view.valid_at if subject.period is None else subject.period.start
        end = start + _INSTANT if subject.period is None else subject.period.end
        at = replace(view, valid_at=ValidAt(start))
        wanted = [(subject.entity, subject.relation), (subject.entity, SAME_AS)]
        resolution, names = await resolve_many(conn, keys, at, wanted)
        known = await history(
            conn,
            keys,
            subject.entity,
            subject.relation,
            epoch=view.epoch,
            cut=view.cut,
            window=EVERYTHING
            if task.form in THROUGH_TIME
            else Window(valid_from=start, valid_to=end, known_from=None, known_to=None),
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
            )
        )
    return tuple(found)
