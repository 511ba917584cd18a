"""What a language module is: text in, findings out. The worker and the projector know nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from contracts.claims import Span
from contracts.events import Stance
from contracts.times import Term


@dataclass(frozen=True, slots=True, kw_only=True)
class Speaker:
    """
    Who says the text, and when.

    `observed` carries the source's own offset, in which "yesterday" and "in May" are read; None
    where the source gave no time, so that relative dates state nothing. `reports` says that a sensor
    tells what it did or saw: of things in the world, and never a request.
    """

    actor_id: str
    observed: Term | None
    reports: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedValidity:
    """
    When a finding holds, in calendar terms as the emit shape writes them; one of three forms.

    `since`; `at` (an occurrence); or a span, where `start` or `end` may be open.
    """

    since: str | None
    at: str | None
    start: str | None
    end: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """
    One claim read out of a text. `stance` is `assert` or `end`; `value` is None only for an end.

    `span` is where the value stands in the text, in code points; for an end without a value, the
    clause that says so.
    """

    entity: str
    relation: str
    value: str | None
    stance: Stance
    valid: StatedValidity | None
    span: Span


class Language(Protocol):
    """
    Reads one language. Pure: the same text and speaker give the same findings for ever.

    It never raises for any text, and takes time linear in its length.
    """

    name: str

    def read(self, text: str, speaker: Speaker) -> Sequence[Finding]:
        """Return what the text asserts or ends, in reading order."""
        ...
