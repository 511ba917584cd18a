"""Commands that read the record: `history`, `diff` and `join`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from contracts.errors import BadRequest
from contracts.read_wire import (
    ChangeAnswer,
    DiffAnswer,
    HistoryAnswer,
    JoinAnswer,
    OccurrencesAnswer,
    StandAnswer,
)
from contracts.views import ViewRequest
from echoplane._cli_options import (
    DataDir,
    GenerationOption,
    Json,
    KnownAtOption,
    MinCommit,
    Tenant,
    ValidFrom,
    ValidTo,
    ViewName,
    print_json,
    print_line,
    run,
    settings_for,
    shown,
)
from echoplane._cli_relations import write_file
from echoplane._failures import EXIT_OK
from echoplane._requests import read_bound, read_known, read_name, read_tenant, read_view
from echoplane._session import with_plane
from echoplane._settings import Settings
from echoplane._svg import picture

if TYPE_CHECKING:
    from echoplane._wiring import Plane

Answer = TypeVar("Answer")

OPEN_START, OPEN_END = "-∞", "∞"

Instant = Annotated[str | None, typer.Option(help="An instant with offset.")]
Commit = Annotated[str | None, typer.Option(help="The number of a commit, or an instant with offset.")]
Generation = Annotated[str | None, typer.Option(help="EPOCH:COMMIT.")]
Name = Annotated[str | None, typer.Option(help="A pinned view, by name.")]


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    for command in (history, occurrences, diff, join):
        app.command()(command)


async def _at_view(
    settings: Settings,
    tenant: str,
    view: str | None,
    request: ViewRequest,
    read: Callable[[Plane, str, ViewRequest], Awaitable[Answer]],
) -> Answer:
    """Read at the view that is asked for, be it by name; of the newest, once all that was said is folded."""
    async with with_plane(settings) as plane:
        from echoplane import _reads  # noqa: PLC0415 -- loaded while the plane starts

        await plane.must_have(tenant)
        request = await _reads.named(plane, tenant, view, request)
        return await read(plane, tenant, await plane.after_last_commit(tenant, request))


def history(
    entity: Annotated[str, typer.Argument()],
    relation: Annotated[str | None, typer.Argument()] = None,
    *,
    tenant: Tenant,
    valid_from: ValidFrom = None,
    valid_to: ValidTo = None,
    known_from: Commit = None,
    known_to: Commit = None,
    timeline: Annotated[
        bool, typer.Option("--timeline", help="Only what stands along valid time at the view.")
    ] = False,
    at: Annotated[
        str | None, typer.Option("--at", help="Only how what is known about this instant changed.")
    ] = None,
    known_at: KnownAtOption = None,
    generation: GenerationOption = None,
    min_commit: MinCommit = None,
    view: ViewName = None,
    svg: Annotated[
        Path | None, typer.Option("--svg", help="Draw it: valid time to the right, commits upwards.")
    ] = None,
    data_dir: DataDir = None,
    json: Json = False,
) -> int:
    """Show what was ever answered on an entity's keys: valid time against known commits."""
    if svg is not None and (timeline or at is not None):
        raise BadRequest(field="--svg", reason="draws rectangles: not with --timeline or --at")
    request = read_view(valid_at=None, known_at=known_at, generation=generation, min_commit=min_commit)
    wanted: dict[str, Any] = {
        "entity": read_name(entity, field="ENTITY"),
        "relation": None if relation is None else read_name(relation, field="RELATION"),
        "valid_from": read_bound(valid_from, field="valid_from"),
        "valid_to": read_bound(valid_to, field="valid_to"),
        "known_from": read_known(known_from, field="known_from"),
        "known_to": read_known(known_to, field="known_to"),
        "timeline": timeline,
        "at": read_bound(at, field="at"),
    }

    async def read(plane: Plane, name: str, at: ViewRequest) -> HistoryAnswer:
        from echoplane import _reads  # noqa: PLC0415 -- loaded while the plane starts

        return await _reads.history(plane, name, at, _reads.HistoryWanted(**wanted))

    answer = run(_at_view(settings_for(data_dir), read_tenant(tenant), view, request, read))
    if svg is not None:
        write_file(svg, picture(answer), field="--svg")
    if json:
        print_json(answer)
    else:
        _print_history(answer)
    return EXIT_OK


