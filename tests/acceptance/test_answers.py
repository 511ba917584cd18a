"""Questions about what was known when, and yes or no, asked through the HTTP door of a whole plane."""

from __future__ import annotations

from pathlib import Path

import pytest

from contracts.grants import LOCAL_GRANT
from contracts.relation_wire import ContractRequest
from echoplane._import_vintages import Period, parse_columns, read_vintages, start_of
from echoplane._tenants import backfilling
from ledger import log
from ledger.write import register_contract
from tests.acceptance.door import claim, said, stated

OWN = Path(__file__).parents[1] / "data" / "vintages_own.csv"
FIRST, SECOND, THIRD = (f"2024-{month}-01T00:00:00Z" for month in ("05", "08", "11"))


@pytest.fixture
async def published(door):
    """Growth of NO and SE for two quarters of 2024, published in May and August, and revised."""
    columns = parse_columns(
        "entity=country,valid=quarter,known=published,value=growth", entity=None, relation=None
    )
    vintages = read_vintages(OWN, columns, period=Period.QUARTER, source="statistics")
    database = backfilling(door.plane)
    contract = ContractRequest(relation="growth", value_type="number", validity="span").contract()
    await register_contract(
        log.stating(database, start_of(vintages)), door.tenant, contract, stream="relations",
        actor_id="statistics", grant=LOCAL_GRANT,
    )  # fmt: skip
    for one in vintages.publications:
        await log.backfill(database, door.tenant, one.drafts, at=one.at, grant=LOCAL_GRANT)
    await database.close()
    await door.fold()
    return door


async def test_what_was_published_and_revised_is_answered_as_it_was_known_and_replays(published, discovery):
    asked = {
        "What did we believe on 10 May 2024 that NO growth was in Q1 2024?": 0.2,
        "As of 2 August 2024, what was the growth of NO in the first quarter of 2024?": 0.3,
        "How often was the growth of NO for 2024Q1 revised?": 2,
        "When was the growth of NO for Q1 2024 first published?": FIRST,
        "When did NO growth for Q1 2024 last change?": THIRD,
        "Who published NO growth for Q1 2024?": ["statistics"],
        "Which figures have been published for NO growth in Q1 2024?": [0.2, 0.3, 0.25],
        "By how much did NO growth change from Q1 2024 to Q2 2024, as known on 2 August 2024?": 0.8,
        "Was the growth of NO for Q1 2024 0.2, as known on 2 August 2024?": False,
        "What changed about NO growth for Q1 2024 between 1 May 2024 and 1 September 2024?": [
            {"known_at": SECOND, "from": 0.2, "to": 0.3}
        ],
    }
    for question, expected in asked.items():
        answer = await published.ask(question)

        assert (answer["status"], answer["answer"]) == ("answered", expected), question
        lines = {line["id"]: line["text"] for line in answer["context"]["lines"]}
        assert answer["cites"]
        assert set(answer["cites"]) <= set(lines)
        replayed = await published.call("POST", f"/contexts/{answer['context']['hash']}/replay")
        assert replayed["verdict"] == "identical", question


async def test_a_question_sets_its_view_and_says_it_and_is_shown_nothing_beyond_the_caller_s(
    published, discovery
):
    question = "As known on 2 August 2024, what was NO growth for Q1 2024?"

    answer = await published.ask(question)
    earlier = await published.ask(question, known_at="2024-06-01T00:00:00Z")
    elsewhen = await published.ask(question, valid_at="2024-05-05T00:00:00Z")
    before = await published.ask("As known on 2 April 2024, what was NO growth for Q1 2024?")

    assert answer["view"]["valid_at"] == "2024-01-01T00:00:00Z"
    assert answer["view"]["known_at"] == "2024-08-02T23:59:59.999999Z"
    assert answer["answer"] == 0.3
    assert earlier["view"]["known_at"] == "2024-06-01T00:00:00Z"
    assert (earlier["status"], earlier["reason"]) == ("evidence", "time_or_scope_not_resolved")
    assert (elsewhen["status"], elsewhen["reason"]) == ("evidence", "time_or_scope_not_resolved")
    assert (before["status"], before["reason"]) == ("insufficient_evidence", "never_known")


async def test_a_value_is_withheld_where_the_lines_that_it_stands_on_do_not_fit(published, discovery):
    question = "How often was the growth of NO for Q1 2024 revised?"

    whole = await published.ask(question)
    less = await published.ask(question, budget=16)

    assert whole["answer"] == 2
    assert (less["status"], less["reason"], less["answer"]) == (
        "insufficient_evidence", "required_evidence_deferred", None,
    )  # fmt: skip


async def test_yes_and_no_are_said_of_what_was_told_and_of_nothing_else(door, discovery):
    await door.tell(
        said("I live in Lyon.", who="Ann", at="2025-01-10T09:00:00Z"),
        said("I moved to Ghent.", who="Ann", at="2025-06-02T09:00:00Z"),
        stated(claim("Petra", "has_doctorate", value=True), who="Ann"),
    )
    asked = {
        "Does Ann live in Ghent?": True,
        "Does Ann live in Lyon?": False,
        "Does Ann live near Ghent?": None,
        "Does Ann live in Porto?": None,
        "Does Petra have a doctorate?": True,
        "Does Ann have a doctorate?": None,
        "Did Ann live in Lyon in March 2025?": True,
        "Where did Ann live in March 2025?": "Lyon",
        "Where did Ann live in June 2025?": None,
    }

    answers = {question: await door.ask(question) for question in asked}

    assert {question: answer["answer"] for question, answer in answers.items()} == asked
    assert all(answer["cites"] for answer in answers.values() if answer["status"] == "answered")


async def test_what_the_plane_handed_out_and_is_told_again_supports_nothing_and_counts_nothing(
    door, discovery
):
    """O23."""
    await door.tell(
        said("I live in Lyon.", who="Ann", at="2025-01-10T09:00:00Z"),
        stated(claim("Ann", "has_pet", "Otis"), claim("Ann", "has_pet", "Miso"), who="Ann"),
    )
    before = await door.resolve("Ann", "lives_in")

    for _ in range(20):
        answer = await door.ask("Where does Ann live?")
        handed = " ".join(line["text"] for line in answer["context"]["lines"])
        bot = {"stream": "chat", "kind": "turn", "actor": {"id": "bot", "class": "assistant"}}
        await door.tell(bot | {"text": f"Ann lives in {answer['answer']}. {handed}"})

    after = await door.resolve("Ann", "lives_in")
    assert (after["value"], {one["event"] for one in after["claims"]}) == (
        "Lyon", {one["event"] for one in before["claims"]},
    )  # fmt: skip
    assert (await door.ask("How many pets does Ann have?"))["answer"] == 2
    assert (await door.ask("Who said so about the home city of Ann?"))["answer"] in (["Ann"], None)


async def test_no_line_of_a_context_has_a_clock_without_a_zone(door, discovery):
    """O25. With one offset of the source, with another, and with no clock at all."""
    await door.tell(
        said("I live in Lyon.", who="Ann", at="2025-01-10T09:00:00+01:00"),
        said("I like tea.", who="Ann", at="2025-01-11T10:00:00-05:00"),
        said("I work at Brightly.", who="Ann"),
    )

    lines = [
        line
        for question in ("Where does Ann live?", "What does Ann like?", "Where does Ann work?")
        for line in (await door.ask(question))["context"]["lines"]
    ]

    assert len({line["id"] for line in lines}) == 3
    assert all(line["observed_at"].endswith(("Z", "+00:00", "+01:00", "-05:00")) for line in lines)
