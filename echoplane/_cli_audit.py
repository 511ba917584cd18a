"""Commands of an auditor: `audit verify`, which asks no plane, `audit trails` and `audit without`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import ValidationError

from contracts.artifacts import Number
from contracts.audit_wire import BundleAnswer, TrailsAnswer, WithoutAnswer
from contracts.limits import PAGE_EVENTS_MAX
from echoplane import _cli_qa
from echoplane._cli_options import DataDir, Json, Tenant, print_json, print_line, run, settings_for
from echoplane._failures import EXIT_OK, EXIT_VERDICT_FALSE, refusal
from echoplane._requests import read_name, read_tenant
from echoplane._session import with_plane
from echoplane._settings import Settings


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    audit = typer.Typer(no_args_is_help=True, help="What was measured and answered, checked from outside.")
    audit.command("verify")(verify_bundle)
    audit.command("trails")(list_trails)
    audit.command("without")(without_event)
    _cli_qa.register(audit)
    app.add_typer(audit, name="audit")


def verify_bundle(
    bundle: Annotated[Path, typer.Argument(help="A folder that a measured run left behind.")],
    *,
    data: Annotated[
        Path | None, typer.Option("--data", help="The public set that it measured: the gold is read again.")
    ] = None,
    json: Json = False,
) -> int:
    """Check a bundle: digests, every row, every number. Needs no service. Exit 1 unless all of it holds."""
    # It brings the public readers, which no other command waits for before it starts.
    from audit import check_bundle  # noqa: PLC0415 -- see above

    report = check_bundle(bundle, data=data)
    answer = BundleAnswer(
        bundle=report.name,
        holds=report.holds,
        level=None if report.manifest is None else report.manifest.run.level.value,
        measures=report.measures,
        checked=report.checked,
        problems=report.problems,
        problems_count=report.problems_count,
    )
    if json:
        print_json(answer)
    else:
        _print(answer)
    return EXIT_OK if answer.holds else EXIT_VERDICT_FALSE


def list_trails(
    *,
    tenant: Tenant,
    event: Annotated[str | None, typer.Option("--event", help="That used this event.")] = None,
    entity: Annotated[str | None, typer.Option("--entity", help="That were about this name.")] = None,
    context: Annotated[
        str | None, typer.Option("--context", help="That built the context of this hash.")
    ] = None,
    status: Annotated[str | None, typer.Option("--status", help="That were answered so.")] = None,
    asked_from: Annotated[
        str | None, typer.Option("--asked-from", help="Asked at or after: an instant with offset.")
    ] = None,
    asked_to: Annotated[str | None, typer.Option("--asked-to", help="Asked before it.")] = None,
    after_number: Annotated[int, typer.Option("--after-number", help="After the one of this number.")] = 0,
    limit: Annotated[int, typer.Option("--limit", help="At most so many.")] = PAGE_EVENTS_MAX,
    data_dir: DataDir = None,
    json: Json = False,
) -> int:
    """List recalls in the order in which they were asked: all that fit everything that is given."""
    given = {
        "event": event, "entity": entity, "context": context, "status": status, "asked_from": asked_from,
        "asked_to": asked_to, "after_number": after_number, "limit": limit,
    }  # fmt: skip
    answer = run(_trails(settings_for(data_dir), read_tenant(tenant), given))
    for one in answer.trails:
        if json:
            print_json(one)
        else:
            said = "erased" if one.erased else one.status or "-"
            print_line(f"{one.number:>8}  {one.asked_at:<27}  {one.trail}  {said:<22} {one.context}")
    return EXIT_OK


async def _trails(settings: Settings, tenant: str, given: dict[str, Any]) -> TrailsAnswer:
    async with with_plane(settings) as plane:
        from echoplane import _trails as use_cases  # noqa: PLC0415 -- loaded while the plane starts

        await plane.must_have(tenant)
        try:
            wanted = use_cases.TrailsParameters.model_validate(given)
        except ValidationError as error:
            raise refusal(error) from None
        return await use_cases.trails(plane, tenant, wanted)


def without_event(
    event: Annotated[str, typer.Argument(metavar="EVENT", help="An event's id.")],
    *,
    tenant: Tenant,
    after_number: Annotated[
        int, typer.Option("--after-number", min=0, help="Answers after the trail of this number.")
    ] = 0,
    data_dir: DataDir = None,
    json: Json = False,
) -> int:
    """Say what an operator's retraction of an event would change now. Nothing is written."""
    name = read_name(event, field="EVENT")
    answer = run(_without(settings_for(data_dir), read_tenant(tenant), name, after_number))
    if json:
        print_json(answer)
    else:
        _print_without(answer)
    return EXIT_OK


async def _without(settings: Settings, tenant: str, event_id: str, after_number: int) -> WithoutAnswer:
    async with with_plane(settings) as plane:
        from echoplane import _trails as use_cases  # noqa: PLC0415 -- as above

        await plane.must_have(tenant)
        given = use_cases.WithoutParameters(after_number=after_number)
        return await use_cases.without(plane, tenant, event_id, given)


def _print_without(answer: WithoutAnswer) -> None:
    for key in answer.keys:
        print_line(f"  key     {key}")
    for one in answer.answers:
        said = {True: "changes", False: "stays", None: "unknown"}[one.changes]
        print_line(f"  {said:<7} {one.trail}: {one.before} -> {one.after}")
        for difference in one.differences:
            print_line(f"          {difference}")
    changed = sum(one.changes is True for one in answer.answers)
    more = "" if answer.next_number is None else f"; more with --after-number {answer.next_number}"
    counted = f"{len(answer.keys)} keys and {changed} of {len(answer.answers)} answers change"
    print_line(f"without {answer.event}: {counted}, {answer.erased_count} are erased{more}")


def _print(answer: BundleAnswer) -> None:
    if answer.level is None:
        print_line(f"{answer.bundle}: {answer.problems[0]}")
        return
    # Numbers of a bundle that was changed are nobody's.
    for one in answer.measures if answer.holds else ():
        number = said_number(one.value, one.low, one.high, one.n)
        print_line(f"  {one.formula.name:<44} {one.formula.arm:<16} {number}")
    counted = ", ".join(f"{count} {name}" for name, count in answer.checked.items())
    print_line(
        f"{'holds' if answer.holds else 'broken'}: {answer.bundle} ({answer.level}); checked {counted}"
    )
    for problem in answer.problems:
        print_line(f"  {problem}")


def said_number(value: Number | None, low: float | None, high: float | None, n: int) -> str:
    """Return a number with its interval and what it is over, as a person reads it."""
    if value is None:
        return "not observable"
    bounds = "" if low is None or high is None else f" ({low:.4f} to {high:.4f})"
    return f"{value:.4f}{bounds}, n = {n}"
