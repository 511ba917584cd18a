"""Importers: what enters of a public data set, and what never does."""

from __future__ import annotations

import gzip
import json

import pytest

from contracts.errors import BadRequest
from echoplane._cli_vintages import _contracts
from echoplane._import_armar7 import read_armar7
from echoplane._import_locomo import read_locomo
from echoplane._import_vintages import Period, parse_columns, read_vintages

SAMPLE = {
    "sample_id": "conv-77",
    "conversation": {
        "speaker_a": "Ida",
        "speaker_b": "Noor",
        "session_2_date_time": "12:06 am on 3 January, 2024",
        "session_2": [{"speaker": "Noor", "dia_id": "D2:1", "text": "I moved to Ghent."}],
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_1": [
            {"speaker": "Ida", "dia_id": "D1:1", "text": "Look!", "blip_caption": "a red kite"},
            {"speaker": "Noor", "dia_id": "D1:2", "text": "Lovely."},
        ],
        "session_3_date_time": "1:00 pm on 9 May, 2024",
    },
    "qa": [{"question": "SECRETQ", "answer": "SECRETA", "evidence": ["D1:1"], "category": 1}],
    "observation": {"session_1_observation": {"Ida": [["SECRETO", "D1:1"]]}},
    "session_summary": {"session_1_summary": "SECRETS"},
    "event_summary": {"events_session_1": {"Ida": ["SECRETE"], "date": "8 May, 2023"}},
}

STEP = {
    "seq": 2543,
    "timestamp": "2024-07-13T13:12:56",
    "action": "LookAtObject",
    "action_state": "Succeeded",
    "goal": "GraspNamedObjectWithinReach.LookAtObject",
    "goal_state": "Succeeded",
    "trigger": "GUI->GraspNamedObjectWithinReach",
    "parameters": {"object": {"className": "soy-milk", "dataset": "Kitchen", "instanceName": ""}},
    "objects": [{"obj_class": "vanilla-cookies", "instance_id": "vanilla-cookies_0", "state": None}],
}


def locomo(tmp_path, samples, *, packed=False):
    path = tmp_path / "locomo.json"
    raw = json.dumps(samples).encode()
    path.write_bytes(gzip.compress(raw) if packed else raw)
    return path


def armar7(tmp_path, *rows):
    path = tmp_path / "events.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    return path


@pytest.mark.parametrize("packed", [False, True])
def test_one_turn_is_one_event_in_the_order_of_sessions(tmp_path, packed):
    (batch,) = read_locomo(locomo(tmp_path, [SAMPLE], packed=packed), conversation=None)

    assert [(draft.stream, draft.source_event_id, draft.actor.id) for draft in batch.drafts] == [
        ("session-0001", "turn-000001", "Ida"),
        ("session-0001", "turn-000002", "Noor"),
        ("session-0002", "turn-000003", "Noor"),
    ]


def test_answers_summaries_and_public_ids_never_enter(tmp_path):
    (batch,) = read_locomo(locomo(tmp_path, [SAMPLE]), conversation="conv-77")

    entered = batch.tenant + "".join(draft.model_dump_json() for draft in batch.drafts)
    for word in ("SECRET", "conv-77", "D1:", "D2:", "evidence", "category"):
        assert word not in entered


def test_a_session_time_without_zone_is_utc_and_marked_as_assumed(tmp_path):
    (batch,) = read_locomo(locomo(tmp_path, [SAMPLE]), conversation=None)

    assert batch.drafts[0].observed_at == "2023-05-08T13:56-00:00"
    assert batch.drafts[2].observed_at == "2024-01-03T00:06-00:00"


def test_a_caption_goes_with_its_text(tmp_path):
    (batch,) = read_locomo(locomo(tmp_path, [SAMPLE]), conversation=None)

    assert batch.drafts[0].text == "Look! [shares a picture: a red kite]"


