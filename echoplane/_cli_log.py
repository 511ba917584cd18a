"""Commands that check the log: `checkpoint`, `proof` and `verify`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from contracts.errors import BadRequest
from contracts.log_wire import CheckedAnswer, CheckpointAnswer, ConsistencyAnswer, InclusionAnswer
from contracts.wire import VerifyAnswer
from echoplane._cli_options import DataDir, Json, Tenant, print_json, print_line, run, settings_for
from echoplane._failures import EXIT_OK, EXIT_VERDICT_FALSE
from echoplane._requests import read_tenant
from echoplane._session import with_plane
from echoplane._settings import Settings

if TYPE_CHECKING:
    from ledger.log import Checkpoint

Size = Annotated[int | None, typer.Option("--size", min=0, help="At how many commits; else now.")]


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command()(verify)
    app.command()(checkpoint)
    proofs = typer.Typer(no_args_is_help=True, help="What proves something about the log to others.")
    proofs.command("inclusion")(prove_inclusion)
    proofs.command("consistency")(prove_consistency)
    app.add_typer(proofs, name="proof")


def verify(
    *,
    tenant: Annotated[str | None, typer.Option("--tenant", help="Whose log.")] = None,
    checkpoint: Annotated[
        Path | None, typer.Option("--checkpoint", help="A file of `echoplane checkpoint --out`.")
    ] = None,
    key: Annotated[
        str | None, typer.Option("--key", help="The public key that you trust; else the file's.")
    ] = None,
    proof: Annotated[
        list[Path] | None, typer.Option("--proof", help="A file of `echoplane proof`; repeat it.")
    ] = None,
    data_dir: DataDir = None,
    json: Json = False,
) -> int:
    """
    Recompute a log: chain, tree, hashes, seals, and cells from claims. Exit 1 if anything differs.

    With a checkpoint and a tenant, the log is held against the checkpoint too. With a checkpoint
    alone, its file and the proofs are checked, and no plane is asked.
    """
    if checkpoint is None and (key is not None or proof):
        raise BadRequest(field="--checkpoint", reason="name the file that the key or the proof is about")
    if tenant is not None:
        if proof:
            raise BadRequest(field="--proof", reason="is checked without a tenant: leave --tenant out")
        answer = run(_verify(settings_for(data_dir), read_tenant(tenant), checkpoint, key))
        return _print_verified(answer, as_json=json)
    if checkpoint is None:
        raise BadRequest(field="--tenant", reason="name whose log, or a checkpoint")
    from echoplane._proofs import check_file  # noqa: PLC0415 - the ledger is slow to load

    return _print_checked(check_file(checkpoint, key, proof or ()), as_json=json)


async def _verify(settings: Settings, tenant: str, checkpoint: Path | None, key: str | None) -> VerifyAnswer:
    async with with_plane(settings) as plane:
        return await plane.verify(tenant, checkpoint=_kept(checkpoint, key, tenant))


def _kept(path: Path | None, key: str | None, tenant: str) -> Checkpoint | None:
    if path is None:
        return None
    from echoplane._proofs import read_checkpoint_file  # noqa: PLC0415 - as above

    found = read_checkpoint_file(path, key)
    if found.tenant != tenant:
        raise BadRequest(field="--checkpoint", reason=f"is of {found.tenant}")
    return found


def _print_verified(answer: VerifyAnswer, *, as_json: bool) -> int:
    if as_json:
        print_json(answer)
    else:
        print_line(
            f"{answer.tenant}: {'ok' if answer.ok else 'BROKEN'}, {answer.commits} commits, "
            f"{answer.events} events, {answer.claims} claims, {answer.cells} cells "
            f"(at {answer.cuts} of {answer.changes} commits), head {answer.head}"
        )
        _print_problems(answer.problems)
    return EXIT_OK if answer.ok else EXIT_VERDICT_FALSE


def _print_checked(answer: CheckedAnswer, *, as_json: bool) -> int:
    if as_json:
        print_json(answer)
    else:
        print_line(
            f"{answer.tenant or 'no tenant'}: {'ok' if answer.ok else 'BROKEN'}, {answer.commits} commits, "
            f"{answer.events} events, {answer.proofs} proofs, against {answer.size} commits with root "
            f"{answer.root}"
        )
        if not answer.pinned:
            print_line("  by the key that the file names: give the one that you trust by --key")
        _print_problems(answer.problems)
    return EXIT_OK if answer.ok else EXIT_VERDICT_FALSE


def _print_problems(problems: Sequence[str]) -> None:
    for problem in problems:
        print_line(f"  {problem}")


def checkpoint(
    *,
    tenant: Tenant,
    size: Size = None,
    out: Annotated[Path | None, typer.Option("--out", help="A file to write, for `verify`.")] = None,
    commits: Annotated[
        bool, typer.Option("--commits/--no-commits", help="Whether the file holds the commits too.")
    ] = True,
    data_dir: DataDir = None,
    json: Json = False,
) -> int:
    """Sign how a log stands: how many commits, and the root of the tree over them."""
    answer = run(_checkpoint(settings_for(data_dir), read_tenant(tenant), size, out, with_commits=commits))
    if json:
        print_json(answer)
    else:
        print_line(answer.note.rstrip("\n"))
        print_line(f"\nkey {answer.key}")
    return EXIT_OK


async def _checkpoint(
    settings: Settings, tenant: str, size: int | None, out: Path | None, *, with_commits: bool
) -> CheckpointAnswer:
    async with with_plane(settings) as plane:
        from echoplane._proofs import checkpoint as sign  # noqa: PLC0415 - as above
        from echoplane._proofs import export_lines  # noqa: PLC0415

        answer = await sign(plane, tenant, size=size)
        if out is not None:
            try:
                with out.open("wb") as file:
                    async for line in export_lines(plane, answer, with_commits=with_commits):
                        file.write(line)
            except OSError as error:
                raise BadRequest(
                    field="--out", reason=f"{out} cannot be written: {error.strerror}"
                ) from error
        return answer


def prove_inclusion(
    commit: Annotated[int, typer.Argument(help="Its number, as a receipt names it.", min=1)],
    *,
    tenant: Tenant,
    size: Size = None,
    data_dir: DataDir = None,
    json: Json = True,
) -> int:
    """Print what proves that a commit is in the log, as JSON."""
    del json
    print_json(run(_inclusion(settings_for(data_dir), read_tenant(tenant), commit, size)))
    return EXIT_OK


async def _inclusion(settings: Settings, tenant: str, commit: int, size: int | None) -> InclusionAnswer:
    async with with_plane(settings) as plane:
        from echoplane._proofs import inclusion  # noqa: PLC0415 - as above

        return await inclusion(plane, tenant, commit, size=size)


def prove_consistency(
    old: Annotated[int, typer.Argument(help="Commits of the older log.", min=0)],
    new: Annotated[int | None, typer.Argument(help="Of the later one; else now.", min=0)] = None,
    *,
    tenant: Tenant,
    data_dir: DataDir = None,
    json: Json = True,
) -> int:
    """Print what proves that the log begins as it once was, as JSON."""
    del json
    print_json(run(_consistency(settings_for(data_dir), read_tenant(tenant), old, new)))
    return EXIT_OK


async def _consistency(settings: Settings, tenant: str, old: int, new: int | None) -> ConsistencyAnswer:
    async with with_plane(settings) as plane:
        from echoplane._proofs import consistency  # noqa: PLC0415 - as above

        return await consistency(plane, tenant, old=old, new=new)
