"""Readers of public sets: what is told and asked knows nothing of what is gold, in any of their forms."""

from __future__ import annotations

import gzip
import json
import zipfile
from pathlib import Path

import pytest

from audit import DATA_SETS, Gold
from contracts.errors import BadRequest

OWN = Path(__file__).resolve().parents[1] / "data" / "evaluation_own.json"
LOCOMO, BEAM, LONG = (DATA_SETS[name] for name in ("locomo", "beam", "longmemeval"))


def written(path, document, *, packed=False):
    path.parent.mkdir(parents=True, exist_ok=True)
    raw = json.dumps(document).encode()
    path.write_bytes(gzip.compress(raw) if packed else raw)
    return path


# --- LoCoMo -----------------------------------------------------------------------------------------


def test_locomo_is_one_history_a_conversation_however_it_is_wrapped(tmp_path):
    [sample] = json.loads(OWN.read_text())
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        archive.writestr("one.json", json.dumps(sample))
    bare = {**sample["conversation"], "qa": sample["qa"]}

    forms = [
        OWN,
        written(tmp_path / "packed.json", [sample], packed=True),
        written(tmp_path / "folder" / "one.json", bare).parent,
        tmp_path / "all.zip",
    ]

    read = [LOCOMO.read(form) for form in forms]
    assert all(one == read[0] for one in read)
    assert all(LOCOMO.read_gold(form) == LOCOMO.read_gold(OWN) for form in forms)
    [history] = read[0]
    assert [turn.session for turn in history.turns] == [1] * 4 + [2] * 4
    assert (
        history.turns[2].text
        == "My sister keeps two goats and a donkey. [shares a picture: a donkey behind a fence]"
    )
    assert history.turns[4].observed_at == "2025-05-19T19:40-00:00"


def test_ids_that_are_not_well_formed_are_read_and_those_of_no_turn_are_dropped(tmp_path):
    [sample] = json.loads(OWN.read_text())
    wordings = [["D1:1; D2:02"], ["D:2:3"], ["D"], ["D1:99"], ["D1:1 D1:2", "D1:1"], "D2:4"]
    sample["qa"] = [
        {"question": f"{number}?", "category": 1, "evidence": given} for number, given in enumerate(wordings)
    ]

    [gold] = LOCOMO.read_gold(written(tmp_path / "one.json", [sample]))

    assert [sorted(one.turns) for one in gold] == [[0, 5], [6], [], [], [0, 1], [7]]


# --- BEAM -------------------------------------------------------------------------------------------


def message(number, content, *, anchor=None):
    role = "assistant" if number % 2 else "user"
    return {"role": role, "id": number, "content": content, "time_anchor": anchor, "index": "1,1"}


BATCHES = [
    {
        "batch_number": 1,
        "time_anchor": None,
        "turns": [
            [message(0, "I sail a dinghy. ->-> 1,1", anchor="March-15-2024"), message(1, "Nice.")],
            [message(2, "It is red."), message(3, "I see.")],
        ],
    },
    {"batch_number": 2, "turns": [[message(4, "I sold it.", anchor="April-5-2024"), message(5, "Oh.")]]},
]
PROBES = {
    "abstention": [{"question": "Who made it?", "ideal_response": "not said", "rubric": ["none"]}],
    "knowledge_update": [
        {
            "question": "Have I a boat?",
            "answer": "No",
            "source_chat_ids": {"original_info": [0], "updated_info": [4, [2]]},
        }
    ],
}


def beam(folder, chat, probes=None, *, name="chat.json"):
    written(folder / name, chat, packed=name.endswith(".gz"))
    written(folder / "probing_questions.json.gz", probes or PROBES, packed=True)
    return folder


@pytest.mark.parametrize(
    "chat",
    [
        BATCHES,
        {"batches": BATCHES},
        [{"plan-1": BATCHES[:1]}, {"plan-2": BATCHES[1:]}],
        [{**batch, "turns": [one for group in batch["turns"] for one in group]} for batch in BATCHES],
    ],
    ids=["groups", "object", "plans", "flat"],
)
def test_a_beam_chat_is_read_however_deep_its_messages_lie(tmp_path, chat):
    folder = beam(tmp_path / "7", chat)

    [history] = BEAM.read(tmp_path)
    [gold] = BEAM.read_gold(folder)

    assert [(turn.session, turn.speaker_class) for turn in history.turns] == [
        (1, "user"), (1, "assistant"), (1, "user"), (1, "assistant"), (2, "user"), (2, "assistant"),
    ]  # fmt: skip
    assert [history.turns[place].observed_at for place in (3, 5)] == [
        "2024-03-15T00:00-00:00",
        "2024-04-05T00:00-00:00",
    ]
    assert history.turns[0].text == "I sail a dinghy."
    assert gold == (
        Gold(kind="abstention", turns=frozenset(), apart=False, answer=None),
        Gold(kind="knowledge_update", turns=frozenset({0, 2, 4}), apart=False, answer="No"),
    )


