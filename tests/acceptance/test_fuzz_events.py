"""
Whatever stands where an event should be is refused and nothing written, or kept, read back as it was said,
and folded: no event that the door lets in can stop its tenant.
"""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any, Final

import pytest
from hypothesis import strategies as st

from contracts.events import EventDraft
from tests.acceptance.fuzzing import Target, drawn, is_sound

GOOD: Final = {"stream": "s", "kind": "turn", "actor": {"id": "Ann", "class": "user"}, "text": "Hello."}
CLAIM: Final = {"entity": "Ann", "relation": "likes", "value": "tea", "valid": {"since": "2025-01-01"}}
MAKING: Final = ("turn", "observation", "action", "claim")
STANCES: Final = {"correction": "correct", "retraction": "retract", "settlement": "settle"}
TIMES: Final = (
    "2025-03-01T09:00:00Z", "2025-03-01T23:59:59.999999-14:00", "2025-02-28", "2025-03", "2025",
    "0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z", "9999-12-31", "0001",
)  # fmt: skip
HOSTILE: Final = (
    "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59.999999-23:59", "0000", "2025-02-29", "-1", "", " ",
    "2025-03-01T24:00:00Z", "2025-03-01T09:00:60Z", "2025-03-01T09:00:00", "\u0661\u0662\u0663\u0664",
    "2025-03-01T09:00:00.1234567Z", "2025-03-01T09:00:00+00:00:01", "2025-06-15T12:00:00+24:00", "\0",
    "\ud800", "2025-W10",
    "*", "self", "same_as", "x" * 5_000, "\u202e", "e\u0301", "NaN", 2**53, 2**53 + 1, 10**4_200,
    -(2**63) - 1, 10**400, 1e308, -0.0, 5e-324, float("nan"), float("inf"), None, True, [], {}, [[]],
    {"a": {"b": None}},
    [[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]], {"": 1}, {"\0": 1}, -1, 0, 1.5, 64, 2**31,
)  # fmt: skip
"""What is put in the place of any part of an event: each was, somewhere, somebody's undoing."""

names = st.sampled_from(("Ann", "Ben", "lives_in", "likes", "works_at"))
values = names | st.integers(-9, 9) | st.floats(-9, 9) | st.booleans() | st.lists(names, max_size=2)
times = st.sampled_from(TIMES)
spans = st.tuples(times, times).map(sorted) | st.tuples(times, st.none()) | st.tuples(st.none(), times)
intervals = spans.map(lambda pair: {"from": pair[0], "to": pair[1]})
valid = (
    times.map(lambda at: {"since": at}) | times.map(lambda at: {"at": at}) | intervals
    | st.tuples(times, st.sampled_from(("year", "day", "second", "microsecond"))).map(
        lambda one: {"at": one[0], "precision": one[1]}
    )
)  # fmt: skip
aims = st.fixed_dictionaries(
    {"entity": names, "relation": names}, optional={"value": values, "interval": intervals}
) | st.builds(lambda: {"source_event_id": "t1"})
hostile = st.sampled_from(HOSTILE) | st.text(max_size=8) | st.integers() | st.floats()


@st.composite
def events(draw: st.DrawFn) -> dict[str, Any]:
    """Return an event as it should be."""
    kind = draw(st.sampled_from((*MAKING, *STANCES)))
    event = {"stream": "s", "kind": kind, "actor": {"id": draw(names), "class": "user"}} | draw(
        st.fixed_dictionaries({}, optional={
            "observed_at": st.sampled_from(TIMES[:2]), "subjects": st.lists(names, max_size=2),
            "causation": names, "correlation": names, "text": st.text(max_size=40),
        })
    )  # fmt: skip
    claim = {"entity": draw(names), "relation": draw(names), "value": draw(values)} | draw(
        st.fixed_dictionaries({}, optional={"valid": valid, "stance": st.sampled_from(("assert", "end"))})
    )
    if kind in MAKING:
        return event | {"claims": [claim]}
    aimed = event | {"targets": [draw(aims)]}
    if kind == "settlement":
        return aimed | {"winner": draw(aims)}
    return aimed if kind == "retraction" else aimed | {"claims": [claim | {"stance": STANCES[kind]}]}


def places(value: Any) -> list[tuple[Any, Any]]:
    """Return every container and key below a value: all that can be put otherwise."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [found for key, one in inner for found in ((value, key), *places(one))]


@st.composite
def spoilt(draw: st.DrawFn) -> bytes:
    """Return an append whose last event has parts put otherwise, left out or added; or bytes."""
    # Copied: what is drawn may be drawn again, and must then be what it was.
    whole = deepcopy({"events": [GOOD, draw(events())]})
    for _ in range(draw(st.integers(0, 2))):
        container, key = draw(st.sampled_from(places({"": whole["events"]})))
        match draw(st.integers(0, 3)):
            case 0 if isinstance(container, dict):
                container[draw(names | st.text(max_size=8))] = deepcopy(draw(hostile))
            case 1:
                del container[key]
            case _:
                container[key] = deepcopy(draw(hostile))
    text = json.dumps(whole).encode()
    if draw(st.integers(0, 9)) == 0:
        at = draw(st.integers(0, len(text) - 1))
        text = text[:at] + draw(st.binary(max_size=3)) + text[at + draw(st.integers(0, 3)) :]
    return text


PLACES: Final = (("text",), ("actor", "id"), ("claims", 0, "value"), ("claims", 0, "valid", "since"))


async def test_no_value_in_any_place_of_an_event_breaks_what_keeps_or_folds_it(door, target: Target):
    for hostile in HOSTILE:
        for place in PLACES:
            event: Any = GOOD | {"claims": [CLAIM]}
            whole: Any = deepcopy({"events": [GOOD, event]})
            container = whole["events"][1]
            for key in place[:-1]:
                container = container[key]
            container[place[-1]] = hostile
            await tell(door, target, json.dumps(whole).encode())
    print(target.counts)
    assert min(target.counts[status] for status in ("201", "422")) > 10
    await is_sound(door)


@pytest.mark.parametrize("examples", [40, pytest.param(2_000, marks=pytest.mark.slow)])
@pytest.mark.timeout(1_800)
async def test_an_event_is_refused_whole_or_kept_as_it_was_said_and_folded(door, target: Target, examples):
    async def tried(body: bytes) -> None:
        await tell(door, target, body)

    await drawn(spoilt(), tried, examples=examples)

    print(target.counts)
    assert target.counts["201"] > examples / 20
    assert target.counts["422"] > examples / 20
    await is_sound(door)


async def tell(door: Any, target: Target, body: bytes) -> None:
    """Send an append, and see that it was refused whole, or kept as it was said and folded."""
    answer = await target.call("POST", f"/v1/{door.tenant}/events", body, {})
    await target.judge(answer, f"POST {body!r:.2000}")
    if answer.status != 201:
        return
    receipt = json.loads(answer.body)
    for event_id, said in zip(receipt["event_ids"], json.loads(body)["events"], strict=True):
        read = await door.call("GET", f"/events/{event_id}")
        assert read["event"] == EventDraft.model_validate(said).model_dump(mode="json", by_alias=True)
    await door.fold()
    assert (await door.call("GET", "/dead"))["dead"] == [], f"{body!r} stops the tenant"
    target.written = target.digest()