def _print_history(answer: HistoryAnswer) -> None:
    for cell in answer.cells:
        print_line(
            f"  {cell.relation:<16} {cell.valid_from or OPEN_START:<22} to {cell.valid_to or OPEN_END:<22} "
            f"known {cell.known_from} to {cell.known_to or 'now':<6} {cell.state:<12} "
            + ", ".join(shown(value) for value in cell.values)
        )
    for claim in answer.unplaced:
        print_line(f"  {claim.relation:<16} unplaced: {claim.stance} by {claim.source.id}, {claim.event}")
    _print_withdrawn(answer)
    _print_cut(answer.truncated)


def _print_withdrawn(answer: HistoryAnswer) -> None:
    told = {claim.id: claim for claim in answer.claims}
    for one in answer.withdrawn:
        taken = told[one.claim]
        said = "an end" if taken.value is None else shown(taken.value)
        by = ", ".join(f"{told[name].stance} {told[name].event} ({told[name].source.id})" for name in one.by)
        print_line(f"  {taken.relation:<16} taken back: {said}, {taken.event}, by {by or 'what was erased'}")
    if not answer.withdrawn_whole:
        print_line("  more may have been taken back")


def occurrences(
    entity: Annotated[str, typer.Argument()],
    relation: Annotated[str, typer.Argument()],
    *,
    tenant: Tenant,
    valid_from: ValidFrom = None,
    valid_to: ValidTo = None,
    known_at: KnownAtOption = None,
    generation: GenerationOption = None,
    min_commit: MinCommit = None,
    view: ViewName = None,
    data_dir: DataDir = None,
    json: Json = False,
) -> int:
    """Count what happened: how often, within a window of valid time, and each time that it did."""
    request = read_view(valid_at=None, known_at=known_at, generation=generation, min_commit=min_commit)
    wanted: dict[str, Any] = {
        "entity": read_name(entity, field="ENTITY"),
        "relation": read_name(relation, field="RELATION"),
        "valid_from": read_bound(valid_from, field="valid_from"),
        "valid_to": read_bound(valid_to, field="valid_to"),
    }

    async def read(plane: Plane, name: str, at: ViewRequest) -> OccurrencesAnswer:
        from echoplane import _reads  # noqa: PLC0415 -- loaded while the plane starts

        return await _reads.occurrences(plane, name, at, _reads.OccurrencesWanted(**wanted))

    answer = run(_at_view(settings_for(data_dir), read_tenant(tenant), view, request, read))
    if json:
        print_json(answer)
        return EXIT_OK
    print_occurrences(answer)
    return EXIT_OK


def print_occurrences(answer: OccurrencesAnswer) -> None:
    """Print each time that something happened, and how often it did."""
    for one in answer.occurrences:
        start, end = one.valid.start or OPEN_START, one.valid.end or OPEN_END
        print_line(f"  {start:<22} to {end:<22} {shown(one.value)}")
    for rivals in answer.disputed:
        values = ", ".join("none" if rival.ended else shown(rival.value) for rival in rivals)
        print_line(f"  in dispute: {values}")
    print_line(f"{answer.count} in all, {answer.disputed_count} in dispute")
    _print_cut(answer.truncated)


def diff(
    entity: Annotated[str | None, typer.Argument()] = None,
    relation: Annotated[str | None, typer.Argument()] = None,
    *,
    tenant: Tenant,
    before_valid_at: Instant = None,
    before_known_at: Instant = None,
    before_generation: Generation = None,
    before_view: Name = None,
    after_valid_at: Instant = None,
    after_known_at: Instant = None,
    after_generation: Generation = None,
    after_view: Name = None,
    instants: Annotated[
        bool,
        typer.Option("--instants", help="Compare what holds at each view's own instant, not all valid time."),
    ] = False,
    from_line: Annotated[int, typer.Option(min=0, help="The `next_line` of the page before.")] = 0,
    data_dir: DataDir = None,
    json: Json = False,
) -> int:
    """
    Show what changed in what was known, from one view to another (the newest), and by which events.

    Where nothing is said of the first view: all that came.
    """
    before = read_view(
        valid_at=before_valid_at, known_at=before_known_at, generation=before_generation, min_commit=None
    )
    after = read_view(
        valid_at=after_valid_at, known_at=after_known_at, generation=after_generation, min_commit=None
    )
    wanted = {
        "entity": None if entity is None else read_name(entity, field="ENTITY"),
        "relation": None if relation is None else read_name(relation, field="RELATION"),
        "at_instants": instants or bool(before_valid_at or after_valid_at),
        "from_line": from_line,
    }
    views = ((before_view, before), (after_view, after))
    answer = run(_diff(settings_for(data_dir), read_tenant(tenant), views, wanted))
    if json:
        print_json(answer)
        return EXIT_OK
    for change in answer.changes:
        _print_change(change, instants=answer.instants)
    if answer.next_line is not None:
        print_line(f"  more with --from-line {answer.next_line}")
    _print_cut(answer.truncated)
    return EXIT_OK


