"""What auditors are answered: trails, bundles, gates, claims."""

from __future__ import annotations

from typing import Final

from pydantic import BaseModel

from contracts._wire import Wire
from contracts.artifacts import Measure
from contracts.gates import Outcome


class BundleAnswer(Wire):
    """How the check of a bundle ended: `holds`, what was compared by kind, and the first problems."""

    bundle: str
    holds: bool
    level: str | None
    measures: tuple[Measure, ...]
    checked: dict[str, int]
    problems: tuple[str, ...]
    problems_count: int


class GateAnswer(Wire):
    """
    A gate: how far it has come, how it ended, what is wrong with its record.

    `same_code` says whether the source is today what was registered; another one changes no record, and
    refuses a run.
    """

    gate: str
    state: str | None
    level: str | None
    digest: str | None
    outcome: Outcome | None
    same_code: bool | None
    problems: tuple[str, ...]


class ClaimAnswer(Wire):
    """A claim that a gate supports, and what is missing for superiority."""

    gate: str
    text: str
    missing: tuple[str, ...]


class TrailAnswer(Wire):
    """One recall. `status` is null where it is older than that; `erased` says that its question is gone."""

    number: int
    trail: str
    context: str
    asked_at: str
    status: str | None
    erased: bool


class TrailsAnswer(Wire):
    """Recalls in the order in which they were asked; none are left where there are none."""

    tenant: str
    trails: list[TrailAnswer]


class TodayAnswer(Wire):
    """
    What today's logic says to a stored question, from what was known then, in the serving epoch.

    `then` is null where the epoch of then was dropped; `same` compares with the stored digest all the same.
    Once the question was erased, `erased_events` are those that went with it, and `epoch_then`, `then`, `now`
    and `same` are null.
    """

    context: str
    epoch_then: int | None
    epoch_now: int
    then: str | None
    now: str | None
    same: bool | None
    differences: list[str]
    erased: bool
    erased_events: list[str]


class ChangedAnswer(Wire):
    """An answer that used an event, with and without it; `changes` is null where it cannot be given now."""

    trail: str
    context: str
    changes: bool | None
    before: str
    after: str
    differences: list[str]


class WithoutAnswer(Wire):
    """
    What an operator's retraction of an event would change now. Nothing is written.

    `erased` says that the event is, and nothing would.

    `keys` that would stand otherwise, `answers` that used it, asked again; `erased_count` more used it
    and are erased. `next_number` begins the next page of answers, null at the end.
    """

    tenant: str
    event: str
    erased: bool
    keys: list[str]
    answers: list[ChangedAnswer]
    erased_count: int
    next_number: int | None


AUDIT_SCHEMAS: Final[dict[str, type[BaseModel]]] = {
    "bundle-answer": BundleAnswer,
    "claim-answer": ClaimAnswer,
    "gate-answer": GateAnswer,
    "today-answer": TodayAnswer,
    "trails-answer": TrailsAnswer,
    "without-answer": WithoutAnswer,
}
"""Every shape of these, by the name of its file in `docs/schemas`."""