def test_each_conversation_has_a_tenant_by_position(tmp_path):
    other = SAMPLE | {"sample_id": "conv-78"}

    both = read_locomo(locomo(tmp_path, [SAMPLE, other]), conversation=None)
    second = read_locomo(locomo(tmp_path, [SAMPLE, other]), conversation="conv-78")

    assert [batch.tenant for batch in both] == ["locomo-1", "locomo-2"]
    assert [batch.tenant for batch in second] == ["locomo-2"]


@pytest.mark.parametrize("conversation", [None, "a"])
@pytest.mark.parametrize("content", [b"{}", b"not json", b"[1]", b'[{"sample_id": "a"}]', b"[{}]"])
def test_another_format_is_refused(tmp_path, content, conversation):
    path = tmp_path / "other.json"
    path.write_bytes(content)

    with pytest.raises(BadRequest):
        read_locomo(path, conversation=conversation)


def test_an_unknown_conversation_and_a_missing_file_are_refused(tmp_path):
    with pytest.raises(BadRequest, match="no such conversation"):
        read_locomo(locomo(tmp_path, [SAMPLE]), conversation="conv-99")
    with pytest.raises(BadRequest, match="cannot be read"):
        read_locomo(tmp_path / "missing.json", conversation=None)


def test_a_robot_step_says_what_was_done_seen_and_how_it_ended(tmp_path):
    (draft,) = read_armar7(armar7(tmp_path, STEP)).drafts

    claims = {(claim.entity, claim.relation): claim.value for claim in draft.claims}
    assert draft.kind == "observation"
    assert draft.actor.class_ == "sensor"
    assert draft.observed_at == "2024-07-13T13:12:56-00:00"
    assert claims["look at object", "action_state"] == "Succeeded"
    assert claims["vanilla cookies", "last_seen"] == "2024-07-13T13:12:56-00:00"
    assert claims["soy milk", "last_outcome"] == "Succeeded"
    assert "vanilla cookies" in draft.text
    assert "2543" not in draft.model_dump_json()


def test_a_step_without_objects_is_an_action(tmp_path):
    (draft,) = read_armar7(armar7(tmp_path, STEP | {"objects": []})).drafts

    assert draft.kind == "action"


def test_each_day_of_the_robot_is_a_stream(tmp_path):
    later = STEP | {"timestamp": "2024-07-14T09:00:00.000001"}

    drafts = read_armar7(armar7(tmp_path, STEP, STEP, later)).drafts

    assert [(draft.stream, draft.source_event_id) for draft in drafts] == [
        ("run-0001", "step-000001"),
        ("run-0001", "step-000002"),
        ("run-0002", "step-000003"),
    ]


@pytest.mark.parametrize(
    "change",
    [{"timestamp": "2024-07-13T13:12:56Z"}, {"action_state": "Odd"}, {"parameters": None}, {"objects": [{}]}],
)
def test_a_step_of_another_form_is_refused_by_its_line(tmp_path, change):
    with pytest.raises(BadRequest, match="line 2"):
        read_armar7(armar7(tmp_path, STEP, STEP | change))


# --- vintages ------------------------------------------------------------------------------------


def vintages(tmp_path, *values):
    path = tmp_path / "table.csv"
    rows = [f"2024-01,2024-02-{day:02},{value}" for day, value in enumerate(values, start=1)]
    path.write_text("\n".join(["time,published,index", *rows]), encoding="utf-8")
    columns = parse_columns("valid=time,known=published,value=index", entity="gdp", relation=None)
    read = read_vintages(path, columns, period=Period.MONTH, source="office")
    (contract,) = _contracts(read, unit=None)
    return contract.value_type, [one.drafts[0].claims[0].value for one in read.publications]


def test_a_column_of_numbers_is_read_as_numbers(tmp_path):
    assert vintages(tmp_path, "1", " -2.5", "3e2", "0") == ("number", [1, -2.5, 300.0, 0])


@pytest.mark.parametrize("other", ["n/a", "1_000", "007", "٣", "nan", "1e999"])
def test_one_value_that_is_no_number_leaves_all_the_text_that_they_are(tmp_path, other):
    assert vintages(tmp_path, "1", other) == ("text", ["1", other])
