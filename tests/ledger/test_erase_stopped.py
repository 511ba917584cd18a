"""What can be erased while an event stops the fold, and when an erasure is announced."""

from __future__ import annotations

import pytest

from contracts.erasures import ErasureRequest
from contracts.errors import NotFound, Poisoned
from contracts.grants import LOCAL_GRANT
from ledger.erase import erase
from ledger.write import skip_event
from tests.ledger.epochs import Choking
from tests.ledger.erasing import claim, opened, said


@pytest.fixture
async def ledger(db, database, clock):
    async with opened(db, database, clock) as made:
        yield made


class Announced:
    """Erases as the plane does, and counts what was announced."""

    def __init__(self, ledger):
        self.ledger, self.count = ledger, 0

    def announce(self):
        self.count += 1

    async def erase(self, *event_ids, subject=None):
        request = ErasureRequest(subject=subject, event_ids=event_ids)
        return await erase(
            self.ledger.db, "acme", Choking(), request, grant=LOCAL_GRANT, announce=self.announce
        )


async def test_only_an_erasure_that_takes_something_is_announced_and_before_it_does(ledger):
    await ledger.say(said("e1", claim("ann", "home", "Lyon")))
    announced = Announced(ledger)

    with pytest.raises(NotFound):
        await announced.erase("ev_0000000000000000000000000a")
    await announced.erase(subject="nobody")
    assert announced.count == 0

    await announced.erase(subject="ann")
    await announced.erase(subject="ann")
    assert announced.count == 1


async def test_what_stops_the_fold_is_erased_once_it_is_skipped_and_nothing_before(ledger):
    await ledger.say(said("e1", claim("ann", "home", "Lyon")))
    await ledger.say(said("e2", claim("ann", "home", "poison")))
    await ledger.say(said("e3", claim("bob", "home", "Graz")))
    announced = Announced(ledger)

    for asked in ([ledger.ids["e1"]], [ledger.ids["e2"]]):
        with pytest.raises(Poisoned):
            await announced.erase(*asked)
    assert announced.count == 0

    await skip_event(ledger.db, "acme", position=2, reason="it says poison", actor_id="op", grant=LOCAL_GRANT)
    report = await announced.erase(ledger.ids["e2"])
    assert report.erased == (ledger.ids["e2"],)
    report = await announced.erase(subject="ann")
    assert report.erased == (ledger.ids["e1"],)
    assert "poison" not in await ledger.words()
    await ledger.intact()
