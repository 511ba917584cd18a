"""Whose value something is: all of them as the ledger has it, or the reason why that cannot be told."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from contracts.erasures import ErasureRequest
from contracts.grants import LOCAL_GRANT
from contracts.limits import KEYS_MAX
from contracts.times import ValidAt
from contracts.trails import Question
from contracts.views import Generation, ViewRequest
from ledger import _history, _holders
from ledger.erase import erase
from projection import RuleProjector
from tests.answers.nothing import NoCandidates

CONFLICT = "peers of class user: a claim replaces only claims of its own source (supersession same_source)"
_IN_2023 = ValidAt(datetime(2023, 9, 1, tzinfo=UTC))
NOW = ViewRequest(valid_at=None, known_at=None, generation=None, min_commit=None)


def told(entity, relation, value, number, *, actor="Zoe", **more):
    claim = {"entity": entity, "relation": relation, "value": value, **more}
    return {
        "stream": "s", "kind": "claim", "actor": {"id": actor, "class": "user"}, "claims": [claim],
        "source_event_id": f"h{number}", "observed_at": f"2025-01-01T{number % 24:02}:{number // 24:02}:00Z",
    }  # fmt: skip


@pytest.fixture
def asked(plane):
    path = replace(plane.path, discovery=NoCandidates())

    async def asked(text, view=NOW, **more):
        question = Question(text=text, budget_tokens=32_000, disclose_conflicts=True)
        found = await path.ask("home", question, replace(view, **more), wait_ms=0)
        rebuilt = await path.rebuild(tenant="home", trail=found.trail)
        assert (rebuilt.answer, rebuilt.pack.context_hash) == (found.answer, found.pack.context_hash)
        assert found.answer.status != "answered" or found.answer.cites
        return found.answer.value if found.answer.status == "answered" else found.answer.reason

    return asked


async def test_a_value_finds_all_that_have_it_in_the_words_of_its_relation(asked, remember):
    await remember(
        "home",
        told("cup", "located_in", "drawer", 1),
        told("spoon", "stored_in", "the drawer", 2),
        told("plate", "placed_on", "table", 3),
        told("drawer", "located_in", "kitchen", 4),
        told("key", "located_in", "kitchen drawer", 5),
        told("Ann", "boss", "Carl", 6),
        told("Ben", "boss", "Carl", 7),
        told("Ann", "manages", "Ben", 8),
        told("Ben", "managed_by", "Ann", 9),
        told("Gil", "managed_by", "Cid", 18),
        told("Amy", "coaches", "Ben", 10),
        told("Carl", "manages", "Bea", 17),
        told("Dora", "likes", "green tea", 11),
        told("Eve", "speaks", "French", 12),
        told("Fay", "speaks", "French", 13),
        told("Fay", "speaks", "Dutch", 14),
        told("Gus", "married_to", "Hal", 15),
        told("bread", "location", "red box", 16),
    )

    assert await asked("What is on the table?") == ["plate"]
    assert await asked("What is in the red box?") == ["bread"]
    assert await asked("Whose boss is Carl?") == ["Ann", "Ben"]
    assert await asked("How many people have Carl as their boss?") == 2
    assert await asked("Who manages Ben?") == "Ann"
    assert await asked("Who manages Bea?") == ["Carl"]
    assert await asked("Who is managed by Cid?") == ["Gil"]
    assert await asked("Who speaks French?") == ["Eve", "Fay"]
    assert await asked("Which people speak French now?") == ["Eve", "Fay"]
    assert await asked("Who is married to Hal?") == ["Gus"]
    assert await asked("What is in the kitchen?") == "not_the_value"
    # What may be a noun as well as a verb, the wrong way round, what shares a word, what nobody told.
    assert await asked("Who coaches Ben?") != ["Amy"]
    assert await asked("Who is Carl's boss?") != ["Ann", "Ben"]
    assert await asked("Whose boss is Ann?") != ["Carl"]
    assert await asked("Who likes tea?") == "not_the_value"
    assert await asked("Who speaks Danish?") == "never_known"
    assert await asked("Who spoke French?") not in (["Eve", "Fay"], ["Fay", "Eve"])


async def test_what_is_in_a_thing_is_asked_of_every_relation_that_says_so(asked, remember):
    await remember(
        "home",
        told("cup", "located_in", "drawer", 1),
        told("spoon", "stored_in", "the drawer", 2),
        told("plate", "located_in", "shelf", 3),
        told("drawer", "located_in", "kitchen", 4),
    )

    assert await asked("What is in the drawer?") == ["cup", "spoon"]
    assert await asked("What does the drawer contain?") == ["cup", "spoon"]
    assert await asked("How many things are in the drawer?") == 2
    assert await asked("Which objects are inside the drawer now?") == ["cup", "spoon"]
    assert await asked("What is on the drawer?") not in (["cup", "spoon"], ["cup"], ["spoon"])
    assert await asked("What is in the kitchen?") == ["drawer"]


async def test_what_may_have_the_value_and_may_not_leaves_all_unsaid(asked, remember, plane):
    same = {"valid": {"since": "2024-01-01T00:00:00Z"}}
    await remember("home", told("Ann", "lives_in", "Bergen", 1, **same), told("Ben", "lives_in", "Bergen", 2))
    before = (
        await plane.path.ask(
            "home",
            Question(text="Who lives in Bergen?", budget_tokens=2_048, disclose_conflicts=False),
            NOW,
            wait_ms=0,
        )
    ).trail.view
    assert await asked("Who lives in Bergen?") == ["Ann", "Ben"]

    await remember(
        "home",
        told("Cleo", "lives_in", "Bergen", 3, actor="Dov", **same),
        told("Cleo", "lives_in", "Oslo", 4, actor="Edda", **same),
    )

    assert await asked("How many people live in Bergen?") == CONFLICT
    assert await asked("Who lives in Ghent?") == "never_known"
    then = Generation(epoch=before.epoch, commit=before.cut)
    assert await asked("Who lives in Bergen?", generation=then) == ["Ann", "Ben"]


async def test_who_is_one_with_another_is_not_counted_twice(asked, remember):
    await remember("home", told("Ann", "lives_in", "Bergen", 1), told("Ben", "lives_in", "Bergen", 2))
    await remember("home", told("Annie", "same_as", "Ann", 3))

    assert await asked("How many people live in Bergen?") == "not_all_listed"


async def test_what_was_erased_may_have_been_the_value(asked, remember, plane):
    receipts = await remember(
        "home", told("Ann", "speaks", "French", 1), told("Ben", "speaks", "French", 2),
        told("Ben", "speaks", "Dutch", 3),
    )  # fmt: skip
    request = ErasureRequest(subject=None, event_ids=receipts[1].event_ids)
    await erase(plane.database, "home", RuleProjector(), request, grant=LOCAL_GRANT)

    assert await asked("Who speaks French?") == "erased"
    assert await asked("Who speaks Dutch?") == ["Ben"]


async def test_past_its_bounds_nothing_is_said(asked, remember, monkeypatch):
    monkeypatch.setattr(_holders, "HOLDERS_LINES_MAX", 3)
    await remember("home", *(told(f"P{n}", "lives_in", "Bergen", n) for n in range(3)))
    assert await asked("How many people live in Bergen?") == 3

    await remember("home", told("P3", "lives_in", "Oslo", 3))

    assert await asked("How many people live in Bergen?") == "not_all_listed"


async def test_no_more_are_named_than_can_be_shown(asked, remember):
    await remember("home", *(told(f"P{n}", "lives_in", "Bergen", n) for n in range(KEYS_MAX + 1)))

    assert await asked("Who lives in Bergen?") == "not_all_listed"


def since(day):
    return {"valid": {"since": f"2024-01-{day:02d}T00:00:00Z"}}


async def test_who_ever_had_a_value_is_read_off_the_whole_of_every_key(asked, remember, plane):
    await remember(
        "home",
        told("Ann", "lives_in", "Bergen", 1, **since(1)),
        told("Ann", "lives_in", "Oslo", 2, **since(5)),
        told("Ben", "lives_in", "Bergen", 3, **since(7)),
        told("Cid", "lives_in", "Oslo", 4, **since(1)),
        told("Ann", "speaks", "French", 5, **since(1)),
        told("Ann", "speaks", "French", 6, stance="end", **since(9)),
        told("Eve", "speaks", "French", 7, **since(3)),
    )

    assert await asked("Who has ever lived in Bergen?") == ["Ann", "Ben"]
    assert await asked("Which people have ever lived in Bergen so far?") == ["Ann", "Ben"]
    assert await asked("How many people have ever lived in Oslo?") == 2
    assert await asked("Who has ever spoken French?") == ["Ann", "Eve"]
    assert await asked("Who has ever lived in Ghent?") == "never_known"
    for other in (
        "Who has never lived in Bergen?",
        "Who has ever lived near Bergen?",
        "Who ever left Bergen?",
    ):
        assert await asked(other) not in (["Ann", "Ben"], ["Ann"], ["Ben"]), other
    # What another may have had, and may not, leaves all unsaid.
    (slip,) = await remember("home", told("Dov", "lives_in", "Bergen, Norway", 8, **since(1)))
    assert await asked("Who has ever lived in Bergen?") == "not_the_value"
    taken = {"kind": "retraction", "claims": [], "targets": [{"event": slip.event_ids[0]}]}
    await remember("home", told("Dov", "lives_in", "", 9) | taken)
    assert await asked("Who has ever lived in Bergen?") == ["Ann", "Ben"]
    coarse = {"valid": {"since": "2024-03"}}
    await remember(
        "home", told("Dov", "lives_in", "Bergen", 10, **coarse),
        told("Dov", "lives_in", "Oslo", 11, valid={"since": "2024-04-01T00:00:00Z"}),
    )  # fmt: skip
    assert await asked("Who has ever lived in Bergen?") == "time_or_scope_not_resolved"
    (gone,) = await remember("home", told("Cid", "lives_in", "Rome", 12, **since(9)))
    erased = ErasureRequest(subject=None, event_ids=gone.event_ids)
    await erase(plane.database, "home", RuleProjector(), erased, grant=LOCAL_GRANT)
    assert await asked("Who has ever lived in Ghent?") == "erased"


async def test_who_ever_had_it_is_not_told_past_a_dispute(asked, remember):
    await remember(
        "home", told("Ann", "lives_in", "Bergen", 1, **since(1)),
        told("Cleo", "lives_in", "Bergen", 3, actor="Dov", **since(1)),
        told("Cleo", "lives_in", "Oslo", 4, actor="Edda", **since(1)),
    )  # fmt: skip

    assert await asked("Who has ever lived in Bergen?") == "history_disputed"


@pytest.mark.parametrize("question", ["How many people live in Bergen?", "Who has ever lived in Bergen?"])
async def test_who_is_erased_altogether_may_have_had_it(asked, remember, plane, question):
    (ann,) = await remember("home", told("Ann", "lives_in", "Bergen", 1))
    before = Generation(epoch=1, commit=ann.commit)
    (ben,) = await remember("home", told("Ben", "lives_in", "Bergen", 2))
    await remember("home", told("Eve", "speaks", "French", 3))
    assert await asked(question) in (2, ["Ann", "Ben"])
    request = ErasureRequest(subject=None, event_ids=ben.event_ids)
    await erase(plane.database, "home", RuleProjector(), request, grant=LOCAL_GRANT)

    assert await asked(question) == "erased"
    # Neither of another relation, nor before he was told of.
    assert await asked("Who speaks French?") == ["Eve"]
    assert await asked(question, generation=before) in (1, ["Ann"])


async def test_no_holder_is_left_out_because_there_are_more_relations_than_are_read(
    asked, remember, monkeypatch
):
    drawer = [told("cup", "located_in", "drawer", 1), told("spoon", "stored_in", "drawer", 2)]
    (first, _) = await remember("home", *drawer)
    monkeypatch.setattr(_holders, "RELATIONS_READ_MAX", 1)

    assert await asked("How many things are in the drawer?") == "not_all_listed"
    then = Generation(epoch=1, commit=first.commit)
    assert await asked("How many things are in the drawer?", generation=then) == 1


async def test_a_relation_that_came_later_changes_nothing_of_an_older_answer(asked, remember, plane):
    question = Question(text="What is in the drawer?", budget_tokens=2_048, disclose_conflicts=False)
    await remember("home", told("cup", "located_in", "drawer", 1))
    first = (await plane.path.ask("home", question, NOW, wait_ms=0)).trail.view
    then = replace(
        NOW,
        generation=Generation(epoch=first.epoch, commit=first.cut),
        valid_at=first.valid_at,
        known_at=first.known_at,
    )
    before = await plane.path.ask("home", question, then, wait_ms=0)

    await remember("home", told("spoon", "stored_in", "shelf", 2))

    after = await plane.path.ask("home", question, then, wait_ms=0)
    assert after.proposal.plan.relations == before.proposal.plan.relations == ("located_in",)
    assert after.pack.context_hash == before.pack.context_hash


async def test_what_is_read_of_a_key_in_part_is_not_taken_for_the_whole(asked, remember, monkeypatch):
    def span(first, last):
        return {"valid": {"from": f"2023-{first:02}-01T00:00:00Z", "to": f"2023-{last:02}-01T00:00:00Z"}}

    await remember(
        "home",
        told("Ann", "speaks", "Dutch", 1, **span(1, 2)),
        told("Ann", "speaks", "Dutch", 2, **span(3, 4)),
        told("Ann", "speaks", "Dutch", 3, **span(5, 6)),
        told("Ann", "speaks", "French", 4, **span(1, 6)),
        told("Ben", "speaks", "French", 20, valid={"since": "2020-01-01T00:00:00Z"}),
    )
    assert await asked("Who spoke French in 2023?", valid_at=_IN_2023) == "changes_within"

    monkeypatch.setattr(_history, "HISTORY_CELLS_MAX", 2)

    assert await asked("Who spoke French in 2023?", valid_at=_IN_2023) == "not_all_listed"
