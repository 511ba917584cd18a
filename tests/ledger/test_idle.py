"""What would be accepted and do nothing is refused where it is appended, with the field that is idle."""

from __future__ import annotations

import pytest

from contracts.errors import BadRequest
from contracts.events import EventDraft
from contracts.grants import LOCAL_GRANT
from ledger import log
from ledger._idle import refuse_idle

HOME = {"entity": "ann", "relation": "home"}
SAME = {"entity": "ann", "relation": "same_as"}
TARGETS = [{"source_event_id": "e1"}]


def event(*claims, **fields):
    actor = {"id": "ann", "class": "user"}
    form = {"stream": "s", "kind": "claim", "actor": actor, "source_event_id": "e2", "claims": [*claims]}
    return EventDraft.model_validate(form | fields)


IDLE = [
    ("claims[0].targets", event(HOME | {"value": "a", "targets": TARGETS})),
    ("claims[0].targets", event(HOME | {"stance": "end", "targets": TARGETS})),
    ("claims[1].winner", event(HOME | {"value": "a"}, HOME | {"value": "b", "winner": TARGETS[0]})),
    ("targets", event(HOME | {"value": "a"}, targets=TARGETS)),
    ("winner", event(HOME | {"value": "a"}, winner=TARGETS[0])),
    ("winner", event(HOME | {"stance": "settle", "winner": TARGETS[0]}, winner=TARGETS[0])),
    ("winner", event(kind="retraction", targets=TARGETS, winner=TARGETS[0])),
    ("claims[0].value", event(SAME | {"value": "ann"})),
    ("claims[0].value", event(SAME | {"value": " ann "})),
    ("claims[0].value", event(SAME | {"value": "ann", "relation": "not_same_as"})),
    ("claims[0].value", event(SAME | {"stance": "retract"})),
    ("claims[0].value", event(SAME | {"stance": "dispute"})),
    ("claims[0].value", event(SAME | {"stance": "settle", "winner": TARGETS[0]}, targets=TARGETS)),
    ("claims[0].targets[0].value", event({"stance": "retract", "targets": [SAME]})),
    ("targets[0].value", event(kind="retraction", targets=[SAME])),
    ("claims[0].valid", event(SAME | {"value": "annie", "valid": {"since": "2023"}})),
]
BUSY = [
    event(HOME | {"value": "a"}, HOME | {"stance": "retract", "value": "b"}, targets=TARGETS),
    event(text="No, I live in Lyon.", targets=TARGETS),
    event(HOME | {"value": "a"}, text="No, I live in Lyon.", targets=TARGETS),
    event(SAME | {"value": "annie"}),
    event(SAME | {"stance": "retract", "value": "annie"}),
    event(SAME | {"stance": "retract", "targets": TARGETS}),
    event({"stance": "retract", "targets": [SAME | {"value": "annie"}]}),
    event(kind="settlement", targets=TARGETS, winner=TARGETS[0]),
    event(HOME | {"stance": "settle"}, HOME | {"value": "a"}, winner=TARGETS[0]),
    event(HOME | {"value": "a"}, text="It was Lyon, not Oslo.", winner=TARGETS[0]),
]


@pytest.mark.parametrize(("field", "draft"), IDLE, ids=str)
def test_what_does_nothing_is_refused_with_the_field_that_is_idle(field, draft):
    with pytest.raises(BadRequest) as refused:
        refuse_idle([event(HOME | {"value": "a"}), draft])

    assert refused.value.field == f"events[1].{field}"


@pytest.mark.parametrize("draft", BUSY, ids=str)
def test_what_can_do_something_is_taken(draft):
    refuse_idle([draft])


async def test_an_append_with_a_part_that_does_nothing_writes_nothing(db):
    first = event(HOME | {"value": "a"}, source_event_id="e1")

    with pytest.raises(BadRequest) as refused:
        await log.append(db, "acme", [first, event(SAME | {"stance": "retract"})], grant=LOCAL_GRANT)

    assert refused.value.field == "events[1].claims[0].value"
    assert (await log.append(db, "acme", [first], grant=LOCAL_GRANT)).commit == 1


async def test_what_was_accepted_before_it_was_refused_is_answered_as_it_was(db, monkeypatch):
    first, idle = event(HOME | {"value": "a"}, source_event_id="e1"), event(SAME | {"value": "ann"})
    with monkeypatch.context() as before:
        before.setattr("ledger._append.refuse_idle", lambda _: None)
        receipt = await log.append(db, "acme", [first, idle], grant=LOCAL_GRANT)

    again = await log.append(db, "acme", [first, idle], grant=LOCAL_GRANT)

    assert (again.repeated, again.event_ids) == (True, receipt.event_ids)
