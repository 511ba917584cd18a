"""
What the doors print and send: the JSON of every answer, as models that JSON Schemas come from.

Instants are strings in UTC with `Z`. Unknown fields are errors here too, so that a client that
validates with these models notices a plane newer than itself.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BaseModel, Field

from contracts import limits
from contracts._wire import Wire
from contracts.audit_wire import AUDIT_SCHEMAS
from contracts.context_wire import CandidateAnswer, ContextAnswer, ReadingAnswer, RouteAnswer
from contracts.dead_wire import DeadLettersAnswer, RetryAnswer, SkipAnswer, SkipBody
from contracts.discovery_wire import ReindexAnswer
from contracts.epoch_wire import DropAnswer, EpochsAnswer, RebuildAnswer, RegisteredAnswer
from contracts.erasure_wire import ErasureAnswer, ErasureBody, ScrubAnswer
from contracts.events import EventDraft
from contracts.log_wire import (
    CheckedAnswer,
    CheckpointAnswer,
    CommitsAnswer,
    ConsistencyAnswer,
    InclusionAnswer,
)
from contracts.names import storable
from contracts.read_wire import (
    DiffAnswer,
    HistoryAnswer,
    JoinAnswer,
    OccurrencesAnswer,
    PinnedViewAnswer,
    PinRequest,
    ResolutionAnswer,
    ResolveAnswer,
    ViewAnswer,
)
from contracts.relation_wire import ContractAnswer, ContractRequest, ContractsAnswer
from contracts.reports import (
    ConformanceAnswer,
    DoctorAnswer,
    MismatchAnswer,
    ReadyAnswer,
    StatusAnswer,
)
from contracts.tenant_wire import (
    DecidedAnswer,
    DeletedAnswer,
    MovedAnswer,
    QuotaBody,
    ReasonBody,
    RetainAnswer,
    RetentionBody,
    TenantsAnswer,
    TenantUseAnswer,
)


class ErrorBody(Wire):
    """One error: a stable code, words for a person, and data. Never content of a memory."""

    code: str
    message: str
    details: dict[str, Any]
    act: str
    """Who acts: `change the request`, `read again, then retry`, `retry later`, or `operators`."""


class ErrorAnswer(Wire):
    """What a door answers instead, for every error."""

    error: ErrorBody


class ReceiptAnswer(Wire):
    """Proof of one accepted append: the lists run parallel to the events given."""

    tenant: str
    commit: int
    recorded_at: str
    event_ids: list[str]
    positions: list[int]
    event_hashes: list[str]
    commit_hash: str
    repeated: bool


class AppendRequest(Wire):
    """
    One atomic append. `expected_version` is the newest version seen of the events' one stream.

    `sent_at` is what the caller's clock says: kept with the events, never trusted.
    """

    events: list[EventDraft] = Field(min_length=1, max_length=limits.APPEND_EVENTS_MAX)
    expected_version: int | None = Field(default=None, ge=0, le=limits.STREAM_EVENTS_MAX)
    sent_at: str | None = None


class EventAnswer(Wire):
    """One event of the log, decrypted and checked against its hash; `event` is null once erased."""

    tenant: str
    event_id: str
    kind: str
    position: int
    commit: int
    recorded_at: str
    backfilled: bool
    """Whether `recorded_at` was stated by whoever brought a past in, instead of taken from the clock."""
    clock_skew_us: int | None
    """By how much the sender's clock was ahead when it was recorded, its way here included; null: unsaid."""
    erased: bool
    event: EventDraft | None


class EventsAnswer(Wire):
    """
    Events in order; none are left where there are none. Erased ones stand in their places.

    Of a stream, the first has version `after_version` + 1, and there are no gaps.
    """

    tenant: str
    events: list[EventAnswer]


class FollowedAnswer(Wire):
    """One commit of a log that is followed: whole, each once, in order."""

    tenant: str
    commit: int
    recorded_at: str
    commit_hash: str
    events: list[EventAnswer]


class AskAnswer(Wire):
    """
    An answer, its evidence, and all that is needed to replay it.

    `reading` is null unless the request asked for one.
    """

    status: Literal["answered", "evidence", "insufficient_evidence", "conflict"]
    answer: Any
    reason: str | None
    cites: list[str]
    view: ViewAnswer
    context: ContextAnswer
    resolutions: list[ResolutionAnswer]
    routes: list[RouteAnswer]
    candidates: list[CandidateAnswer]
    degraded: bool
    configuration_hash: str
    trail: str
    reading: ReadingAnswer | None


def _asked(text: str) -> str:
    if not storable(text).strip():
        raise ValueError("is empty")
    return text


QuestionText = Annotated[
    str, Field(min_length=1, max_length=limits.QUESTION_CHARACTERS_MAX), AfterValidator(_asked)
]
"""A question as it was asked; its trail must be able to hold it."""


