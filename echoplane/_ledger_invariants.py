"""
Invariants of a real ledger at a size, as a gate's runner: a log is drawn, told, asked, and told again.

What is true of the drawn log is worked out here from the draws alone, by the two rules that it needs:
of what a source did not take back, the latest beginning holds; what is recorded later, nobody knew then.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from contracts.events import EventDraft
from contracts.grants import EPOCHS, LOCAL_GRANT
from contracts.resolutions import KeyResolution, Missing, Resolved
from echoplane._conformance_ledger import CaseLedger, throw_away
from ledger import log
from ledger.resolve import resolve_many, verify_cells
from ledger.write import begin_epoch, verify_claims
from projection import RuleProjector

INVARIANTS: Final = (
    "log-intact", "claims-follow", "cells-follow", "as-of-truth", "past-is-stable", "repeats-write-nothing",
    "rebuild-agrees",
)  # fmt: skip
_CLAIMS_OF_KEY: Final = 20
_SAMPLE: Final = 300
_AT_ONCE: Final = 500
_START: Final = datetime(2020, 1, 1, tzinfo=UTC)
_DAYS: Final = 400
_RETRACTED_SHARE: Final = 0.1

Ask = tuple[int, int, int]
"""A key, a day, and how many of the drawn events are known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Said:
    """One drawn event: a value of a key from a day on, or the number of the event that is taken back."""

    key: int
    day: int
    takes_back: int | None


@dataclass(slots=True, kw_only=True)
class _Log:
    """A drawn log and the ledger it is told to."""

    said: list[_Said]
    chance: random.Random
    ledger: CaseLedger
    ends: list[int] = field(default_factory=list)
    """After so many drawn events each commit of `ledger.commits` ends."""

    def draft(self, number: int) -> EventDraft:
        one = self.said[number]
        if one.takes_back is None:
            since = (_START + timedelta(days=one.day)).isoformat()
            entity, relation = _key(one.key)
            claim: dict[str, Any] = {
                "stance": "assert", "entity": entity, "relation": relation, "value": f"v{number}",
                "valid": {"since": since},
            }  # fmt: skip
        else:
            claim = {"stance": "retract", "targets": [{"source_event_id": f"d{one.takes_back}"}]}
        form = {
            "stream": f"stream-{one.key % 8}",
            "kind": "observation",
            "actor": {"id": "sensor", "class": "sensor"},
            "source_event_id": f"d{number}",
            "claims": [claim],
        }
        return EventDraft.model_validate(form)

    async def tell(self, until: int) -> None:
        """Append and fold what was drawn, up to a number."""
        for first in range(self.ends[-1] if self.ends else 0, until, _AT_ONCE):
            last = min(first + _AT_ONCE, until)
            drafts = [self.draft(number) for number in range(first, last)]
            names = [f"d{number}" for number in range(first, last)]
            await self.ledger.tell([drafts], names=[names], reading=_START + timedelta(seconds=last))
            self.ends.append(last)
        await self.ledger.fold()

    def asks(self, known: Sequence[int]) -> list[Ask]:
        """Draw questions: any key, any day, known after any of these commits."""
        keys = sorted({one.key for one in self.said})
        return [
            (self.chance.choice(keys), self.chance.randrange(_DAYS), self.chance.choice(known))
            for _ in range(_SAMPLE)
        ]

    def truth(self, ask: Ask) -> str | None:
        """Return the value that holds, None where none does."""
        key, day, known = ask
        gone = {one.takes_back for one in self.said[:known] if one.takes_back is not None}
        standing = [
            (one.day, number)
            for number, one in enumerate(self.said[:known])
            if one.key == key and one.takes_back is None and number not in gone and one.day <= day
        ]
        return f"v{max(standing)[1]}" if standing else None

    async def answers(self, asks: Sequence[Ask]) -> list[KeyResolution]:
        """Return what the ledger says to each."""
        found = []
        for key, day, known in asks:
            valid_at = _START + timedelta(days=day)
            view = await self.ledger.view(valid_at=valid_at, told=self.ends.index(known) + 1)
            async with self.ledger.snapshot() as conn:
                keys = await self.ledger.keys(conn)
                found += await resolve_many(conn, keys, view, [_key(key)])
        return found


