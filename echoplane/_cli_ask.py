"""Commands that read memory: `ask resolve replay`, and the demonstration."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from contracts import limits
from contracts.audit_wire import TodayAnswer
from contracts.context_wire import ReadingAnswer
from contracts.errors import Unavailable
from contracts.read_wire import ClaimAnswer, ResolveAnswer
from contracts.trails import Question
from contracts.views import ViewRequest
from contracts.wire import AskAnswer, ReplayAnswer
from echoplane._cli_options import (
    Budget,
    BudgetBytes,
    DataDir,
    Disclose,
    Explain,
    GenerationOption,
    Json,
    KnownAtOption,
    MinCommit,
    ReadIt,
    Tenant,
    ValidAtOption,
    ViewName,
    print_json,
    print_line,
    run,
    settings_for,
    shown,
)
from echoplane._failures import EXIT_OK, EXIT_VERDICT_FALSE, exit_code
from echoplane._requests import read_name, read_question, read_tenant, read_view
from echoplane._session import with_plane
from echoplane._settings import Settings
from echoplane._state import Role


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    for command in (ask, resolve, replay, demo):
        app.command()(command)


def ask(
    question: Annotated[str, typer.Argument(help="In plain words.")],
    *,
    tenant: Tenant,
    valid_at: ValidAtOption = None,
    known_at: KnownAtOption = None,
    generation: GenerationOption = None,
    min_commit: MinCommit = None,
    view: ViewName = None,
    budget: Budget = limits.BUDGET_DEFAULT_TOKENS,
    budget_bytes: BudgetBytes = None,
    disclose_conflicts: Disclose = False,
    explain: Explain = False,
    reader: ReadIt = False,
    data_dir: DataDir = None,
    json: Json = False,
) -> int:
    """Answer a question from resolved state, or hand out the evidence."""
    request = read_view(valid_at=valid_at, known_at=known_at, generation=generation, min_commit=min_commit)
    text = read_question(question, field="QUESTION")
    asked = Question(
        text=text,
        budget_tokens=budget,
        budget_bytes=budget_bytes,
        disclose_conflicts=disclose_conflicts,
    )
    answer = run(_ask(settings_for(data_dir), read_tenant(tenant), asked, view, request, read=reader))
    if json:
        print_json(answer)
    else:
        print_answer(answer)
        if explain:
            print_candidates(answer)
    if answer.reading is not None and answer.reading.status == "failed":
        return exit_code(Unavailable(part="reader", reason=answer.reading.failure or ""))
    return EXIT_OK


async def _ask(
    settings: Settings,
    tenant: str,
    question: Question,
    view: str | None,
    request: ViewRequest,
    *,
    read: bool,
) -> AskAnswer:
    async with with_plane(settings, Role.DISCOVERY) as plane:
        from echoplane import _reads  # noqa: PLC0415 -- loaded while the plane starts

        await plane.must_have(tenant)
        request = await _reads.named(plane, tenant, view, request)
        # First: what is left to fold is folded while discovery loads its model.
        request = await plane.after_last_commit(tenant, request)
        await plane.wait_discovery()
        return await plane.ask(tenant, question, request, read=read)


def print_answer(answer: AskAnswer) -> None:
    """Print an answer for a person."""
    print_line(f"{answer.status}: {shown(answer.answer)}" if answer.answer is not None else answer.status)
    if answer.reason:
        print_line(f"  why       {answer.reason}")
    if answer.reading is not None:
        _print_reading(answer.reading)
    for line in answer.context.lines:
        cited = "*" if line.id in answer.cites else " "
        print_line(f"  {cited} {line.id:<6} {line.observed_at:<25} {line.mark:<10} {line.text}")
    if answer.context.deferred:
        print_line(f"  deferred  {len(answer.context.deferred)} closures did not fit")
    print_line(
        f"  view      valid {answer.view.valid_at}, cut {answer.view.cut}, epoch {answer.view.epoch}"
        + (", discovery down" if answer.degraded else "")
    )
    print_line(
        f"  context   {answer.context.hash}  ({answer.context.tokens} of {answer.context.budget} tokens)"
    )


def print_candidates(answer: AskAnswer) -> None:
    """Print how each route did, and which of them brought each candidate."""
    for route in answer.routes:
        print_line(
            f"  route     {route.route:<12} {route.state:<6} {route.count:>7} units  "
            f"{route.duration_us / 1_000:>8.1f} ms  at {route.generation}"
        )
    for place, candidate in enumerate(answer.candidates, 1):
        hits = ", ".join(f"{hit.route} {hit.rank} ({hit.score_ppm / 1e6:.3f})" for hit in candidate.hits)
        print_line(f"  {place:>4}      {candidate.unit}  {candidate.score_ppm / 1e6:.4f}  {hits}")


def _print_reading(reading: ReadingAnswer) -> None:
    said = f"failed: {reading.failure}" if reading.status == "failed" else shown(reading.text)
    print_line(f"  reader    {'abstained' if reading.status == 'abstained' else said}  ({reading.model})")
    if reading.status == "answered" and not reading.grounded:
        missing = ", ".join(reading.unknown_cites)
        print_line(
            f"            not grounded: it cites {missing or 'no line'}{' (not there)' * bool(missing)}"
        )


def resolve(
    entity: Annotated[str, typer.Argument()],
    relation: Annotated[str, typer.Argument()],
    *,
    tenant: Tenant,
    valid_at: ValidAtOption = None,
    known_at: KnownAtOption = None,
    generation: GenerationOption = None,
    min_commit: MinCommit = None,
    view: ViewName = None,
    data_dir: DataDir = None,
    json: Json = False,
) -> int:
    """Say what stands on one key at a view."""
    request = read_view(valid_at=valid_at, known_at=known_at, generation=generation, min_commit=min_commit)
    key = read_name(entity, field="ENTITY"), read_name(relation, field="RELATION")
    answer = run(_resolve(settings_for(data_dir), read_tenant(tenant), key, view, request))
    if json:
        print_json(answer)
    else:
        print_resolution(answer)
    return EXIT_OK


async def _resolve(
    settings: Settings, tenant: str, key: tuple[str, str], view: str | None, request: ViewRequest
) -> ResolveAnswer:
    async with with_plane(settings) as plane:
        from echoplane import _reads  # noqa: PLC0415 -- loaded while the plane starts

        await plane.must_have(tenant)
        request = await _reads.named(plane, tenant, view, request)
        return await plane.resolve(tenant, *key, await plane.after_last_commit(tenant, request))


def print_resolution(answer: ResolveAnswer) -> None:
    value = answer.value if answer.values is None else answer.values
    print_line(f"{answer.outcome}: {shown(value) if answer.outcome == 'resolved' else answer.reason}")
    for name, claims in (("stands on", answer.claims), ("superseded", answer.superseded)):
        for claim in claims:
            _print_claim(name, shown(claim.value), claim)
    for rival in answer.conflict:
        _print_claim("rival", "ended" if rival.ended else shown(rival.value), rival.claim)
    for name, claims in (("disputed", answer.disputes), ("unplaced", answer.unplaced)):
        for claim in claims:
            said = claim.stance if claim.value is None else f"{claim.stance} {shown(claim.value)}"
            _print_claim(name, said, claim)
    if answer.truncated:
        print_line("  there is more than is listed")
    if answer.undetermined is not None:
        print_line(f"  undetermined from {answer.undetermined.from_} to {answer.undetermined.to}")
        for claim in answer.undetermined.claims:
            _print_claim("may be", "ended" if claim.value is None else shown(claim.value), claim)
    print_line(f"  view       valid {answer.view.valid_at}, cut {answer.view.cut}, epoch {answer.view.epoch}")


def _print_claim(name: str, said: str, claim: ClaimAnswer) -> None:
    print_line(
        f"  {name:<10} {said:<24} {claim.source.id} ({claim.source.class_}), "
        f"{claim.event}#{claim.ordinal}, commit {claim.commit}"
    )


def replay(
    context_hash: Annotated[str, typer.Argument(metavar="HASH")],
    *,
    tenant: Tenant,
    today: Annotated[
        bool, typer.Option("--today", help="In the epoch that serves now, from what was known then.")
    ] = False,
    data_dir: DataDir = None,
    json: Json = False,
) -> int:
    """
    Build a context anew from the ledger. Prints identical, redacted or mismatch (exit 1).

    With `--today` it is built as today's logic has it, and what differs is said; that is no mismatch.
    """
    hash_ = read_name(context_hash, field="HASH")
    if today:
        _print_today(run(_today(settings_for(data_dir), read_tenant(tenant), hash_)), as_json=json)
        return EXIT_OK
    answer = run(_replay(settings_for(data_dir), read_tenant(tenant), hash_))
    if json:
        print_json(answer)
    else:
        print_line(answer.verdict)
        for difference in answer.differences:
            print_line(f"  {difference}")
    return EXIT_VERDICT_FALSE if answer.verdict == "mismatch" else EXIT_OK


async def _today(settings: Settings, tenant: str, context_hash: str) -> TodayAnswer:
    async with with_plane(settings) as plane:
        from echoplane import _trails  # noqa: PLC0415 -- loaded while the plane starts

        return await _trails.today(plane, tenant, context_hash)


def _print_today(answer: TodayAnswer, *, as_json: bool) -> None:
    if as_json:
        print_json(answer)
        return
    if answer.erased:
        print_line("erased")
        print_line(f"  with      {', '.join(answer.erased_events) or 'what it asked about'}")
        return
    print_line("the same" if answer.same else "another answer")
    print_line(f"  then      {answer.then or 'its epoch was dropped'}, epoch {answer.epoch_then}")
    print_line(f"  today     {answer.now}, epoch {answer.epoch_now}")
    for difference in answer.differences:
        print_line(f"  {difference}")


async def _replay(settings: Settings, tenant: str, context_hash: str) -> ReplayAnswer:
    async with with_plane(settings) as plane:
        return await plane.replay(tenant, context_hash)


def demo(
    *,
    data_dir: Annotated[
        Path | None, typer.Option("--data-dir", help="Kept afterwards; else a temporary folder.")
    ] = None,
    json: Json = False,
) -> int:
    """Show the whole plane on two small logs: eight questions, their proof, and their replay."""
    # It brings an HTTP client that no other command needs.
    from echoplane._demo import run_demo  # noqa: PLC0415 -- see above

    return EXIT_OK if run(run_demo(data_dir, as_json=json)) else EXIT_VERDICT_FALSE
