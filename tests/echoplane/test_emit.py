"""Emitting a file: all of it is validated first, lines are named, order is kept."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from functools import partial

import pytest

from contracts import limits
from contracts.errors import BadRequest, IdempotencyConflict, LimitExceeded, Unavailable
from contracts.grants import LOCAL_GRANT
from contracts.relations import ValueType, default_contract
from contracts.wire import ReceiptAnswer
from echoplane._cli_options import report
from echoplane._emit import WINDOW_LINES, check_atomic, emit, read_lines
from ledger.write import fold, register_contract
from projection import RuleProjector

TURN = {"stream": "s", "kind": "turn", "actor": {"id": "Ann", "class": "user"}, "text": "Hello."}


def jsonl(*rows):
    return "\n".join(json.dumps(row) for row in rows).encode()


def receipt(commit):
    return ReceiptAnswer(
        tenant="t",
        commit=commit,
        recorded_at="2025-01-01T00:00:00Z",
        event_ids=[f"ev_{commit}"],
        positions=[commit],
        event_hashes=["00"],
        commit_hash="00",
        repeated=False,
    )


class Log:
    """Commits in the order of the calls, as the log does; refuses the texts it is told to."""

    def __init__(self, *, refused=()):
        self.texts, self.refused = [], refused

    async def append(self, drafts):
        (draft,) = drafts
        await asyncio.sleep(0)
        if draft.text in self.refused:
            raise IdempotencyConflict(idempotency_key="k")
        self.texts.append(draft.text)
        return receipt(len(self.texts))


def told(lines, append):
    async def keeps_order():
        return True

    return emit(lines, append, keeps_order=keeps_order)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"bogus": 1}, r"line 2: bogus: unknown field"),
        ({"observed_at": "2025-01-01T10:00:00"}, r"line 2.*offset"),
        ({"observed_at": "2025-01-01"}, r"line 2.*time of day"),
        ({"kind": "erasure"}, r"line 2: kind.*own command"),
        ({"actor": {"id": "Ann", "class": "self"}}, r"line 2.*computed"),
        ({"text": None}, r"line 2"),
        (
            {"kind": "correction", "claims": [{"entity": "a", "relation": "b", "value": 1, "stance": "end"}]},
            "line 2",
        ),
    ],
)
def test_a_wrong_line_is_named_and_the_whole_file_refused(change, words):
    with pytest.raises(BadRequest, match=words):
        read_lines(jsonl(TURN, TURN | change, TURN))


def test_what_is_wrong_is_said_without_the_content():
    with pytest.raises(BadRequest) as caught:
        read_lines(jsonl(TURN | {"observed_at": ["SECRET"]}))

    assert "SECRET" not in str(caught.value) + str(caught.value.details())


def test_two_lines_that_share_a_key_and_differ_are_refused():
    first, second = TURN | {"source_event_id": "1"}, TURN | {"source_event_id": "1", "text": "Other."}

    assert len(read_lines(jsonl(first, first))) == 2
    with pytest.raises(BadRequest, match=r"line 2.*line 1"):
        read_lines(jsonl(first, second))


def test_a_line_longer_than_an_event_is_refused():
    with pytest.raises(LimitExceeded, match="line 1"):
        read_lines(b" " * (limits.EVENT_BYTES_MAX + 1) + json.dumps(TURN).encode())


def test_empty_lines_are_passed_over_and_still_counted():
    lines = read_lines(b"\n\n" + jsonl(TURN) + b"\n\n")

    assert [line.number for line in lines] == [3]


async def test_lines_are_committed_in_their_order():
    texts = [f"{number}" for number in range(2 * WINDOW_LINES + 5)]
    log = Log()

    receipts = [
        got async for _, got in told(read_lines(jsonl(*(TURN | {"text": t} for t in texts))), log.append)
    ]

    assert log.texts == texts
    assert [got.commit for got in receipts] == list(range(1, len(texts) + 1))


@pytest.mark.parametrize("is_folded", [True, False])
@pytest.mark.parametrize("schema", [None, '{"type":"string"}'])
async def test_lines_with_values_that_contracts_decide_on_are_committed_in_order_too(
    plane, is_folded, schema
):
    await plane.make_tenant("home")
    kind = ValueType.JSON if schema else ValueType.TEXT
    likes = replace(default_contract("likes"), value_type=kind, schema=schema)
    await register_contract(plane.database, "home", likes, stream="c", actor_id="op", grant=LOCAL_GRANT)
    if is_folded:
        await fold(plane.database, "home", RuleProjector(), events_max=100)
    tea = {"claims": [{"entity": "Ann", "relation": "likes", "value": "tea"}]}
    # As in a process that has just begun, which knows no contracts.
    plane.database.contracts.clear()
    rows = [
        TURN | {"source_event_id": f"e{number}"} | (tea if number % 3 == 0 else {}) for number in range(1, 25)
    ]

    async def append(drafts):
        return await plane.append("home", drafts, grant=LOCAL_GRANT, expected_version=None)

    emitted = emit(read_lines(jsonl(*rows)), append, keeps_order=partial(plane.keeps_order, "home"))
    commits = [got.commit async for _, got in emitted]

    assert commits == sorted(commits)


async def test_lines_committed_beside_a_refused_one_have_their_receipts_and_are_counted():
    lines = read_lines(jsonl(*(TURN | {"text": text} for text in ("one", "two", "three", "four"))))
    log, receipts = Log(refused={"two"}), []

    async def emit_all():
        async for line, _ in told(lines, log.append):
            receipts.append(line.number)

    with pytest.raises(IdempotencyConflict) as refused:
        await emit_all()

    assert log.texts == ["one", "three", "four"]
    assert receipts == [1, 3, 4]
    assert refused.value.details() == {"idempotency_key": "k", "line": 2, "written": 3, "commit": 3}


async def test_a_file_that_was_cut_off_says_what_was_acknowledged_and_how_to_go_on(capsys):
    texts = [f"{number}" for number in range(WINDOW_LINES + 9)]
    lines = read_lines(jsonl(*(TURN | {"text": text} for text in texts)))
    log = Log()

    async def append(drafts):
        if len(log.texts) > WINDOW_LINES:
            raise Unavailable(part="database", reason="connection lost")
        return await log.append(drafts)

    with pytest.raises(Unavailable) as cut_off:
        [got async for got in told(lines, append)]
    report(cut_off.value, as_json=False)

    acknowledged = WINDOW_LINES + 1
    assert cut_off.value.details() == {
        "part": "database", "reason": "connection lost",
        "line": acknowledged + 1, "written": acknowledged, "commit": acknowledged,
    }  # fmt: skip
    said = capsys.readouterr().err
    assert f"{acknowledged} events were acknowledged, up to commit {acknowledged}, and of others" in said
    assert "Emit the same file again" in said


async def test_nothing_after_a_refused_line_that_names_others_is_written():
    rows = [
        TURN | {"text": "a"},
        TURN | {"text": "b", "kind": "retraction", "targets": [{"source_event_id": "gone"}]},
        TURN | {"text": "c"},
    ]
    log = Log(refused=("b",))

    with pytest.raises(IdempotencyConflict) as caught:
        [got async for got in told(read_lines(jsonl(*rows)), log.append)]

    assert log.texts == ["a"]
    assert caught.value.details() == {"idempotency_key": "k", "line": 2, "written": 1, "commit": 1}


def test_one_commit_takes_a_bounded_number_of_events():
    check_atomic(read_lines(jsonl(*[TURN] * limits.APPEND_EVENTS_MAX)))
    with pytest.raises(LimitExceeded):
        check_atomic(read_lines(jsonl(*[TURN] * (limits.APPEND_EVENTS_MAX + 1))))


@pytest.mark.parametrize("raw", [b"", b"\n \n"])
def test_a_file_without_an_event_is_refused(raw):
    with pytest.raises(BadRequest, match="holds no events"):
        read_lines(raw)
