"""
Failures that users of memory systems reported, as small inputs through the HTTP door.

Each test is named after the rule that the reported system broke. What is said as text is read by the
extractor; where the incident is about the ledger, the claims are structured. Erasing has a file of its own.
"""

from __future__ import annotations

import pytest

from tests.acceptance.door import Door, claim, ids, said, stated, supports

# --- what replaces what --------------------------------------------------------------------------


async def test_the_newer_of_two_similar_sentences_is_the_answer_and_both_are_its_evidence(door, discovery):
    """O1. Text."""
    told = await door.tell(
        said("My favourite climbing wall is Granite Hall.", who="u1", at="2025-03-01T09:00:00Z"),
        said("My favourite climbing wall is Slabworks these days.", who="u1", at="2025-05-10T09:00:00Z"),
    )
    question = "What is u1's favourite climbing wall?"

    now = await door.ask(question)
    then = await door.ask(question, valid_at="2025-04-01T00:00:00Z")

    assert (now["status"], now["answer"]) == ("answered", "Slabworks")
    assert [(line["event"], line["mark"]) for line in now["context"]["lines"]] == [
        (ids(*told)[0], "superseded"),
        (ids(*told)[1], "active"),
    ]
    assert (then["status"], then["answer"]) == ("answered", "Granite Hall")


async def test_a_newer_sentence_that_names_the_thing_otherwise_stands_in_the_evidence(door, discovery):
    """
    O1 in the words of the report. Text.

    "My favourite wall" may be another thing than "my favourite climbing wall": nothing is replaced, and
    whoever asks for one is shown what was said of the other.
    """
    await door.tell(
        said("My favourite climbing wall is Granite Hall.", who="u1", at="2025-03-01T09:00:00Z"),
        said("These days my favourite wall is Slabworks.", who="u1", at="2025-05-10T09:00:00Z"),
    )

    climbing = await door.ask("What is u1's favourite climbing wall?")
    wall = await door.ask("What is u1's favourite wall?")

    assert (climbing["answer"], wall["answer"]) == ("Granite Hall", "Slabworks")
    for answer in (climbing, wall):
        assert {line["mark"] for line in answer["context"]["lines"]} == {"active"}
        assert len(answer["context"]["lines"]) == 2


async def test_a_contradiction_replaces_what_it_contradicts_and_empties_nothing(door, discovery):
    """O2. Text; then structured, as a yes or no."""
    love, _ = await door.tell(
        said("I love rye bread.", who="r1", at="2025-03-01T09:00:00Z"),
        said("I can't stand rye bread any more.", who="r1", at="2025-05-10T09:00:00Z"),
    )
    yes, no = await door.tell(
        stated(claim("r1", "eats_rye_bread", value=True), who="r1", at="2025-03-01T09:00:00Z"),
        stated(claim("r1", "eats_rye_bread", value=False), who="r1", at="2025-05-10T09:00:00Z"),
    )

    likes, dislikes = await door.resolve("r1", "likes"), await door.resolve("r1", "dislikes")
    eats = await door.resolve("r1", "eats_rye_bread")

    assert (dislikes["outcome"], dislikes["values"]) == ("resolved", ["rye bread"])
    assert (likes["outcome"], likes["reason"]) == ("missing", "ended")
    past = await door.history("r1", relation="likes")
    assert {one["event"] for one in past["claims"]} >= set(ids(love))
    assert (eats["outcome"], eats["value"], supports(eats)) == ("resolved", False, set(ids(no)))
    assert [one["event"] for one in eats["superseded"]] == ids(yes)
    lines = (await door.ask("Does r1 like rye bread?"))["context"]["lines"]
    assert {"I love rye bread.", "I can't stand rye bread any more."} <= {line["text"] for line in lines}