async def check_invariants(size: int, seed: int) -> dict[str, bool]:
    """Draw a log of so many events, tell it to a ledger that goes away, and return what holds of it."""
    async with throw_away() as ledgers:
        drawn = _drawn(size, seed, await ledgers.new())
        held: dict[str, bool] = {}
        half = size // 2
        await drawn.tell(half)
        early = drawn.asks(drawn.ends)
        before = await drawn.answers(early)
        await drawn.tell(size)
        held["past-is-stable"] = _values(before) == _values(await drawn.answers(early))
        asks = drawn.asks(drawn.ends)
        held["as-of-truth"] = _values(await drawn.answers(asks)) == [drawn.truth(ask) for ask in asks]
        for name, check in _CHECKS.items():
            held[name] = await check(drawn)
        return held


def _drawn(size: int, seed: int, ledger: CaseLedger) -> _Log:
    chance = random.Random(seed)  # noqa: S311 -- it has to be drawn again
    said: list[_Said] = []
    mine: dict[int, list[int]] = {}
    for number in range(size):
        key = chance.randrange(max(1, size // _CLAIMS_OF_KEY))
        earlier = mine.setdefault(key, [])
        if earlier and chance.random() < _RETRACTED_SHARE:
            taken = earlier.pop(chance.randrange(len(earlier)))
            said.append(_Said(key=key, day=0, takes_back=taken))
        else:
            said.append(_Said(key=key, day=chance.randrange(_DAYS), takes_back=None))
            earlier.append(number)
    return _Log(said=said, chance=chance, ledger=ledger)


async def _log_intact(drawn: _Log) -> bool:
    return (await log.verify(drawn.ledger.database, drawn.ledger.tenant)).intact


async def _claims_follow(drawn: _Log) -> bool:
    report = await verify_claims(drawn.ledger.database, drawn.ledger.tenant, RuleProjector())
    return not report.problems_count


async def _cells_follow(drawn: _Log) -> bool:
    return not (await verify_cells(drawn.ledger.database, drawn.ledger.tenant)).problems_count


async def _repeats_write_nothing(drawn: _Log) -> bool:
    head = await drawn.ledger.head()
    drafts = [drawn.draft(number) for number in range(drawn.ends[0])]
    receipt = await log.append(drawn.ledger.database, drawn.ledger.tenant, drafts, grant=LOCAL_GRANT)
    return receipt.repeated and await drawn.ledger.head() == head


async def _rebuild_agrees(drawn: _Log) -> bool:
    ledger = drawn.ledger
    asks = drawn.asks(drawn.ends)
    before = _values(await drawn.answers(asks))
    await begin_epoch(
        ledger.database, ledger.tenant, projector_version=RuleProjector().version, stream=EPOCHS,
        actor_id="operator", grant=LOCAL_GRANT,
    )  # fmt: skip
    await ledger.fold()
    async with ledger.snapshot() as conn:
        epoch = (await log.serving(conn)).epoch
    # Told again, by an epoch that folded it in one go instead of as it came.
    return epoch > 1 and _values(await drawn.answers(asks)) == before


_CHECKS: Final[dict[str, Callable[[_Log], Coroutine[Any, Any, bool]]]] = {
    "repeats-write-nothing": _repeats_write_nothing,
    "log-intact": _log_intact,
    "claims-follow": _claims_follow,
    "cells-follow": _cells_follow,
    "rebuild-agrees": _rebuild_agrees,
}


def _key(number: int) -> tuple[str, str]:
    return f"entity-{number}", f"relation-{number % 7}"


def _values(answers: Sequence[KeyResolution]) -> list[object]:
    return [_value(one) for one in answers]


def _value(answer: KeyResolution) -> object:
    match answer.resolution:
        case Resolved() as one:
            return one.value
        case Missing():
            return None
        case other:
            return f"{type(other).__name__} was not drawn"
