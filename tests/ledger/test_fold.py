from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest
import sqlalchemy as sa

from contracts.errors import Poisoned
from ledger.write import fold, ledger_digest


def _load(name: str):
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return sys.modules[name]


folded = _load("folded")
logs = _load("scenario_logs")


@pytest.fixture
def clock():
    return folded.Hand()


@pytest.fixture
async def db(database, clock):
    made = folded.open_at(database, clock, seed=1)
    yield made
    await made.close()


async def test_fold_moves_the_cursor_to_the_head(db, clock):
    tenant = await folded.tenant_of(db, "t")
    await folded.say(db, tenant, {"actor": {"id": "ann", "class": "user"}, "claims": [{"entity": "ann", "relation": "home", "value": "Lyon"}]})
    report = await fold(db, tenant, logs.PlainProjector(), events_max=10)
    assert report.is_at_head
    assert report.claims == 1
    async with db.tenant(tenant) as conn:
        print((await conn.execute(sa.text("select * from cell"))).all())
        print((await conn.execute(sa.text("select * from line"))).all())
        print(await ledger_digest(conn, 1))
