"""Erasing a subject, and where keys have many lines or names are one, on a real ledger."""

from __future__ import annotations

import pytest

from contracts.resolutions import MissingReason, ResolvedSet
from tests.ledger.erasing import check, claim, day, opened, said, since


@pytest.fixture
async def ledger(db, database, clock):
    async with opened(db, database, clock) as made:
        yield made


# --- a subject -----------------------------------------------------------------------------------


async def test_a_subject_goes_with_all_that_names_it_or_is_about_it(ledger):
    await ledger.say(
        said("e1", claim("ann", "home", "Lyon"), claim("box", "place", "shelf"), observed_at=day(2))
    )
    await ledger.say(said("e2", claim("box", "place", "floor"), actor="bob", observed_at=day(1)))
    await ledger.say(said("e3", claim("box", "colour", "red"), subjects=["ann"]))
    await ledger.say(said("e4", claim("box", "owner", "ann")))
    await ledger.say(said("e5", {"stance": "retract", "targets": [{"source_event_id": "e1", "ordinal": 0}]}))

    report = await ledger.erase(subject="ann")

    assert report.erased == tuple(ledger.ids[name] for name in ("e1", "e3", "e5"))
    assert await ledger.reason("ann", "home") == MissingReason.NEVER_KNOWN
    assert await ledger.reason("ann", "home", cut=1) == MissingReason.NEVER_KNOWN
    assert await ledger.reason("box", "place", cut=1) == MissingReason.ERASED
    assert (await ledger.ask("box", "place")).value == "floor"
    assert await ledger.reason("box", "colour") == MissingReason.ERASED
    assert (await ledger.ask("box", "owner")).value == "ann"
    await ledger.intact()
    await check(ledger)


async def test_a_subject_is_all_that_it_was_one_with(ledger):
    op = {"actor": "op", "actor_class": "operator"}
    await ledger.say(said("e1", claim("ann", "home", "Lyon"), observed_at=day(1)))
    await ledger.say(said("e2", claim("ann", "same_as", "annie"), **op))
    await ledger.say(said("e3", claim("annie", "work", "Brightly")))
    await ledger.say(said("e4", claim("annie", "same_as", "nan"), **op))
    await ledger.say(said("e5", claim("bob", "home", "Graz"), actor="bob"))

    report = await ledger.erase(subject="nan")

    assert report.erased == tuple(ledger.ids[name] for name in ("e1", "e2", "e3", "e4"))
    assert report.tombstones_count == 0
    words = await ledger.words()
    assert not [word for word in ("ann", "nan", "Lyon", "Brightly") if f'"{word}"' in words]
    for name, relation in (("ann", "home"), ("annie", "work"), ("nan", "home"), ("ann", "same_as")):
        assert await ledger.reason(name, relation) == MissingReason.NEVER_KNOWN
    assert (await ledger.ask("bob", "home")).value == "Graz"
    await ledger.intact()
    await check(ledger)


async def test_what_an_erased_subject_withdrew_from_others_stays_withdrawn(ledger):
    await ledger.say(
        said("e1", claim("box", "place", "shelf"), claim("ann", "home", "Lyon"), observed_at=day(1))
    )
    retract = {"stance": "retract", "targets": [{"source_event_id": "e1", "ordinal": 0}]}
    await ledger.say(said("e2", claim("ann", "work", "Brightly"), retract))
    await ledger.say(said("e3", claim("box", "place", "floor", **since(2)), actor="bob"))

    await ledger.erase(subject="ann")

    assert (await ledger.ask("box", "place")).value == "floor"
    assert await ledger.reason("box", "place", at="2026-01-15T00:00:00Z") == MissingReason.WITHDRAWN
    assert await ledger.reason("box", "place", cut=1) == MissingReason.ERASED
    await ledger.intact()
    await check(ledger)


async def test_what_was_said_of_another_by_mistake_stays_taken_back_when_the_right_one_is_erased(ledger):
    await ledger.say(said("e1", claim("box", "place", "shelf"), observed_at=day(1)))
    await ledger.say(said("e2", claim("box", "place", "floor"), observed_at=day(2)))
    # It was the crate that stood on the floor: the key itself was wrong.
    moved = {"stance": "correct", "targets": [{"source_event_id": "e2"}]}
    await ledger.say(said("c1", {"entity": "crate", "relation": "place", **moved}))
    await ledger.fold()
    assert (await ledger.ask("box", "place")).value == "shelf"

    await ledger.erase(subject="crate")

    assert (await ledger.ask("box", "place")).value == "shelf"
    assert (await ledger.ask("box", "place", cut=2)).value == "floor"
    assert await ledger.reason("crate", "place") == MissingReason.NEVER_KNOWN
    assert "crate" not in await ledger.words()
    await ledger.intact()
    await check(ledger)


