"""The command `import vintages`: revision data, with its record times as known times."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from contracts.errors import BadRequest
from contracts.grants import LOCAL_GRANT, RELATIONS
from contracts.relation_wire import ContractRequest
from contracts.wire import VintagesAnswer
from echoplane._cli_options import DataDir, Json, Tenant, print_json, print_line, run, settings_for
from echoplane._failures import EXIT_OK, EXIT_VERDICT_FALSE
from echoplane._import_vintages import Period, Vintages, parse_columns, read_vintages, start_of
from echoplane._requests import read_name, read_tenant
from echoplane._session import with_plane
from echoplane._settings import Settings
from echoplane._state import Role

if TYPE_CHECKING:
    from echoplane._wiring import Plane


def import_vintages(
    path: Annotated[Path, typer.Argument(help="A CSV with a header line, plain or gzip.")],
    *,
    columns: Annotated[
        str, typer.Option("--columns", help="entity=COLUMN,valid=COLUMN,known=COLUMN,value=COLUMN[,value=…]")
    ],
    tenant: Tenant,
    entity: Annotated[
        str | None, typer.Option("--entity", help="The one entity, where no column is.")
    ] = None,
    relation: Annotated[str | None, typer.Option("--relation", help="Else the name of the column.")] = None,
    period: Annotated[Period, typer.Option("--period", help="How long a value holds.")] = Period.DAY,
    unit: Annotated[str | None, typer.Option("--unit", help="Of the numbers, such as `km`.")] = None,
    source: Annotated[str | None, typer.Option("--source", help="Who published it; else the file.")] = None,
    data_dir: DataDir = None,
    json: Json = False,
) -> int:
    """Import revisions into a tenant without a past: record times become known times."""
    wanted = parse_columns(columns, entity=entity, relation=relation)
    name = read_name(source or path.name.split(".", maxsplit=1)[0], field="--source")
    vintages = read_vintages(path, wanted, period=period, source=name)
    if not vintages.publications:
        raise BadRequest(field=str(path), reason="it holds no values")
    answer = run(_import(settings_for(data_dir), read_tenant(tenant), vintages, source=name, unit=unit))
    if json:
        print_json(answer)
    else:
        print_line(
            f"{answer.tenant}: {answer.rows} rows, {answer.claims} values ({answer.corroborations} repeat "
            f"what stood) in {answer.events} events ({answer.repeated} were there already), "
            f"{answer.publications} commits to {answer.commit}, folded to {answer.folded}, "
            f"{answer.projection_failures} projection failures"
        )
    return EXIT_VERDICT_FALSE if answer.projection_failures else EXIT_OK


async def _import(
    settings: Settings, tenant: str, vintages: Vintages, *, source: str, unit: str | None
) -> VintagesAnswer:
    async with with_plane(settings, Role.WORKER) as plane:
        await plane.make_tenant(tenant)
        commit, repeated = await _tell(plane, tenant, vintages, source=source, unit=unit)
        standing = await plane.wait_folded(tenant, commit)
    return VintagesAnswer(
        tenant=tenant,
        rows=sum(one.rows_count for one in vintages.publications),
        claims=sum(one.claims_count for one in vintages.publications),
        corroborations=vintages.repeated_count,
        events=sum(len(one.drafts) for one in vintages.publications),
        repeated=repeated,
        publications=len(vintages.publications),
        commit=commit,
        folded=standing.cursor,
        projection_failures=standing.dead_letters,
    )


async def _tell(
    plane: Plane, tenant: str, vintages: Vintages, *, source: str, unit: str | None
) -> tuple[int, int]:
    """Append every publication at its own time; return the newest commit and how many events were known."""
    # Loaded here: it brings the whole ledger, which no other command waits for before it starts.
    from echoplane._tenants import backfilling  # noqa: PLC0415 -- see above
    from ledger import log  # noqa: PLC0415 -- see above
    from ledger.write import register_contract  # noqa: PLC0415 -- see above

    database = backfilling(plane)
    commit = repeated = 0
    try:
        stated = log.stating(database, start_of(vintages))
        for request in _contracts(vintages, unit=unit):
            await register_contract(
                stated, tenant, request.contract(), stream=RELATIONS, actor_id=source, grant=LOCAL_GRANT
            )
        for one in vintages.publications:
            receipt = await log.backfill(database, tenant, one.drafts, at=one.at, grant=LOCAL_GRANT)
            commit, repeated = receipt.commit, repeated + len(one.drafts) * receipt.repeated
    finally:
        await database.close()
    return commit, repeated


def _contracts(vintages: Vintages, *, unit: str | None) -> list[ContractRequest]:
    """One source publishes each relation, so a later span replaces an earlier one of its own."""
    numeric = dict.fromkeys(vintages.relations, True)
    for one in vintages.publications:
        for draft in one.drafts:
            for claim in draft.claims:
                numeric[str(claim.relation)] &= isinstance(claim.value, int | float)
    return [
        ContractRequest(
            relation=relation,
            value_type="number" if is_number else "text",
            unit=unit if is_number else None,
            validity="span",
        )
        for relation, is_number in numeric.items()
    ]
