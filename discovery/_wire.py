"""
What goes over the private socket: frames of four bytes of length (big-endian), then that much JSON.

One request and one answer a connection. Unknown fields, wrong types and naive times are refused.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Collection, Sequence
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from contracts.errors import BadRequest, EchoplaneError, LimitExceeded, NotFound, Unavailable
from contracts.limits import BUDGET_BYTES_MAX, BUDGET_TOKENS_MAX, NAME_CHARACTERS_MAX, QUESTION_CHARACTERS_MAX
from contracts.proposals import Proposal
from contracts.times import KnownAt, ValidAt
from contracts.trails import Question
from contracts.views import View
from discovery._routes import ROUTES

REQUEST_BYTES_MAX: Final = 524_288
QUESTIONS_MAX: Final = 16
"""Questions in one request."""
ANSWER_BYTES_MAX: Final = 4_194_304
COMMITS_MAX: Final = 2**62

# Every character of the longest questions may take six bytes as an escape, and the rest is short.
assert 6 * (QUESTIONS_MAX * QUESTION_CHARACTERS_MAX + NAME_CHARACTERS_MAX) + 8_192 <= REQUEST_BYTES_MAX

_LENGTH: Final = struct.Struct(">I")


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class _Question(_Strict):
    text: str = Field(max_length=QUESTION_CHARACTERS_MAX)
    budget_tokens: int = Field(ge=1, le=BUDGET_TOKENS_MAX)
    disclose_conflicts: bool
    budget_bytes: int | None = Field(default=None, ge=1, le=BUDGET_BYTES_MAX)


class _View(_Strict):
    valid_at: AwareDatetime
    known_at: AwareDatetime
    cut: int = Field(ge=0, le=COMMITS_MAX)
    epoch: int = Field(ge=0, le=COMMITS_MAX)


_Tenant = Annotated[str, Field(min_length=1, max_length=NAME_CHARACTERS_MAX)]


def _is_route(name: str) -> str:
    if name not in ROUTES:
        raise ValueError(f"no such route; there are {', '.join(ROUTES)}")
    return name


_Route = Annotated[str, AfterValidator(_is_route)]


class ProposeRequest(_Strict):
    """Ask for candidates for each question; `without` names routes that are to stay off."""

    operation: Literal["propose"]
    tenant: _Tenant
    questions: list[_Question] = Field(min_length=1, max_length=QUESTIONS_MAX)
    view: _View
    without: list[_Route] = Field(default=[], max_length=len(ROUTES))

    def contents(self) -> tuple[list[Question], View]:
        """Return the questions and the view as the rest of the plane knows them."""
        questions = [
            Question(
                text=question.text,
                budget_tokens=question.budget_tokens,
                disclose_conflicts=question.disclose_conflicts,
                budget_bytes=question.budget_bytes,
            )
            for question in self.questions
        ]
        view = View(
            valid_at=ValidAt(self.view.valid_at),
            known_at=KnownAt(self.view.known_at),
            cut=self.view.cut,
            epoch=self.view.epoch,
        )
        return questions, view


class DropRequest(_Strict):
    """Ask to forget a tenant's index and delete its vectors."""

    operation: Literal["drop_index"]
    tenant: _Tenant


class Dropped(_Strict):
    """How many vectors were deleted."""

    vectors: int


class HealthRequest(_Strict):
    """Ask how the service is."""

    operation: Literal["health"]


class Health(_Strict):
    """How the service is: the model it embeds with, if any yet, and what it holds in memory."""

    model_digest: str | None
    tenants: int
    units: int
    units_without_vector: int


def together(parts: Sequence[Health]) -> Health:
    """Return how several processes are, as one; a model that only some have yet is none."""
    models = {part.model_digest for part in parts}
    return Health(
        model_digest=models.pop() if len(models) == 1 else None,
        tenants=sum(part.tenants for part in parts),
        units=sum(part.units for part in parts),
        units_without_vector=sum(part.units_without_vector for part in parts),
    )


Request = Annotated[ProposeRequest | DropRequest | HealthRequest, Field(discriminator="operation")]