async def test_facts_about_one_person_that_do_not_contradict_each_other_all_stand(door, discovery):
    """O3. Structured, with the wording beside the claims."""
    facts = [
        ("Dana is head of compliance at Northwind.", "works_as", "head of compliance"),
        ("Dana administers Northwind's source-code account.", "administers", "Northwind source-code account"),
        ("Dana asked for a yearly access review.", "asked_for", "yearly access review"),
    ]
    await door.tell(
        *(
            said(text, who="u1", at=f"2025-03-0{day}T09:00:00Z", claims=[claim("Dana", relation, value)])
            for day, (text, relation, value) in enumerate(facts, start=1)
        )
    )

    answer = await door.ask("What is Dana's job title?")

    assert (answer["status"], answer["answer"]) == ("answered", "head of compliance")
    for _, relation, value in facts:
        resolved = await door.resolve("Dana", relation)
        assert (resolved["outcome"], resolved["value"], resolved["superseded"]) == ("resolved", value, [])


async def test_what_was_superseded_was_true_and_what_was_withdrawn_never_was(door, discovery):
    """O4. Structured; a retraction of one claim leaves the others alone."""
    bazel, _, _, _ = await door.tell(
        stated(claim("repo Kite", "build_tool", "Bazel"), who="u1", at="2025-03-01T09:00:00Z"),
        stated(claim("repo Kite", "auto_merge", "off"), who="u1", at="2025-03-02T09:00:00Z"),
        stated(claim("repo Kite", "auto_merge", "on"), who="u1", at="2025-03-20T09:00:00Z"),
        said(
            "I was wrong, repo Kite never used Bazel.",
            who="u1",
            at="2025-03-21T09:00:00Z",
            kind="retraction",
            targets=[{"entity": "repo Kite", "relation": "build_tool"}],
        ),
    )
    then = {"valid_at": "2025-03-10T00:00:00Z"}

    merge = await door.ask("What is the auto merge of repo Kite?", **then)
    tool = await door.resolve("repo Kite", "build_tool", **then)
    believed = await door.resolve("repo Kite", "build_tool", **then, known_at=bazel["recorded_at"])

    assert (merge["status"], merge["answer"]) == ("answered", "off")
    assert (await door.resolve("repo Kite", "auto_merge"))["value"] == "on"
    assert (tool["outcome"], tool["reason"]) == ("missing", "withdrawn")
    assert (believed["outcome"], believed["value"]) == ("resolved", "Bazel")


async def test_who_says_a_thing_is_not_whom_it_is_about(door, discovery):
    """O20. Text, and a degree as a structured claim beside its wording."""
    await door.tell(
        said("Petra is a doctor.", who="u1"),
        said("Petra has a doctorate.", who="u1", claims=[claim("Petra", "has_doctorate", value=True)]),
        said("I live in Lisbon.", who="u1"),
    )

    hers, mine = await door.ask("What is Petra's job?"), await door.ask("What is u1's job?")

    assert (hers["status"], hers["answer"]) == ("answered", "doctor")
    assert (mine["status"], mine["answer"], mine["reason"]) == ("evidence", None, "no_named_key")
    assert (await door.resolve("Petra", "has_doctorate"))["value"] is True
    for relation in ("has_doctorate", "works_as"):
        nobody = await door.resolve("u1", relation)
        assert (nobody["outcome"], nobody["reason"]) == ("missing", "never_known")


# --- repeats and races ---------------------------------------------------------------------------


async def test_an_exact_repeat_is_one_state_with_two_supports(door, discovery):
    """O5. Text."""
    line = said("The spare key is in the blue box.", who="u1", at="2025-03-01T09:00:00Z")
    told = await door.tell(line, line)

    answer = await door.ask("Where is the spare key?")

    assert (answer["status"], answer["answer"]) == ("answered", "blue box")
    await one_state(door, "spare key", "located_in", "blue box", told)


async def test_the_same_fact_written_twice_at_once_is_two_events_and_one_state(door):
    """O6. Text, two callers at a barrier, one speaker and then two."""
    one = said("The spare key is in the blue box.", who="u1", at="2025-03-01T09:00:00Z")
    two = one | {"stream": "other", "actor": {"id": "u2", "class": "user"}}

    told_before: list[dict] = []
    for pair in ((one, one), (one, two)):
        told = await door.tell_at_once(*pair)
        assert len(set(ids(*told))) == 2
        told_before += told
        assert {receipt["repeated"] for receipt in told} == {False}
        await one_state(door, "spare key", "located_in", "blue box", told_before)


