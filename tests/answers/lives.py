"""
Lives made up by chance: what was told of them, what is true, and questions in three wordings each.

The truth is computed from the stretches alone, with no code of ours. Of what is told coarsely ("in 2021")
the true day lies within it: an answer must hold for that day, be it as a range.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final

PEOPLE: Final = ("Ann", "Ben", "Cleo", "Dov", "Edda", "Finn", "Gita", "Hugo", "Ines", "Jon")
TOWNS: Final = ("Bergen", "Oslo", "Bodø", "Ghent", "Lyon")
FIRST: Final = date(2015, 1, 1)
HEARD: Final = date(2025, 6, 1)
"""The day on which everything was told."""


@dataclass(frozen=True)
class Stay:
    """One stretch in a town; `told` is how its start was said, `end` is None while it lasts."""

    town: str
    start: date
    end: date | None
    told: str

    @property
    def is_exact(self) -> bool:
        return self.told == self.start.isoformat()


@dataclass(frozen=True)
class Asked:
    """One question in one wording, and what is true: a value, or None where nothing may be answered."""

    kind: str
    text: str
    truth: Any


def lives(seed: int, *, coarse: bool, people: int = len(PEOPLE)) -> dict[str, list[Stay]]:
    """Make up where everybody lived, one stretch after the other, with a gap here and there."""
    chance = random.Random(seed)
    return {person: _life(chance, coarse=coarse) for person in PEOPLE[:people]}


def _life(chance: random.Random, *, coarse: bool) -> list[Stay]:
    stays: list[Stay] = []
    start = FIRST + timedelta(days=chance.randint(0, 900))
    for _ in range(chance.randint(1, 5)):
        last = stays[-1] if stays else None
        town = chance.choice([name for name in TOWNS if last is None or name != last.town])
        told = start.isoformat()
        if coarse and chance.random() < 0.5 and (last is None or last.start.year < start.year):
            told = chance.choice((f"{start:%Y}", f"{start:%Y-%m}"))
        if last is not None and last.end is None:
            stays[-1] = Stay(last.town, last.start, start, last.told)
        stays.append(Stay(town, start, None, told))
        start += timedelta(days=chance.randint(400, 900))
        if start >= HEARD:
            break
        if chance.random() < 0.25:
            stays[-1] = Stay(town, stays[-1].start, start - timedelta(days=chance.randint(20, 300)), told)
    return stays


def told(lived: dict[str, list[Stay]], *, heard: date = HEARD) -> Iterator[dict[str, Any]]:
    """Yield the events that tell it, in no order of time."""
    claims: list[dict[str, Any]] = []
    for person, stays in lived.items():
        own = {"entity": person, "relation": "lives_in"}
        for stay, after in zip(stays, [*stays[1:], None], strict=True):
            claims.append({**own, "value": stay.town, "valid": {"since": stay.told}})
            if stay.end is not None and (after is None or after.start != stay.end):
                claims.append({**own, "stance": "end", "valid": {"since": stay.end.isoformat()}})
    random.Random(len(claims)).shuffle(claims)
    for number, claim in enumerate(claims):
        yield {
            "stream": "s", "kind": "claim", "actor": {"id": "Zoe", "class": "user"}, "claims": [claim],
            "source_event_id": f"c{number}", "observed_at": f"{heard.isoformat()}T12:00:00Z",
        }  # fmt: skip


def at(stays: list[Stay], day: date) -> str | None:
    return next((one.town for one in stays if one.start <= day and (one.end is None or day < one.end)), None)


def questions(
    lived: dict[str, list[Stay]],
    *,
    now: datetime,
    seed: int,
    people: int = len(PEOPLE),
    towns: int = len(TOWNS),
) -> Iterator[Asked]:
    """Yield every kind of question about the first people and towns, each in three wordings."""
    chance = random.Random(seed)
    today = now.date()
    for person, stays in list(lived.items())[:people]:
        yield from _of_person(person, stays, today, chance)
    for town in TOWNS[:towns]:
        yield from _of_town(town, lived, today, chance)


def _of_person(person: str, stays: list[Stay], today: date, chance: random.Random) -> Iterator[Asked]:
    named = chance.choice(stays)
    yield from _in_order(person, stays, named)
    yield from _in_time(person, stays, named.town, today)
    yield from _in_all(person, stays, chance.choice(TOWNS))


def _in_order(person: str, stays: list[Stay], named: Stay) -> Iterator[Asked]:
    town, place = named.town, stays.index(named)
    own = [stay for stay in stays if stay.town == town]
    before = stays[place - 1].town if place and len(own) == 1 else None
    after = stays[place + 1].town if place + 1 < len(stays) and len(own) == 1 else None
    current = stays[-1] if stays[-1].end is None else None
    place_of = current is not None and len(stays) > 1 and stays[-2].town
    yield from _ask(
        "before",
        before,
        f"Where did {person} live before {town}?",
        f"Where was {person}'s home before {town}?",
        f"Where did {person} live right before {town}?",
    )
    yield from _ask(
        "after",
        after,
        f"Where did {person} live after {town}?",
        f"Where was {person}'s home after {town}?",
        f"Where did {person} live directly after {town}?",
    )
    yield from _ask(
        "previous",
        place_of or None,
        f"Where did {person} live previously?",
        f"Where did {person} live before?",
        f"Where did {person} live before that?",
    )


def _in_time(person: str, stays: list[Stay], town: str, today: date) -> Iterator[Asked]:
    own = [stay for stay in stays if stay.town == town]
    current = stays[-1] if stays[-1].end is None else None
    days = sum(((stay.end or today) - stay.start).days for stay in own)
    is_over = all(stay.end is not None for stay in own)
    until = own[0].end if len(own) == 1 else None
    yield from _ask(
        "how long",
        {"days": days} if is_over else None,
        f"How long did {person} live in {town}?",
        f"For how long did {person} reside in {town}?",
        f"How long was {person} living in {town}?",
    )
    yield from _ask(
        "how many days",
        days,
        f"How many days has {person} lived in {town} in total?",
        f"For how many days has {person} lived in {town} altogether?",
        f"How many days has {person} been living in {town} overall?",
    )
    yield from _ask(
        "until",
        None if until is None else until.isoformat(),
        f"Until when did {person} live in {town}?",
        f"When did {person} stop living in {town}?",
        f"Until what day did {person} live in {town}?",
    )
    yield from _ask(
        "since",
        current.start.isoformat() if current is not None and town == current.town else None,
        f"Since when does {person} live in {town}?",
        f"Since when has {person} lived in {town}?",
        f"Since what day has {person} been living in {town}?",
    )


def _in_all(person: str, stays: list[Stay], other: str) -> Iterator[Asked]:
    ever = True if any(stay.town == other for stay in stays) else None
    yield from _ask(
        "ever",
        ever,
        f"Has {person} ever lived in {other}?",
        f"Did {person} ever live in {other}?",
        f"Did {person} live in {other} at any time?",
    )
    once = list(dict.fromkeys(stay.town for stay in stays))
    yield from _ask(
        "all",
        once,
        f"Where has {person} lived?",
        f"Where all has {person} lived so far?",
        f"In which places has {person} lived?",
    )
    yield from _ask(
        "how many places",
        len(once),
        f"How many places has {person} lived in?",
        f"How many different places has {person} lived in so far?",
        f"How many distinct places has {person} lived in?",
    )


def _of_town(town: str, lived: dict[str, list[Stay]], today: date, chance: random.Random) -> Iterator[Asked]:
    day = FIRST + timedelta(days=chance.randint(300, 3700))
    on = f"{day.day} {day:%B} {day.year}"
    now = sorted(person for person, stays in lived.items() if at(stays, today) == town) or None
    then = sorted(
        person
        for person, stays in lived.items()
        if at(stays, day) == town and at(stays, day - timedelta(days=1)) == town
    )
    # Who came or went on the very day did not live there all day.
    moved = any(
        town in {at(stays, day), at(stays, day - timedelta(days=1)), at(stays, day + timedelta(days=1))}
        and len({at(stays, day + timedelta(days=step)) for step in (-1, 0, 1)}) > 1
        for stays in lived.values()
    )
    settled = None if moved or not then else then
    yield from _ask(
        "who",
        now,
        f"Who lives in {town}?",
        f"Which people live in {town} now?",
        f"List everyone who lives in {town}.",
    )
    yield from _ask(
        "who then",
        settled,
        f"Who lived in {town} on {on}?",
        f"Which people lived in {town} on {on}?",
        f"Who was living in {town} on {on}?",
    )
    yield from _ask(
        "how many",
        now and len(now),
        f"How many people live in {town}?",
        f"How many people are living in {town} now?",
        f"How many persons live in {town} today?",
    )
    yield from _ask(
        "how many then",
        settled and len(settled),
        f"How many people lived in {town} on {on}?",
        f"How many people were living in {town} on {on}?",
        f"How many persons lived in {town} on {on}?",
    )


def _ask(kind: str, truth: Any, *texts: str) -> Iterator[Asked]:
    assert len(texts) == 3
    for text in texts:
        yield Asked(kind, text, truth)


def holds(asked: Asked, value: Any) -> bool:
    """Say whether an answer is true, exactly or as a range that the truth lies in."""
    truth = asked.truth
    if truth is None:
        return False
    match value:
        case {"at_least": {"days": least}, "at_most": {"days": most}} if isinstance(truth, dict):
            return bool(least <= truth["days"] <= most)
        case {"at_least": int(least), "at_most": int(most)}:
            return bool(least <= truth <= most)
        case {"earliest": str(earliest), "latest": str(latest)}:
            return bool(_moment(earliest) <= _moment(truth) < _moment(latest))
        case str(moment) if asked.kind in {"until", "since"}:
            return _moment(moment) == _moment(truth)
        case [*names] if asked.kind in {"who", "who then"}:
            return sorted(names) == truth
        case _:
            return bool(value == truth) and isinstance(value, bool) == isinstance(truth, bool)


def _moment(text: str) -> datetime:
    found = datetime.fromisoformat(text)
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)