_REQUEST: Final[TypeAdapter[ProposeRequest | DropRequest | HealthRequest]] = TypeAdapter(Request)
_QUESTION: Final = TypeAdapter(Question)
_VIEW: Final = TypeAdapter(View)
_PROPOSAL: Final = TypeAdapter(Proposal)
_PROPOSALS: Final[TypeAdapter[tuple[Proposal, ...]]] = TypeAdapter(tuple[Proposal, ...])
_ANSWER: Final[TypeAdapter[dict[str, Any]]] = TypeAdapter(dict[str, Any])


def encode_propose(
    *, tenant: str, questions: Sequence[Question], view: View, without: Collection[str] = ()
) -> bytes:
    """Return the request for candidates."""
    return _ANSWER.dump_json(
        {
            "operation": "propose",
            "tenant": tenant,
            "questions": [_QUESTION.dump_python(question, mode="json") for question in questions],
            "view": _VIEW.dump_python(view, mode="json"),
            "without": sorted(without),
        }
    )


def encode_request(request: DropRequest | HealthRequest) -> bytes:
    """Return another request."""
    return request.model_dump_json().encode()


def decode_request(data: bytes) -> ProposeRequest | DropRequest | HealthRequest:
    """
    Read a request.

    Raises:
        BadRequest: It is not one.
    """
    try:
        return _REQUEST.validate_json(data)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        field = ".".join(str(part) for part in first["loc"]) or "request"
        raise BadRequest(field=field, reason=first["msg"]) from None


def encode_proposal(proposal: Proposal) -> bytes:
    """Return a proposal as JSON; `decode_proposal` gives an equal one."""
    return _PROPOSAL.dump_json(proposal)


def encode_proposals(proposals: Sequence[Proposal]) -> bytes:
    """Return the answer to several questions as JSON."""
    return _PROPOSALS.dump_json(tuple(proposals))


def decode_proposals(data: bytes, *, count: int) -> tuple[Proposal, ...]:
    """
    Read the answer to so many questions.

    Raises:
        Unavailable: It is not one: the two ends are of different versions.
    """
    try:
        proposals = _PROPOSALS.validate_json(data, strict=True)
    except ValidationError as error:
        raise Unavailable(part="discovery", reason="its answer cannot be read") from error
    if len(proposals) != count:
        raise Unavailable(part="discovery", reason="it answered another number of questions")
    return proposals


def decode_proposal(data: bytes) -> Proposal:
    """
    Read a proposal.

    Raises:
        Unavailable: It is not one: the two ends are of different versions.
    """
    try:
        return _PROPOSAL.validate_json(data, strict=True)
    except ValidationError as error:
        raise Unavailable(part="discovery", reason="its answer cannot be read") from error


def encode_error(error: EchoplaneError) -> bytes:
    """Return an error as JSON: its code and what a caller may see."""
    return _ANSWER.dump_json({"error": error.code, "details": error.details()})


def raise_error(data: bytes) -> None:
    """
    Raise what an answer reports, if it reports an error.

    Raises:
        NotFound: No such tenant.
        BadRequest: The request was refused.
        Unavailable: Anything else: the question can be answered without discovery.
    """
    if not data.startswith(b'{"error":'):
        return
    try:
        answer = _ANSWER.validate_json(data)
        code, details = str(answer["error"]), dict(answer["details"])
        if code == NotFound.code:
            raise NotFound(what=str(details["what"]))
        if code == BadRequest.code:
            raise BadRequest(field=str(details["field"]), reason=str(details["reason"]))
    except (ValidationError, KeyError, TypeError, ValueError) as error:
        raise Unavailable(part="discovery", reason="its answer cannot be read") from error
    raise Unavailable(part="discovery", reason=code)


async def read_frame(reader: asyncio.StreamReader, *, bytes_max: int) -> bytes:
    """
    Read one frame.

    Raises:
        LimitExceeded: It says that it is longer than allowed; nothing of it was read.
        asyncio.IncompleteReadError: The other end went away.
    """
    (length,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
    if length > bytes_max:
        raise LimitExceeded(limit="bytes in a frame", allowed=bytes_max, given=length)
    return await reader.readexactly(length)


async def write_frame(writer: asyncio.StreamWriter, data: bytes) -> None:
    """Write one frame and wait until it is on its way."""
    writer.write(_LENGTH.pack(len(data)) + data)
    await writer.drain()