async def test_of_what_was_erased_piece_by_piece_nothing_is_left_once_its_subject_is(ledger):
    await ledger.say(said("e1", claim("ann", "home", "Lyon"), observed_at=day(1)))
    await ledger.say(said("e2", claim("ann", "home", "Graz"), claim("ann", "job", "baker")))
    await ledger.erase("e1")
    assert await ledger.reason("ann", "home", cut=1) == MissingReason.ERASED

    report = await ledger.erase(subject="ann")

    assert (report.erased, report.tombstones_count) == ((ledger.ids["e2"],), 0)
    for cut in (1, 2, None):
        assert await ledger.reason("ann", "home", cut=cut) == MissingReason.NEVER_KNOWN
    await ledger.intact()
    await check(ledger)


async def test_a_subject_of_which_all_was_erased_before_is_erased_once(ledger):
    await ledger.say(said("e1", claim("ann", "home", "Lyon"), observed_at=day(1)))
    await ledger.erase("e1")
    assert await ledger.reason("ann", "home") == MissingReason.ERASED

    first = await ledger.erase(subject="ann")
    second = await ledger.erase(subject="ann")

    assert (first.erased, first.commit, second.commit) == ((), 3, None)
    assert await ledger.reason("ann", "home") == MissingReason.NEVER_KNOWN
    await ledger.intact()
    await check(ledger)


async def test_what_was_erased_before_its_subject_goes_on_doing_what_it_did_to_others(ledger):
    await ledger.say(
        said("e1", claim("box", "place", "shelf"), claim("ann", "home", "Lyon"), observed_at=day(1))
    )
    # The key was wrong: it is ann who is there. Taken back from the box for good.
    moved = claim(
        "ann", "place", "shelf", stance="correct", targets=[{"source_event_id": "e1", "ordinal": 0}]
    )
    await ledger.say(said("c1", moved))
    await ledger.erase("c1")
    assert await ledger.reason("ann", "place") == MissingReason.ERASED

    await ledger.erase(subject="ann")

    assert await ledger.reason("ann", "place") == MissingReason.NEVER_KNOWN
    assert await ledger.reason("box", "place", cut=1) == MissingReason.ERASED
    assert await ledger.reason("box", "place") == MissingReason.WITHDRAWN
    await ledger.intact()
    await check(ledger)


async def test_a_subject_that_spoke_for_itself_is_still_believed_where_it_spoke_of_others(ledger):
    await ledger.say(
        said("e0", claim("box", "home", "shelf", **since(1)), actor="op", actor_class="operator")
    )
    await ledger.say(said("e1", claim("ann", "home", "Graz", **since(2)), actor="op", actor_class="operator"))
    # Only ann herself may say that the operator took her for the box.
    moved = {"stance": "correct", "targets": [{"source_event_id": "e1"}]}
    await ledger.say(said("c1", {"entity": "box", "relation": "home", **moved}))
    await ledger.fold()
    assert (await ledger.ask("box", "home")).value == "Graz"

    await ledger.erase(subject="ann")

    assert await ledger.reason("box", "home") == MissingReason.ERASED
    assert await ledger.reason("ann", "home") == MissingReason.NEVER_KNOWN
    await ledger.intact()
    await check(ledger)


# --- many values, occurrences, identity ----------------------------------------------------------


async def test_an_end_that_is_erased_does_not_bring_its_value_back(ledger):
    await ledger.register("pets")
    await ledger.say(
        said("e1", claim("ann", "pets", "Miso", **since(1)), claim("ann", "pets", "Otis", **since(1)))
    )
    await ledger.say(said("e2", claim("ann", "pets", "Miso", stance="end", **since(2))))
    await ledger.fold()
    assert [member.value for member in (await ledger.ask("ann", "pets")).members] == ["Otis"]

    await ledger.erase("e2")

    answer = await ledger.ask("ann", "pets")
    assert isinstance(answer, ResolvedSet)
    assert [member.value for member in answer.members] == ["Otis"]
    january = await ledger.ask("ann", "pets", at="2026-01-15T00:00:00Z")
    assert sorted(member.value for member in january.members) == ["Miso", "Otis"]

    await ledger.erase("e1")
    assert await ledger.reason("ann", "pets") == MissingReason.ERASED
    await ledger.intact()
    await check(ledger)