async def one_state(door: Door, entity: str, relation: str, value: str, told: list[dict]) -> None:
    """See that a key has one answer, carried by all that was told, and one state for ever since."""
    resolved = await door.resolve(entity, relation)
    assert (resolved["outcome"], resolved["value"]) == ("resolved", value)
    assert (supports(resolved), resolved["superseded"]) == (set(ids(*told)), [])
    cells = (await door.history(entity, relation=relation, timeline="true"))["cells"]
    assert {(cell["state"], *cell["values"]) for cell in cells} == {("value", value)}


@pytest.mark.parametrize("actors", [("u1", "u1"), ("u2", "u3")])
async def test_two_writers_of_one_key_are_put_in_order_or_disclosed_for_good(door, discovery, actors):
    """O7. Structured: one source is put in order by commit, two of equal rank conflict; rebuilt too."""
    at = "2025-04-01T09:00:00Z"
    key = ("door A1", "code_word")
    (first,) = await door.tell(stated(claim(*key, "v1"), who="u1", at="2025-03-01T09:00:00Z"))
    told = await door.tell_at_once(
        *(
            stated(claim(*key, value), who=who, at=at, stream=value)
            for who, value in zip(actors, ("v2", "v3"), strict=True)
        )
    )

    before = await door.resolve(*key)
    asked = await door.ask("What is the code word of door A1?")
    replayed = await door.call("POST", f"/contexts/{asked['context']['hash']}/replay")
    await door.rebuild()
    after = await door.resolve(*key)

    later = max(zip(told, ("v2", "v3"), strict=True), key=lambda pair: pair[0]["commit"])[1]
    if actors == ("u1", "u1"):
        assert (before["outcome"], before["value"]) == ("resolved", later)
        assert (asked["status"], asked["answer"]) == ("answered", later)
        assert ids(first)[0] in {one["event"] for one in before["superseded"]}
    else:
        assert before["outcome"] == "conflict"
        assert {rival["value"] for rival in before["conflict"]} == {"v1", "v2", "v3"}
        assert (asked["status"], asked["answer"]) == ("conflict", None)
    assert replayed["verdict"] == "identical"
    assert said_by(after) == said_by(before)


def said_by(resolved: dict) -> tuple:
    """Return what an answer says without what names its epoch."""
    return (
        resolved["outcome"],
        resolved["value"],
        [(rival["value"], rival["claim"]["event"]) for rival in resolved["conflict"]],
        [one["event"] for one in resolved["claims"]],
        [one["event"] for one in resolved["superseded"]],
    )


# --- times ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wrong",
    [
        {"observed_at": "2025-03-01T09:00:00"},
        {"observed_at": "2025-03-01 09:00"},
        {"claims": [claim("gate", "status", "open", valid={"since": "2025-03-01T09:00:00"})]},
        {"claims": [claim("gate", "status", "open", valid={"from": "2025-03-01T09:00:00", "to": None})]},
        {"claims": [claim("gate", "status", "open", valid={"at": "2025-03-01T09:00:00"})]},
        {"targets": [{"entity": "gate", "relation": "status", "interval": {
            "from": "2025-03-01T09:00:00", "to": None}}], "kind": "retraction"},
    ],
)  # fmt: skip
async def test_a_time_of_day_without_an_offset_is_refused_and_stores_nothing(door, wrong):
    """O12, first half."""
    good = said("The gate is open.", who="u1")

    for events in ([good | wrong], [good, good | wrong]):
        refused = await door.call("POST", "/events", status=422, json={"events": events})
        assert refused["error"]["code"] == "incorrect.bad_request"
        assert refused["error"]["act"] == "change the request"

    assert (await door.emit(good))["commit"] == 1
    for name in ("valid_at", "known_at"):
        naive = {"entity": "gate", "relation": "status", name: "2025-03-01T09:00:00"}
        await door.call("GET", "/resolve", status=422, params=naive)
        question = {"question": "Is the gate open?", name: "2025-03-01T09:00:00"}
        await door.call("POST", "/ask", status=422, json=question)