async def _diff(
    settings: Settings,
    tenant: str,
    views: tuple[tuple[str | None, ViewRequest], tuple[str | None, ViewRequest]],
    wanted: dict[str, Any],
) -> DiffAnswer:
    async with with_plane(settings) as plane:
        from echoplane import _reads  # noqa: PLC0415 -- loaded while the plane starts

        await plane.must_have(tenant)
        before, after = [await _reads.named(plane, tenant, name, request) for name, request in views]
        after = await plane.after_last_commit(tenant, after)
        return await _reads.diff(plane, tenant, before, after, _reads.DiffWanted(**wanted))


def _print_change(change: ChangeAnswer, *, instants: bool) -> None:
    where = f"{change.valid_from or OPEN_START} to {change.valid_to or OPEN_END}"
    if instants:
        where = "at the instants"
    print_line(f"  {change.entity} {change.relation}  {where}")
    print_line(f"    was  {_stands(change.before)}")
    print_line(f"    is   {_stands(change.after)}")
    print_line(f"    by   {', '.join(change.events) or 'valid time alone'}")


def _stands(stand: StandAnswer) -> str:
    return " ".join([stand.state, ", ".join(shown(value) for value in stand.values)]).strip()


def join(
    entity: Annotated[str, typer.Argument()],
    relation: Annotated[str, typer.Argument()],
    other_entity: Annotated[str, typer.Argument()],
    other_relation: Annotated[str, typer.Argument()],
    *,
    tenant: Tenant,
    on_value: Annotated[bool, typer.Option("--on-value", help="Only pairs of equal values.")] = False,
    bitemporal: Annotated[
        bool, typer.Option("--bitemporal", help="Whenever both were known together, not only at the view.")
    ] = False,
    valid_from: ValidFrom = None,
    valid_to: ValidTo = None,
    known_at: KnownAtOption = None,
    generation: GenerationOption = None,
    min_commit: MinCommit = None,
    view: ViewName = None,
    data_dir: DataDir = None,
    json: Json = False,
) -> int:
    """Show which values of two keys held at the same time."""
    request = read_view(valid_at=None, known_at=known_at, generation=generation, min_commit=min_commit)
    wanted: dict[str, Any] = {
        "left": (read_name(entity, field="ENTITY"), read_name(relation, field="RELATION")),
        "right": (
            read_name(other_entity, field="OTHER_ENTITY"),
            read_name(other_relation, field="OTHER_RELATION"),
        ),
        "on_value": on_value,
        "bitemporal": bitemporal,
        "valid_from": read_bound(valid_from, field="valid_from"),
        "valid_to": read_bound(valid_to, field="valid_to"),
    }

    async def read(plane: Plane, name: str, at: ViewRequest) -> JoinAnswer:
        from echoplane import _reads  # noqa: PLC0415 -- loaded while the plane starts

        return await _reads.join(plane, name, at, _reads.JoinWanted(**wanted))

    answer = run(_at_view(settings_for(data_dir), read_tenant(tenant), view, request, read))
    if json:
        print_json(answer)
        return EXIT_OK
    for pair in answer.pairs:
        print_line(
            f"  {pair.valid_from or OPEN_START:<22} to {pair.valid_to or OPEN_END:<22} "
            f"known {pair.known_from} to {pair.known_to or 'now':<6} "
            f"{shown(pair.left.value)} | {shown(pair.right.value)}"
        )
    _print_cut(answer.truncated)
    return EXIT_OK


def _print_cut(truncated: bool) -> None:
    if truncated:
        print_line("  there is more: narrow the window")
