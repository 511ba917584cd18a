"""Questions and answers go that cite what is erased or name its subject, however that is written."""

from __future__ import annotations

import json

import pytest

from contracts.errors import ErasedMeanwhile
from contracts.trails import Question, Trail
from ledger import log
from tests.ledger.erasing import check, claim, opened, said
from tests.ledger.recalls import store


@pytest.fixture
async def ledger(db, database, clock):
    async with opened(db, database, clock) as made:
        yield made


def citing(*event_ids, text="nothing"):
    lines = [{"event": event_id} for event_id in event_ids]
    return json.dumps({"content": {"lines": lines}, "plan": text}).encode()


async def test_recalls_that_cite_what_is_erased_go_and_say_by_what(ledger):
    await ledger.say(said("e1", claim("ann", "home", "Lyon")), said("e2", claim("bob", "home", "Graz")))
    gone = await store(ledger.db, citing(ledger.ids["e1"], ledger.ids["e2"]))
    kept = await store(ledger.db, citing(ledger.ids["e2"]))

    report = await ledger.erase("e1")

    assert (report.contexts_count, report.trails_count) == (1, 0)
    context = await log.read_context(ledger.db, "acme", gone.context_hash)
    assert isinstance(context, log.ErasedContext)
    assert (context.erased_by, context.erased_event_ids) == (report.event_id, (ledger.ids["e1"],))
    assert isinstance(await log.read_context(ledger.db, "acme", kept.context_hash), log.StoredContext)
    await ledger.intact()


async def test_questions_that_name_an_erased_subject_go(ledger):
    await ledger.say(said("e1", claim("SECRET", "home", "Lyon")), said("e2", claim("bob", "home", "Graz")))
    named = await store(ledger.db, citing(ledger.ids["e2"]))
    planned = await store(
        ledger.db,
        citing(text="where Secret lives"),
        question=Question(text="Where?", budget_tokens=100, disclose_conflicts=False),
    )
    other = await store(
        ledger.db,
        citing(text="secretly"),
        question=Question(text="Who is secretive?", budget_tokens=100, disclose_conflicts=False),
    )

    report = await ledger.erase(subject="SECRET")

    assert (report.contexts_count, report.trails_count) == (1, 1)
    trail = await log.read_trail(ledger.db, "acme", named.trail_id)
    assert isinstance(trail, log.ErasedTrail)
    assert trail.erased_by == report.event_id
    assert isinstance(await log.read_context(ledger.db, "acme", planned.context_hash), log.ErasedContext)
    assert isinstance(await log.read_trail(ledger.db, "acme", other.trail_id), Trail)
    assert isinstance(await log.read_context(ledger.db, "acme", other.context_hash), log.StoredContext)
    await ledger.intact()


NAMED = {
    "decomposed": (
        "Jos\N{LATIN SMALL LETTER E WITH ACUTE}",
        "Where does Jose\N{COMBINING ACUTE ACCENT} live?",
    ),
    "in another case": ("STRASSNER", "Where is Stra\N{LATIN SMALL LETTER SHARP S}ner?"),
    "with what nobody sees": ("Annabella", "Where is Anna\N{ZERO WIDTH SPACE}bella?"),
    "between directions": ("\u05d3\u05e0\u05d9", "Where is \N{RIGHT-TO-LEFT MARK}\u05d3\u05e0\u05d9?"),
    "with a prefix, in Hebrew": ("\u05d3\u05e0\u05d9", "\u05d0\u05d9\u05e4\u05d4 \u05dc\u05d3\u05e0\u05d9?"),
    "without spaces, in Japanese": ("\u82b1\u5b50", "\u82b1\u5b50\u306f\u3069\u3053?"),
    "full width": ("Max", "\uff2d\uff41\uff58?"),
    "beyond the basic plane": ("\U00010400\U00010401", "Where is \U00010428\U00010429?"),
    "an emoji": ("\U0001f916", "Where is \U0001f916now?"),
}
NOT_NAMED = {
    "part of a word": ("Cleo", "Where is Cleopatra?"),
    "another letter": ("Rene", "Where is Rene\N{COMBINING ACUTE ACCENT}?"),
    "part of a number": ("7", "Where is 17?"),
}


async def test_a_question_goes_that_names_the_subject_however_it_is_written(ledger):
    cases, asked = NAMED | NOT_NAMED, {}
    names = list(dict.fromkeys(name for name, _ in cases.values()))
    one = [claim(names[0], "same_as", name) for name in names[1:]]
    await ledger.say(said("e1", claim(names[0], "home", "Lyon"), *one, actor="op", actor_class="operator"))
    for case, (_, text) in cases.items():
        question = Question(text=text, budget_tokens=100, disclose_conflicts=False)
        asked[case] = await store(ledger.db, citing(), question=question)

    await ledger.erase(subject=names[-1])

    gone = {
        case
        for case, one in asked.items()
        if isinstance(await log.read_trail(ledger.db, "acme", one.trail_id), log.ErasedTrail)
    }
    assert gone == NAMED.keys()


async def test_a_context_whose_trails_are_all_gone_goes_with_what_it_cites(ledger):
    await ledger.say(said("e1", claim("ann", "home", "Lyon")), said("e2", claim("bob", "home", "Graz")))
    question = Question(text="Where is bob?", budget_tokens=100, disclose_conflicts=False)
    asked = await store(ledger.db, citing(ledger.ids["e1"]), question=question)
    await ledger.erase(subject="bob")
    assert isinstance(await log.read_trail(ledger.db, "acme", asked.trail_id), log.ErasedTrail)
    assert isinstance(await log.read_context(ledger.db, "acme", asked.context_hash), log.StoredContext)

    report = await ledger.erase("e1")

    assert report.contexts_count == 1
    context = await log.read_context(ledger.db, "acme", asked.context_hash)
    assert isinstance(context, log.ErasedContext)
    assert context.erased_event_ids == (ledger.ids["e1"],)
    await ledger.intact()


async def test_a_question_about_whom_no_event_names_goes_too_and_once(ledger):
    await ledger.say(said("e1", claim("bob", "home", "Lyon")), said("e2", claim("ann", "home", "Graz")))
    await ledger.erase(subject="bob")
    question = Question(text="Where is Bob now?", budget_tokens=100, disclose_conflicts=False)
    asked = await store(ledger.db, citing(ledger.ids["e2"]), question=question)

    first = await ledger.erase(subject="bob")
    second = await ledger.erase(subject="bob")

    assert (first.erased, first.trails_count, first.contexts_count) == ((), 1, 0)
    trail = await log.read_trail(ledger.db, "acme", asked.trail_id)
    assert isinstance(trail, log.ErasedTrail)
    assert trail.erased_by == first.event_id
    assert second.event_id is None
    assert (await ledger.ask("ann", "home")).value == "Graz"
    await ledger.intact()
    await check(ledger)


async def test_an_answer_made_of_what_was_erased_meanwhile_is_not_stored(ledger):
    await ledger.say(said("e1", claim("ann", "home", "Lyon")))
    await ledger.erase("e1")

    with pytest.raises(ErasedMeanwhile):
        await store(ledger.db, citing(ledger.ids["e1"]))

    await ledger.intact()
