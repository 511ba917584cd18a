"""Two tenants on one plane, for the proofs of isolation; the fixtures of the doors' own tests put it up."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, Final

import httpx
import psycopg
import pytest
import sqlalchemy as sa

from contracts.grants import ANY, LOCAL_GRANT, Grant, Right
from contracts.relations import Cardinality, default_contract
from echoplane._http import make_app
from echoplane._postgres import SUPERUSER
from echoplane._wiring import Plane
from ledger.write import register_contract
from tests.acceptance.door import Door, claim, said, stated
from tests.acceptance.fuzzing import TABLES, Target
from tests.echoplane.conftest import discovery, place, plane, remember, turn  # noqa: F401 - fixtures

OURS: Final = "ours"
THEIRS: Final = "theirs"
SECRETS: Final = ("Quokkaville", "Zanzibar Mills", "Xylia", "marzipan", "s-xylia", "t-xylia")
"""Words that only the other tenant ever said: places, names, values, a stream and a source id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What the other tenant has, as if all of it had leaked: ids, hashes, names and keys."""

    token: str
    events: tuple[str, ...]
    context: str
    trail: str

    @property
    def ids(self) -> tuple[str, ...]:
        return (*self.events, self.context, self.trail)


def leaked(text: str) -> list[str]:
    """Return what a text holds of the other tenant's words."""
    return [secret for secret in SECRETS if secret.casefold() in text.casefold()]


@pytest.fixture
async def theirs(plane: Plane, discovery: None, remember: Any) -> Known:  # noqa: F811 - fixtures
    """The other tenant: text, structured claims, a correction, a contract, a context, a token."""
    xylia = {"stream": "s-xylia", "kind": "turn", "actor": {"id": "Xylia", "class": "user"}}
    await plane.make_tenant(THEIRS)
    await register_contract(
        plane.database,
        THEIRS,
        default_contract("hobby", cardinality=Cardinality.MANY),
        stream="s-xylia",
        actor_id="Xylia",
        grant=LOCAL_GRANT,
    )
    receipts = await remember(
        THEIRS,
        xylia | {"text": "I live in Quokkaville. I like marzipan.", "source_event_id": "t-xylia-1"},
        xylia | {
            "kind": "claim", "idempotency_key": "t-xylia-key",
            "claims": [{"entity": "Xylia", "relation": "works_at", "value": "Zanzibar Mils"}],
        },
    )  # fmt: skip
    receipts += await remember(
        THEIRS,
        xylia | {
            "kind": "correction", "targets": [{"event": receipts[1].event_ids[0]}],
            "claims": [{"entity": "Xylia", "relation": "works_at", "value": "Zanzibar Mills"}],
        },
        xylia | {
            "kind": "derivation", "actor": {"id": "Xylia", "class": "user"},
            "claims": [{
                "entity": "Xylia", "relation": "commute", "value": "by marzipan cart",
                "inputs": [{"event": receipts[0].event_ids[0]}],
            }],
        },
    )  # fmt: skip
    token = await token_of(plane, THEIRS)
    async with caller(plane, token) as client:
        answer = (await client.post(f"/v1/{THEIRS}/ask", json={"question": "Where does Xylia live?"})).json()
    assert answer["answer"] == "Quokkaville"
    return Known(
        token=token,
        events=tuple(receipt.event_ids[0] for receipt in receipts),
        context=answer["context"]["hash"],
        trail=answer["trail"],
    )


@pytest.fixture
async def ours(plane: Plane, discovery: None, remember: Any) -> str:  # noqa: F811 - fixtures
    """Our tenant, and a token with every right in it; it has asked something too."""
    ann = {"stream": "s-ann", "kind": "turn", "actor": {"id": "Ann", "class": "user"}}
    await remember(OURS, ann | {"text": "I live in Lyon. I like tea.", "source_event_id": "t1"})
    token = await token_of(plane, OURS)
    async with caller(plane, token) as client:
        asked = await client.post(f"/v1/{OURS}/ask", json={"question": "Where does Ann live?"})
    assert asked.json()["answer"] == "Lyon"
    return token


async def token_of(opened: Plane, tenant: str, **grant: Any) -> str:
    """Make a token with every right of one tenant, unless told otherwise."""
    everything = {"rights": frozenset(Right), "actors": frozenset({ANY}), "classes": frozenset({ANY})}
    made = await opened.make_token(tenant, Grant(tenant=tenant, **(everything | grant)), label="t")
    return made.token


def caller(opened: Plane, token: str | None) -> httpx.AsyncClient:
    """Return a client of the HTTP door that bears a token, or none."""
    return httpx.AsyncClient(
        transport=httpx.ASGITransport(make_app(opened)),
        base_url="http://127.0.0.1:7415",
        headers={} if token is None else {"authorization": f"Bearer {token}"},
    )


@pytest.fixture
async def we(plane: Plane, ours: str) -> AsyncIterator[httpx.AsyncClient]:  # noqa: F811 - fixtures
    """The HTTP door, with our token."""
    async with caller(plane, ours) as client:
        yield client


@pytest.fixture
async def door(plane: Plane) -> AsyncIterator[Door]:  # noqa: F811 - fixtures
    """An empty tenant behind the HTTP door, called with the local token."""
    await plane.make_tenant("home")
    async with caller(plane, plane.local_token) as client:
        yield Door(client=client, plane=plane, tenant="home")


@pytest.fixture
def superuser(database: Any, postgres: Any) -> str:
    """How to connect above row level security."""
    return str(postgres.conninfo(role=SUPERUSER, database=sa.make_url(database.plane).database))


@pytest.fixture
async def target(door: Door, superuser: str) -> AsyncIterator[Target]:
    """A tenant with a little of everything in it."""
    await door.tell(
        said("I live in Lyon. I like tea.", who="Ann", source_event_id="t1"),
        stated(claim("Ann", "works_at", "Northwind"), who="Ann", idempotency_key="k1"),
    )
    with psycopg.connect(superuser, autocommit=True) as rows:
        made = Target(app=make_app(door.plane), token=door.plane.local_token, tenant=door.tenant, rows=rows)
        made.written = made.digest()
        yield made


@pytest.fixture
def everything(superuser: str) -> Any:
    """Return a function that reads every table's rows of one tenant."""

    def everything(tenant: str) -> dict[str, list[tuple[Any, ...]]]:
        with psycopg.connect(superuser, autocommit=True) as connection:
            tables = [row[0] for row in connection.execute(TABLES).fetchall()]
            query = "SELECT t::text FROM {} AS t WHERE tenant = %s"
            return {
                table: sorted(connection.execute(query.format(table), [tenant]).fetchall(), key=repr)
                for table in tables
            }

    return everything
