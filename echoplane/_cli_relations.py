"""Commands about how relations are decided: `relations register`, `list` and `show`."""

from __future__ import annotations

import json as json_module
import sys
from pathlib import Path
from typing import Annotated

import typer
from pydantic import ValidationError

from contracts.epoch_wire import RegisteredAnswer
from contracts.errors import BadRequest
from contracts.limits import LIST_ROWS_MAX
from contracts.relation_wire import ContractAnswer, ContractRequest
from contracts.relations import RelationContract
from echoplane._cli_options import (
    After,
    DataDir,
    Json,
    Limit,
    Tenant,
    print_json,
    print_line,
    run,
    settings_for,
)
from echoplane._failures import EXIT_OK, EXIT_VERDICT_FALSE, refusal
from echoplane._requests import members_once, page_of, read_name, read_tenant
from echoplane._session import with_plane
from echoplane._settings import Settings


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    relations = typer.Typer(no_args_is_help=True, help="How claims on a relation are decided.")
    relations.command("register")(register_relation)
    relations.command("list")(list_relations)
    relations.command("show")(show_relation)
    app.add_typer(relations, name="relations")


def register_relation(
    file: Annotated[str, typer.Argument(help="A JSON object; `-` reads standard input.")],
    *,
    tenant: Tenant,
    new_epoch: Annotated[
        bool,
        typer.Option("--new-epoch", help="Fold all events again where claims stand on the relation."),
    ] = False,
    data_dir: DataDir = None,
    json: Json = False,
) -> int:
    """
    Register a relation's contract. Exit 1 if a claim came in between.

    Where claims stand on the relation, it is refused with what a change would mean; with `--new-epoch` all
    events are folded again under it, and the command stays until that epoch serves.
    """
    try:
        raw = read_file(file)
        request = ContractRequest.model_validate_json(raw)
        members_once(raw, field="FILE")
        contract = request.contract()
    except ValidationError as error:
        raise refusal(error) from None
    answer = run(
        _register(
            settings_for(data_dir), read_tenant(tenant), contract, new_epoch=new_epoch or request.new_epoch
        )
    )
    in_force = answer.is_of(contract)
    if json:
        print_json(answer)
    elif in_force:
        what = "unchanged" if answer.unchanged else "registered"
        print_line(f"{answer.relation}: {what} in epoch {answer.epoch}, {_words(answer)}")
    else:
        print_line(f"{answer.relation}: NOT registered, a claim on it came first; {_words(answer)}")
    return EXIT_OK if in_force else EXIT_VERDICT_FALSE


def read_file(file: str) -> bytes:
    """
    Return what a file holds; `-` is standard input.

    Raises:
        BadRequest: It cannot be read.
    """
    if file == "-":
        return sys.stdin.buffer.read()
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise BadRequest(field="FILE", reason=f"cannot be read: {error.strerror}") from error


def write_file(path: Path, text: str, *, field: str) -> None:
    """
    Write a file.

    Raises:
        BadRequest: It cannot be written.
    """
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise BadRequest(field=field, reason=f"cannot be written: {error.strerror}") from error


async def _register(
    settings: Settings, tenant: str, contract: RelationContract, *, new_epoch: bool
) -> RegisteredAnswer:
    async with with_plane(settings) as plane:
        from echoplane._epochs import wait_serving  # noqa: PLC0415 - the ledger is slow to load

        await plane.make_tenant(tenant)
        answer = await plane.register_contract(tenant, contract, new_epoch=new_epoch)
        if not answer.building:
            return answer
        epoch = await wait_serving(plane, tenant, answer.epoch)
        return answer.model_copy(update={"building": epoch.state == "building"})


def list_relations(
    *,
    tenant: Tenant,
    after: After = None,
    limit: Limit = LIST_ROWS_MAX,
    data_dir: DataDir = None,
    json: Json = False,
) -> int:
    """List the contracts that were registered."""
    found = run(_list(settings_for(data_dir), read_tenant(tenant)))
    for answer in page_of(found, lambda one: one.relation, after=after, limit=limit):
        if json:
            print_json(answer)
        else:
            print_line(f"{answer.relation:<24} {_words(answer)}")
    return EXIT_OK


async def _list(settings: Settings, tenant: str) -> list[ContractAnswer]:
    async with with_plane(settings) as plane:
        await plane.must_have(tenant)
        return await plane.contracts(tenant)


def show_relation(
    name: Annotated[str, typer.Argument(help="The relation.")],
    *,
    tenant: Tenant,
    data_dir: DataDir = None,
    json: Json = False,
) -> int:
    """Show the contract that decides a relation, registered or not."""
    relation = read_name(name, field="NAME")
    answer = run(_show(settings_for(data_dir), read_tenant(tenant), relation))
    if json:
        print_json(answer)
    else:
        text = json_module.dumps(answer.model_dump(mode="json", by_alias=True), indent=2, ensure_ascii=False)
        print_line(text)
    return EXIT_OK


async def _show(settings: Settings, tenant: str, relation: str) -> ContractAnswer:
    async with with_plane(settings) as plane:
        await plane.must_have(tenant)
        return await plane.contract(tenant, relation)


def _words(answer: ContractAnswer) -> str:
    places = " > ".join("=".join(names) for names in answer.authority)
    value = answer.value_type if answer.unit is None else f"{answer.value_type} in {answer.unit}"
    return f"{answer.cardinality} {value} {answer.validity}, {places}"
