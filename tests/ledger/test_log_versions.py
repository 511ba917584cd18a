"""Events of every version that was ever written: their bytes stand, and readers see the newest shape."""

from __future__ import annotations

import hashlib
import json

import pytest

from contracts.errors import IntegrityFault
from contracts.events import Event, EventDraft, Kind
from ledger import _append, log
from ledger._events import SealedEvent, StoredEvent, open_event
from ledger._prepare import prepare
from ledger._versions import EVENT_VERSION, lifted
from tests.ledger import event_files
from tests.ledger.conftest import MASTER_KEY
from tests.ledger.log_drafts import append, draft, read_all

WRITTEN = {
    1: "59324855bcd728e54ac2e8fb79ec0ff469ce7bbf7e177eb02f595999c3bfba5f",
    2: "cf812b1dbfb9cad9664a2bb9a22f9d8955a2fd61ba2bfc8f3da11c04a2bfe7b8",
    3: "eb8f24b6601d0ea99a0dabe8a348771fd53f4e213f06f200850cd5f9584eb965",
}
"""What each file's bytes hash to: one line for each version, and none ever changes."""


def golden(version):
    return json.loads(event_files.path_of(version).read_text(encoding="utf-8"))


def stored_bytes(form):
    return {name: bytes.fromhex(form[name]) for name in ("header", "ciphertext", "wrapped_key", "hash")}


def stored(form, **changes):
    row = {
        "event_id": form["event_id"], "kind": form["kind"], "position": 1, "commit": 1,
        "recorded_at": event_files.SENT_AT, "erased_by": None,
    }  # fmt: skip
    return StoredEvent(**(row | stored_bytes(form) | changes))


def test_there_is_a_file_of_every_version_and_none_was_changed():
    found = {
        version: hashlib.sha256(event_files.path_of(version).read_bytes()).hexdigest()
        for version in range(1, EVENT_VERSION + 1)
    }

    assert found == WRITTEN
    assert sorted(event_files.FOLDER.glob("events_version_*.json")) == sorted(
        map(event_files.path_of, WRITTEN)
    )


def test_what_is_written_now_is_what_the_newest_file_holds():
    assert event_files.sealed_now() == golden(EVENT_VERSION)


@pytest.mark.parametrize("version", WRITTEN)
def test_a_reader_sees_the_newest_shape_of_any_version(version):
    file = golden(version)
    keys = event_files.keys_of(file["tenant_keys"])

    for number, form in enumerate(file["events"]):
        event = open_event(keys, stored(form))

        assert isinstance(event, Event)
        said = EventDraft.model_validate(form["draft"])
        aimed = [target.event for target in event.draft.targets]
        assert aimed == ([file["events"][0]["event_id"]] if said.targets else [])
        assert event.draft.model_copy(update={"targets": []}) == said.model_copy(update={"targets": []})
        assert event.backfilled == (number == 1)
        assert event.sent_at == (event_files.SENT_AT if number and version > 1 else None)


@pytest.mark.parametrize("version", [0, EVENT_VERSION + 1, True, None, "1"])
def test_a_version_that_this_build_does_not_know_is_a_fault(version):
    with pytest.raises(IntegrityFault):
        lifted(version, {"draft": {}, "references": {}})


def test_to_lift_changes_nothing_of_what_was_read():
    payload = {"draft": {"stream": "s"}, "references": {}}

    assert lifted(1, payload) == payload | {"sent_at": None}
    assert payload == {"draft": {"stream": "s"}, "references": {}}


async def test_a_log_of_all_versions_is_read_verified_and_appended_to(database, clock):
    """As it stands after an upgrade: old events, byte for byte, and new ones after them."""
    files = [golden(version) for version in WRITTEN]
    db = log.open_database(
        plane_url=database.plane, relay_url=database.relay, master_key=MASTER_KEY, clock=clock,
        randomness=event_files.randomness(),
    )  # fmt: skip
    try:
        await log.create_tenant(db, event_files.TENANT)
        keys = await log.tenant_keys(db, event_files.TENANT)
        # One of each file that has no id of its own in common with the others.
        old = [files[0]["events"][0], files[1]["events"][2]]
        drafts = [EventDraft.model_validate(form["draft"]) for form in old]
        prepared = prepare(keys, drafts)
        sealed = tuple(
            SealedEvent(
                event_id=form["event_id"], kind=Kind(form["kind"]),
                **stored_bytes(form),
            )
            for form in old
        )  # fmt: skip
        appending = _append._Appending(events=prepared.events, sealed=sealed, expected=None, under=None)
        (outcome,) = await _append._write(db, event_files.TENANT, [appending])
        new = await append(db, draft("new"), tenant=event_files.TENANT)

        events = await read_all(db, event_files.TENANT)
        report = await log.verify(db, event_files.TENANT)
    finally:
        await db.close()

    assert (outcome.outcome, new.commit) == ("written", 2)
    assert [event.draft.text for event in events] == [drafts[0].text, None, "new"]
    assert [event.sent_at for event in events] == [None, event_files.SENT_AT, None]
    assert events[1].draft.targets[0].event == old[0]["event_id"]
    assert (report.problems, report.events) == ((), 3)
