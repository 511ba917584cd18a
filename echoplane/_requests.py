"""What a caller names, asks and wants to see, read the same way at every door."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError

from contracts.errors import BadRequest
from contracts.limits import PAGE_BYTES_MAX
from contracts.names import Name
from contracts.times import KnownAt, ValidAt, parse_instant
from contracts.views import ViewRequest, parse_generation
from contracts.wire import QuestionText
from echoplane._failures import refusal

COMMIT_DIGITS_MAX: Final = 18
"""The most decimal digits that a 64-bit number always holds."""

Listed = TypeVar("Listed", bound=BaseModel)
Key = TypeVar("Key", str, int)

_NAME: Final = TypeAdapter[str](Name)
_QUESTION: Final = TypeAdapter[str](QuestionText)
_TENANT: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """A bound in known time: a commit, or an instant of the ledger's clock; None for both is open."""

    commit: int | None
    instant: datetime | None


OPEN: Final = Known(commit=None, instant=None)


def page_of(
    found: Iterable[Listed], key: Callable[[Listed], Key], *, after: Key | None, limit: int
) -> list[Listed]:
    """Return a page of a list: in the order of a key, what comes after one, as far as its bytes reach."""
    page: list[Listed] = []
    left_bytes = PAGE_BYTES_MAX
    for one in sorted(found, key=key):
        if after is not None and key(one) <= after:
            continue
        left_bytes -= len(one.model_dump_json(by_alias=True).encode())
        if len(page) == limit or (page and left_bytes < 0):
            break
        page.append(one)
    return page


def members_once(raw: bytes, *, field: str) -> None:
    """
    Check JSON that was read by its shape already: of a member that stands twice, which was meant?

    Raises:
        BadRequest: One stands twice in an object. Its name is not said: it may be content.
    """

    def check(pairs: list[tuple[str, object]]) -> None:
        if len(dict(pairs)) < len(pairs):
            raise BadRequest(field=field, reason="a member stands twice in one object")

    # Numbers are of no interest, and one of very many digits would be refused.
    json.loads(raw, object_pairs_hook=check, parse_int=len, parse_float=len)


def read_name(text: str, *, field: str) -> str:
    """
    Return a name as the log would have stored it: NFC, trimmed.

    Raises:
        BadRequest: No event could carry it: empty, too long, or not storable as text.
    """
    return _read(_NAME, text, field)


def read_question(text: str, *, field: str) -> str:
    """
    Return a question as it was asked.

    Raises:
        BadRequest: It is empty, too long, or not storable as text.
    """
    return _read(_QUESTION, text, field)


def is_tenant(name: str) -> bool:
    """Return whether a tenant can be called so: it stands in paths and in tokens."""
    return _TENANT.fullmatch(name) is not None


def read_tenant(name: str) -> str:
    """
    Return a tenant's name; checked again where one is made.

    Raises:
        BadRequest: None is called so.
    """
    if not is_tenant(name):
        raise BadRequest(field="tenant", reason="1 to 63 of A-Z a-z 0-9 . _ - and first a letter or digit")
    return name


def read_view(
    *, valid_at: str | None, known_at: str | None, generation: str | None, min_commit: int | None
) -> ViewRequest:
    """
    Read which view a caller asks for.

    Raises:
        BadRequest: An instant without an offset, or no generation.
    """
    return ViewRequest(
        valid_at=None if valid_at is None else ValidAt(parse_instant(valid_at, field="valid_at")),
        known_at=None if known_at is None else KnownAt(parse_instant(known_at, field="known_at")),
        generation=None if generation is None else parse_generation(generation),
        min_commit=min_commit,
    )


def read_bound(text: str | None, *, field: str) -> datetime | None:
    """
    Read a bound in valid time; None is open.

    Raises:
        BadRequest: It is no instant, or has no offset.
    """
    return None if text is None else parse_instant(text, field=field)


def read_known(text: str | None, *, field: str) -> Known:
    """
    Read a bound in known time: the number of a commit, or an instant.

    Raises:
        BadRequest: It is neither.
    """
    if text is None:
        return OPEN
    if _is_number(text, COMMIT_DIGITS_MAX):
        return Known(commit=int(text), instant=None)
    return Known(commit=None, instant=parse_instant(text, field=field))


def read_number(text: str, *, field: str, digits_max: int = COMMIT_DIGITS_MAX) -> int:
    """
    Read the number of a commit, a position or an epoch.

    Raises:
        BadRequest: It is none, or has more digits than there can be.
    """
    if not _is_number(text, digits_max):
        raise BadRequest(field=field, reason="expected a number, such as 17")
    return int(text)


def _is_number(text: str, digits_max: int) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= digits_max


def _read(form: TypeAdapter[str], text: str, field: str) -> str:
    try:
        return form.validate_python(text)
    except ValidationError as error:
        raise refusal(error, where=field) from None
