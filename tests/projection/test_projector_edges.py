"""A text must never stop a tenant, whatever it says and whenever it was said."""

import unicodedata

import pytest

from contracts.events import Event, EventDraft
from contracts.times import KnownAt, parse_instant, parse_term
from projection import RuleProjector


def projected(text, observed_at):
    draft = EventDraft.model_validate(
        {
            "stream": "s",
            "kind": "turn",
            "actor": {"id": "u", "class": "user"},
            "text": text,
            "observed_at": observed_at,
        }
    )
    event = Event(
        backfilled=False,
        sent_at=None,
        event_id="ev_1",
        position=1,
        commit=1,
        recorded_at=KnownAt(parse_instant("2026-01-01T00:00:00Z", field="recorded_at")),
        observed=parse_term(observed_at, field="observed_at"),
        draft=draft,
    )
    return RuleProjector().project(event)


@pytest.mark.parametrize("unseen", ["", "\ufeff", "\u200b"])
@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_a_text_is_read_in_whatever_form_its_letters_came_and_quoted_as_it_came(form, unseen):
    first, second = (unicodedata.normalize(form, text) for text in ("Grüße, José! ", "I live in Orléans."))

    (claim,) = projected(first + unseen + second, "2020-01-01T00:00:00Z")

    assert claim.draft.value == "Orléans"
    (span,) = claim.spans
    assert (first + unseen + second)[span.start : span.end].strip(" \ufeff\u200b") == second[10:-1]


@pytest.mark.parametrize("noun", ["x" * 504, "é" * 508])
def test_a_relation_longer_than_a_name_may_be_is_not_read(noun):
    assert projected(f"My favorite {noun} is Blue.", "2020-01-01T00:00:00Z") == []


@pytest.mark.parametrize(
    ("text", "observed_at"),
    [
        ("I moved to Graz this year.", "9998-12-30T00:00:00Z"),
        ("I moved to Graz in December.", "9998-12-30T00:00:00Z"),
        ("I moved to Graz on Dec 31.", "0001-01-01T00:00:00Z"),
        ("I visited Rome today.", "0001-01-01T14:00:00+14:00"),
        ("I visited Oslo yesterday.", "0001-01-02T00:00:00+14:00"),
        ("I moved to Graz two years ago.", "0001-01-01T00:00:00Z"),
    ],
)
def test_dates_at_the_ends_of_the_calendar_stop_nothing(text, observed_at):
    projected(text, observed_at)