def test_a_beam_chat_is_read_from_its_cut_form_and_chats_by_number(tmp_path):
    for name in ("10", "9"):
        beam(tmp_path / name, BATCHES)
    beam(tmp_path / "9", BATCHES[:1], name="chat_trunecated.json.gz")

    assert [len(history.turns) for history in BEAM.read(tmp_path)] == [4, 6]


# --- LongMemEval ------------------------------------------------------------------------------------


def said(content, **more):
    return {"role": "user", "content": content, **more}


INSTANCE = {
    "question_id": "q1",
    "question_type": "single-session-user",
    "question": "What do I grow?",
    "answer": "Beans",
    "question_date": "2023/05/30 (Tue) 23:40",
    "haystack_dates": ["2023/05/20 (Sat) 02:57", "2023/05/20 (Sat) 02:21"],
    "haystack_session_ids": ["answer_1", "s2"],
    "haystack_sessions": [[said("I grow beans.", has_answer=True), said("Yes.")], [said("It rains.")]],
    "answer_session_ids": ["answer_1"],
}
POOLED = [
    {
        "question_id": f"p{number}{'_abs' if number == 2 else ''}",
        "question_type": "multi-session",
        "question": f"Question {number}?",
        "question_date": None,
        "evidence_sessions": [{"session_date": "2023/05/01 (Mon) 10:00", "turns": turns}] if turns else [],
    }
    for number, turns in enumerate([[said("I grow beans.")], [said("I have a cat.")], []])
]


def test_an_instance_is_told_by_date_and_asked_at_the_end_of_its_day(tmp_path):
    path = written(tmp_path / "s.json", [INSTANCE])

    [history] = LONG.read(path)

    assert [turn.text for turn in history.turns] == ["It rains.", "I grow beans.", "Yes."]
    assert history.questions[0].asked_at == "2023-05-30T23:59:59-00:00"
    assert LONG.read_gold(path) == [
        (Gold(kind="single-session-user", turns=frozenset({1}), apart=False, answer="Beans"),)
    ]


def test_evidence_sessions_are_pooled_with_filler_and_none_is_there_twice(tmp_path):
    written(tmp_path / "evidence.json", POOLED)
    written(tmp_path / "instances.json", [{"variant": "s-full", "instance": INSTANCE}])

    pool, _ = LONG.read(tmp_path)
    gold, _ = LONG.read_gold(tmp_path)

    # The evidence that stands in the filler is not told again beside it.
    assert [turn.text for turn in pool.turns] == ["I have a cat.", "It rains.", "I grow beans.", "Yes."]
    assert [(sorted(one.turns), one.apart) for one in gold] == [([2], False), ([0], False), ([], True)]


# --- all --------------------------------------------------------------------------------------------


def noisy_locomo(tmp_path):
    [sample] = json.loads(OWN.read_text())
    for held in sample["conversation"].values():
        for place, turn in enumerate(held if isinstance(held, list) else []):
            turn["dia_id"] = f"D9:{len(held) - place}"
    for item in sample["qa"]:
        item |= {"answer": "Zz", "evidence": ["D9:1"], "category": 2}
    return LOCOMO, OWN, written(tmp_path / "b.json", [sample | {"sample_id": "zz", "observation": "Zz"}])


def noisy_beam(tmp_path):
    probes = json.loads(json.dumps(PROBES).replace("[4, [2]]", "[1]").replace("No", "Xx"))
    return BEAM, beam(tmp_path / "a", BATCHES), beam(tmp_path / "b", BATCHES, probes)


def noisy_longmemeval(tmp_path):
    other = json.loads(json.dumps(INSTANCE))
    other |= {"question_id": "z_abs", "answer": "Zz", "answer_session_ids": ["s2"], "question_type": "none"}
    other["haystack_session_ids"] = ["n1", "n2"]
    other["haystack_sessions"][0][0].pop("has_answer")
    other["haystack_sessions"][1][0]["has_answer"] = True
    return LONG, written(tmp_path / "a.json", [INSTANCE]), written(tmp_path / "b.json", [other])


@pytest.mark.parametrize("noisy", [noisy_locomo, noisy_beam, noisy_longmemeval])
def test_other_gold_and_other_ids_change_nothing_of_what_is_told_and_asked(tmp_path, noisy):
    data_set, path, other = noisy(tmp_path)

    assert data_set.read(path) == data_set.read(other)
    assert data_set.read_gold(path) != data_set.read_gold(other)


@pytest.mark.parametrize("data_set", list(DATA_SETS.values()), ids=list(DATA_SETS))
@pytest.mark.parametrize("content", [b"", b"[", b"[]", b"[1]", b'[{"a": 1}]', b"\x1f\x8bnothing"])
def test_a_file_that_is_not_of_the_set_is_refused(tmp_path, data_set, content):
    path = tmp_path / "wrong.json"
    path.write_bytes(content)

    for given in (path, tmp_path / "nowhere"):
        with pytest.raises(BadRequest):
            data_set.read(given)