async def test_offsets_of_one_history_are_put_in_order_by_instant(door):
    """O12, second half. Text; as text the order of the times is the other way round."""
    await door.tell(
        said("The gate is open.", who="u1", at="2025-01-01T13:00:00+03:00"),
        said("The gate is closed.", who="u1", at="2025-01-01T08:30:00-02:00"),
    )

    async def status(at: str) -> str | None:
        return (await door.resolve("gate", "status", valid_at=at))["value"]

    assert await status("2025-01-01T10:15:00Z") == "open"
    assert await status("2025-01-01T18:45:00+08:00") == "closed"


async def test_a_view_in_another_offset_is_compared_by_instant(door, discovery):
    """O13. Text."""
    await door.tell(said("The north gate is open.", who="u1", at="2025-01-01T13:00:00+03:00"))
    question = "What is the status of the north gate?"

    after = await door.ask(question, valid_at="2025-01-01T10:30:00Z")
    same = await door.ask(question, valid_at="2025-01-01T05:30:00-05:00")
    before = await door.ask(question, valid_at="2025-01-01T09:30:00Z")

    assert [(one["status"], one["answer"]) for one in (after, same)] == [("answered", "open")] * 2
    assert (before["status"], before["reason"]) == ("insufficient_evidence", "not_valid_then")


async def test_an_old_message_keeps_its_date_and_is_known_from_its_append(door, discovery):
    """O14. Structured, with the wording beside the claim."""
    (told,) = await door.tell(
        said(
            "We use the Lisbon warehouse.",
            who="u1",
            at="2024-12-09T08:00:00Z",
            claims=[claim("our team", "warehouse", "Lisbon")],
        )
    )
    then = {"valid_at": "2025-01-01T00:00:00Z"}

    unknown = await door.resolve("our team", "warehouse", **then, known_at="2025-01-01T00:00:00Z")
    known = await door.ask("What is the warehouse of our team?", **then)

    assert (unknown["outcome"], unknown["reason"]) == ("missing", "never_known")
    assert (known["status"], known["answer"]) == ("answered", "Lisbon")
    (cell,) = (await door.history("our team"))["cells"]
    assert (cell["valid_from"], cell["known_from"]) == ("2024-12-09T08:00:00Z", told["commit"])
    assert cell["known_from_at"] == told["recorded_at"]


@pytest.mark.parametrize(
    ("event", "key", "value"),
    [
        (
            said("I worked at Northwind from August 1, 2025 through August 13, 2025.", who="u1"),
            ("u1", "works_at"),
            "Northwind",
        ),
        (
            stated(
                claim("pass 7", "status", "valid", valid={"from": "2025-08-01", "to": "2025-08-14"}), who="u1"
            ),
            ("pass 7", "status"),
            "valid",
        ),
        (
            stated(claim("pass 7", "status", "valid", valid={"at": "2025-08-13"}), who="u1"),
            ("pass 7", "status"),
            "valid",
        ),
    ],
    ids=["text", "interval", "day"],
)
async def test_a_calendar_day_ends_in_the_zone_of_who_named_it(door, event, key, value):
    """O15. Text and structured: "through D" ends where the day D ends at +08:00."""
    await door.tell(event | {"observed_at": "2025-09-01T10:00:00+08:00"})

    last = await door.resolve(*key, valid_at="2025-08-13T23:30:00+08:00")
    past = await door.resolve(*key, valid_at="2025-08-14T00:30:00+08:00")

    assert (last["outcome"], last["value"]) == ("resolved", value)
    assert (past["outcome"], past["reason"]) == ("missing", "not_valid_then")