async def test_a_later_mention_with_the_source_id_of_an_erased_one_is_another_occurrence(ledger):
    await ledger.register("visit", like="visit")
    january, march = {"valid": {"at": "2026-01-05"}}, {"valid": {"at": "2026-03-05"}}
    await ledger.say(said("e1", claim("ann", "visit", "Oslo", occurrence_id="x", **january)))
    await ledger.erase("e1")
    await ledger.say(said("e2", claim("ann", "visit", "Oslo", occurrence_id="x", **march)))
    await ledger.fold()

    assert await ledger.reason("ann", "visit", at="2026-01-05T12:00:00Z") == MissingReason.ERASED
    found = await ledger.ask("ann", "visit", at="2026-03-05T12:00:00Z")
    assert [member.value for member in found.members] == ["Oslo"]
    await ledger.erase("e2")
    assert await ledger.reason("ann", "visit", at="2026-03-05T12:00:00Z") == MissingReason.ERASED
    await ledger.intact()
    await check(ledger)


async def test_two_are_not_one_any_more_once_what_said_so_is_erased_at_any_cut(ledger):
    op = {"actor": "op", "actor_class": "operator"}
    await ledger.say(said("e1", claim("ann", "home", "Lyon"), observed_at=day(1)))
    await ledger.say(said("e2", claim("ann", "same_as", "annie"), **op))
    await ledger.fold()
    assert (await ledger.ask("annie", "home")).value == "Lyon"

    await ledger.erase("e2")

    for cut in (2, None):
        assert await ledger.reason("annie", "home", cut=cut) == MissingReason.NEVER_KNOWN
        assert (await ledger.ask("ann", "home", cut=cut)).value == "Lyon"
        assert await ledger.reason("ann", "same_as", cut=cut) == MissingReason.ERASED
    await ledger.intact()
    await check(ledger)


async def test_an_older_word_about_who_is_who_does_not_come_back(ledger):
    op = {"actor": "op", "actor_class": "operator"}
    await ledger.say(said("e1", claim("ann", "same_as", "annie"), **op))
    await ledger.say(said("e2", claim("ann", "not_same_as", "annie"), **op))
    await ledger.say(said("e3", claim("ann", "home", "Lyon")))

    await ledger.erase("e2")

    assert await ledger.reason("annie", "home") == MissingReason.NEVER_KNOWN
    assert await ledger.reason("ann", "same_as") == MissingReason.ERASED
    assert isinstance(await ledger.ask("ann", "same_as", cut=1), ResolvedSet)
    await check(ledger)


async def test_a_subject_is_found_however_its_name_is_composed_and_no_other_one(ledger):
    composed, decomposed = "Jos\N{LATIN SMALL LETTER E WITH ACUTE}", "Jose\N{COMBINING ACUTE ACCENT}"
    others = ["Jose", composed.lower(), f"{composed}\N{ZERO WIDTH JOINER}", "\U0001f916"]
    await ledger.say(said("e1", claim(decomposed, "home", "Lyon")))
    await ledger.say(said("e2", claim("box", "place", "shelf"), subjects=[decomposed]))
    await ledger.say(said("e3", claim(composed, "work", "Brightly")))
    await ledger.say(*[said(f"o{number}", claim(name, "home", "Graz")) for number, name in enumerate(others)])

    report = await ledger.erase(subject=f" {decomposed} ")

    assert report.erased == tuple(ledger.ids[name] for name in ("e1", "e2", "e3"))
    for name in others:
        assert (await ledger.ask(name, "home")).value == "Graz"
    # Names that are spelt otherwise are other entities: each is erased by its own.
    for number, name in enumerate(others):
        assert (await ledger.erase(subject=name)).erased == (ledger.ids[f"o{number}"],)
    assert "Graz" not in await ledger.words()
    await ledger.intact()
    await check(ledger)
