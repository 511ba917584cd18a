"""An erasure that is cut off between any two of its steps changed nothing, and is done by erasing again."""

from __future__ import annotations

import pytest

from contracts.errors import Unavailable
from ledger import _erasing
from tests.ledger.erasing import check, claim, day, opened, said

STEPS = ("scan_log", "scan_recalls", "events_going", "piece_of", "append_commands_within", "fold_anew")


@pytest.fixture
async def ledger(db, database, clock):
    async with opened(db, database, clock) as made:
        yield made


def connection_in(arguments):
    first = arguments[0]
    return first.reader.conn if hasattr(first, "reader") else first


async def test_an_erasure_whose_session_is_killed_at_any_step_is_whole_or_not_at_all(ledger, monkeypatch):
    await ledger.say(said("e1", claim("ann", "home", "Lyon"), observed_at=day(1)))
    await ledger.say(said("e2", claim("ann", "home", "Graz"), observed_at=day(2)))
    await ledger.fold()
    before = await ledger.digest()
    announced = []

    for step in STEPS:
        real = getattr(_erasing, step)

        async def killed_after(*arguments, real=real, step=step, **options):
            found = await real(*arguments, **options)
            announced.append(step)
            await connection_in(arguments).exec_driver_sql("SELECT pg_terminate_backend(pg_backend_pid())")
            return found

        with monkeypatch.context() as patch:
            patch.setattr(_erasing, step, killed_after)
            with pytest.raises(Unavailable):
                await ledger.erase("e2")
        assert await ledger.digest() == before, step
        assert (await ledger.ask("ann", "home")).value == "Graz"

    assert announced == list(STEPS)
    report = await ledger.erase("e2")
    assert report.erased == (ledger.ids["e2"],)
    assert "Graz" not in await ledger.words()
    await ledger.intact()
    await check(ledger)