class AskRequest(Wire):
    """A question with its options; the body of `POST …/ask`."""

    question: QuestionText
    valid_at: str | None = None
    known_at: str | None = None
    generation: str | None = None
    min_commit: int | None = Field(default=None, ge=0)
    view: str | None = None
    budget: int = Field(default=limits.BUDGET_DEFAULT_TOKENS, ge=1, le=limits.BUDGET_TOKENS_MAX)
    budget_bytes: int | None = Field(default=None, ge=1, le=limits.BUDGET_BYTES_MAX)
    disclose_conflicts: bool = False
    reader: bool = False


class StoredContextAnswer(Wire):
    """
    A stored context: its canonical form (keyed digests stand where a reader sees text).

    `form` is null once it was erased, and `erased_events` are those that went with it.
    """

    hash: str
    content_hash: str
    erased: bool
    erased_events: list[str]
    form: Any


class ReplayAnswer(Wire):
    """How a replay ended. `mismatch` is an incident."""

    verdict: Literal["identical", "redacted", "mismatch"]
    context: str
    replayed: str | None
    differences: list[str]
    erased: list[str]


class VerifyAnswer(Wire):
    """
    What a recomputation of everything found. `ok` is false with at least one problem.

    `head` is the hash that the log ends at: kept elsewhere, it proves later that nothing before it
    was changed. `cells` stand at the newest folded commit; all were held against the claims at `cuts`
    of the `changes` commits at which any of them changed, and fewer cuts is a sample. `problems` are
    the first ones, `problems_count` is all.
    """

    tenant: str
    ok: bool
    commits: int
    events: int
    erased: int
    claims: int
    cells: int
    cuts: int
    changes: int
    trails: int
    head: str
    problems: list[str]
    problems_count: int


class ImportAnswer(Wire):
    """What an import brought in: `repeated` events were there already; `folded` is a commit."""

    tenant: str
    events: int
    repeated: int
    commit: int
    folded: int
    projection_failures: int


class VintagesAnswer(Wire):
    """What an import of revisions brought in: each publication is one commit, known when it was published."""

    tenant: str
    rows: int
    claims: int
    corroborations: int
    events: int
    repeated: int
    publications: int
    commit: int
    folded: int
    projection_failures: int


class TenantAnswer(Wire):
    """A tenant, and whether this call made it."""

    tenant: str
    created: bool


class TokenAnswer(Wire):
    """A fresh bearer token. It is shown once and stored only as a digest."""

    tenant: str
    token: str
    label: str
    rights: list[str]
    actors: list[str]
    classes: list[str]


SCHEMAS: Final[dict[str, type[BaseModel]]] = {
    **AUDIT_SCHEMAS,
    "append-request": AppendRequest,
    "ask-answer": AskAnswer,
    "ask-request": AskRequest,
    "checked-answer": CheckedAnswer,
    "checkpoint-answer": CheckpointAnswer,
    "commits-answer": CommitsAnswer,
    "conformance-answer": ConformanceAnswer,
    "consistency-answer": ConsistencyAnswer,
    "context-answer": StoredContextAnswer,
    "contract-answer": ContractAnswer,
    "contract-request": ContractRequest,
    "contracts-answer": ContractsAnswer,
    "dead-letters-answer": DeadLettersAnswer,
    "diff-answer": DiffAnswer,
    "doctor-answer": DoctorAnswer,
    "drop-answer": DropAnswer,
    "epochs-answer": EpochsAnswer,
    "erasure-answer": ErasureAnswer,
    "erasure-request": ErasureBody,
    "error-answer": ErrorAnswer,
    "event": EventDraft,
    "event-answer": EventAnswer,
    "events-answer": EventsAnswer,
    "followed-answer": FollowedAnswer,
    "history-answer": HistoryAnswer,
    "import-answer": ImportAnswer,
    "inclusion-answer": InclusionAnswer,
    "vintages-answer": VintagesAnswer,
    "join-answer": JoinAnswer,
    "mismatch-answer": MismatchAnswer,
    "occurrences-answer": OccurrencesAnswer,
    "pin-request": PinRequest,
    "pinned-view-answer": PinnedViewAnswer,
    "ready-answer": ReadyAnswer,
    "rebuild-answer": RebuildAnswer,
    "receipt-answer": ReceiptAnswer,
    "registered-answer": RegisteredAnswer,
    "replay-answer": ReplayAnswer,
    "resolve-answer": ResolveAnswer,
    "retry-answer": RetryAnswer,
    "scrub-answer": ScrubAnswer,
    "reindex-answer": ReindexAnswer,
    "skip-answer": SkipAnswer,
    "skip-request": SkipBody,
    "status-answer": StatusAnswer,
    "tenant-answer": TenantAnswer,
    "tenant-decided-answer": DecidedAnswer,
    "tenant-deleted-answer": DeletedAnswer,
    "tenant-moved-answer": MovedAnswer,
    "tenant-quota-request": QuotaBody,
    "tenant-reason-request": ReasonBody,
    "tenant-retain-answer": RetainAnswer,
    "tenant-retention-request": RetentionBody,
    "tenant-use-answer": TenantUseAnswer,
    "tenants-answer": TenantsAnswer,
    "token-answer": TokenAnswer,
    "verify-answer": VerifyAnswer,
}
"""Every shape a caller sends or receives, by the name of its file in `docs/schemas`."""
