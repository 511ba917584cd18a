"""The use case of erasing: the ledger decides what goes, and the files owe a scrub from then on."""

from __future__ import annotations

from contracts.erasure_wire import ErasureAnswer
from contracts.erasures import ErasureReport, ErasureRequest
from contracts.grants import Grant
from contracts.times import format_instant
from echoplane._folders import DataFolder
from echoplane._scrub import announcing, read_scrub
from echoplane._wiring import Plane
from ledger.erase import PLANE
from ledger.erase import erase as erase_in_ledger
from projection import RuleProjector


async def erase(
    plane: Plane, tenant: str, request: ErasureRequest, *, grant: Grant, actor_id: str = PLANE
) -> ErasureAnswer:
    """
    Erase from the ledger; the answer says how it stands with the files, which are not waited for.

    Raises:
        EchoplaneError: As `ledger.erase.erase`.
    """
    folder = DataFolder.at(plane.settings.data_dir)
    with announcing(folder) as announce:
        report = await erase_in_ledger(
            plane.database,
            tenant,
            RuleProjector(),
            request,
            grant=grant,
            actor_id=actor_id,
            announce=announce,
        )
    return _answer(tenant, report, folder)


def _answer(tenant: str, report: ErasureReport, folder: DataFolder) -> ErasureAnswer:
    return ErasureAnswer(
        tenant=tenant,
        event_id=report.event_id,
        commit=report.commit,
        recorded_at=None if report.recorded_at is None else format_instant(report.recorded_at),
        erased=list(report.erased),
        already_erased=list(report.already_erased),
        tombstones_count=report.tombstones_count,
        contexts_count=report.contexts_count,
        trails_count=report.trails_count,
        units_count=report.units_count,
        scrub=read_scrub(folder),
    )
