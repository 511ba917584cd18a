"""What an event's structured claims and text become."""

from datetime import UTC, datetime

from contracts.events import Event, EventDraft, Stance
from contracts.times import KnownAt, parse_term
from projection import RuleProjector


def event(**fields):
    draft = EventDraft.model_validate(
        {"stream": "s", "kind": "turn", "actor": {"id": "ann", "class": "user"}} | fields
    )
    observed = parse_term(draft.observed_at, field="observed_at") if draft.observed_at else None
    return Event(
        backfilled=False,
        sent_at=None,
        event_id="e1", position=1, commit=1, recorded_at=KnownAt(datetime(2026, 1, 1, tzinfo=UTC)),
        observed=observed, draft=draft,
    )  # fmt: skip


def project(**fields):
    return list(RuleProjector().project(event(**fields)))


HOME = {"entity": "ann", "relation": "lives_in", "value": "Graz"}


def test_structured_claims_are_projected_exactly_and_in_order():
    second = {
        "entity": "ann",
        "relation": "height",
        "value": {"cm": 170},
        "valid": {"from": "2020", "to": None},
    }

    claims = project(kind="claim", claims=[HOME, second])

    assert [claim.ordinal for claim in claims] == [0, 1]
    assert claims[0].draft.model_dump(by_alias=True, exclude_unset=True) == HOME
    assert claims[1].draft.model_dump(by_alias=True, exclude_unset=True) == second
    assert all(claim.spans == () for claim in claims)


def test_text_is_not_read_beside_structured_claims():
    claims = project(text="I live in Graz and work at Acme.", claims=[HOME])

    assert [claim.draft.relation for claim in claims] == ["lives_in"]


def test_targets_and_winner_of_the_event_apply_where_a_claim_has_none():
    target, own = {"event": "e0"}, {"event": "e9", "ordinal": 3}

    claims = project(
        kind="correction", targets=[target], claims=[HOME, HOME | {"targets": [own]}], text="No: Graz."
    )

    assert [claim.stance for claim in claims] == [Stance.CORRECT, Stance.CORRECT]
    assert claims[0].draft.targets[0].event == "e0"
    assert claims[1].draft.targets[0].event == "e9"


def test_targets_do_not_apply_to_a_claim_that_asserts():
    claims = project(kind="turn", targets=[{"event": "e0"}], claims=[HOME, HOME | {"stance": "retract"}])

    assert claims[0].draft.targets is None
    assert claims[1].draft.targets is not None


def test_a_retraction_without_claims_implies_one_of_its_kind():
    (claim,) = project(kind="retraction", targets=[{"event": "e0"}], text="Forget it, I live in Rome.")

    assert claim.stance == Stance.RETRACT
    assert (claim.draft.entity, claim.draft.relation, claim.draft.value) == (None, None, None)


def test_a_retraction_on_a_key_implies_a_claim_on_that_key():
    (claim,) = project(kind="retraction", targets=[{"entity": "ann", "relation": "lives_in"}])

    assert (claim.draft.entity, claim.draft.relation) == ("ann", "lives_in")


def test_a_settlement_without_claims_carries_its_winner():
    (claim,) = project(kind="settlement", targets=[{"event": "e0"}], winner={"event": "e1"})

    assert claim.stance == Stance.SETTLE
    assert claim.draft.winner.event == "e1"


def test_an_occurrence_id_of_the_event_applies_to_claims_without_one():
    claims = project(kind="claim", occurrence_id="o1", claims=[HOME, HOME | {"occurrence_id": "o2"}])

    assert [claim.draft.occurrence_id for claim in claims] == ["o1", "o2"]


def test_one_occurrence_id_is_not_shared_out_over_what_a_text_says():
    one = project(text="I visited Rome.", occurrence_id="o1")
    two = project(text="I visited Rome. I visited Graz.", occurrence_id="o1")

    assert [claim.draft.occurrence_id for claim in one] == ["o1"]
    assert [claim.draft.occurrence_id for claim in two] == [None, None]


def test_a_text_is_read_with_the_place_of_each_value():
    text = "Hello \U0001f600! I live in Graz."

    (claim,) = project(text=text)

    assert claim.stance == Stance.ASSERT
    assert [text[span.start : span.end] for span in claim.spans] == ["Graz"]


def test_what_an_assistant_says_is_no_claim_but_what_it_states_in_structure_is():
    assistant = {"id": "bot", "class": "assistant"}

    assert project(actor=assistant, text="Ann lives in Graz. I live in a server.") == []
    assert len(project(actor=assistant, claims=[HOME])) == 1


def test_a_reading_by_a_sensor_is_read_like_a_turn():
    (claim,) = project(
        kind="observation",
        actor={"id": "r1", "class": "sensor"},
        text="The blue mug is on the kitchen table.",
    )

    assert (claim.draft.entity, claim.draft.relation, claim.draft.value) == (
        "blue mug", "located_in", "kitchen table",
    )  # fmt: skip


def test_where_a_sensor_put_a_thing_is_read_whatever_the_place_is_called():
    def put(kind, class_):
        return project(kind=kind, actor={"id": "Robbie", "class": class_}, text="Put the vase on the mantel.")

    for kind in ("action", "observation"):
        (claim,) = put(kind, "sensor")
        assert (claim.draft.entity, claim.draft.value) == ("vase", "mantel")
    # A turn may ask for it.
    assert put("turn", "sensor") == put("action", "user") == []


def test_words_of_a_correction_without_structure_are_not_taken_for_a_plain_claim():
    assert project(kind="correction", text="I live in Graz.") == []


def test_a_relative_date_is_read_in_the_offset_of_the_source():
    late = project(text="I moved to Graz yesterday.", observed_at="2026-03-01T00:30:00+02:00")
    unknown = project(text="I moved to Graz yesterday.")

    assert late[0].draft.valid.since == "2026-02-28"
    assert unknown[0].draft.valid is None


def test_an_undated_visit_happened_before_it_was_told():
    (claim,) = project(text="I've been to Rome.", observed_at="2026-03-01T10:00:00Z")

    assert claim.draft.valid.model_dump(by_alias=True, exclude_unset=True) == {
        "from": None, "to": "2026-03-01T10:00:00Z",
    }  # fmt: skip
