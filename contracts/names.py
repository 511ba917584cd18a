"""Names and texts as events carry them: what every store can hold and every reader can see."""

from __future__ import annotations

import re
import unicodedata
from enum import StrEnum
from typing import Annotated, Final

from pydantic import AfterValidator, Field

from contracts import limits


class Word(StrEnum):
    """One of a few words, hashed as the text that it equals: the library hashes its name, and slowly."""

    __hash__ = str.__hash__


_SURROGATE: Final = re.compile("[\ud800-\udfff]")


def storable(text: str) -> str:
    """Refuse what no store can hold or no reader can see: NUL and lone surrogates."""
    if "\x00" in text:
        raise ValueError("holds a NUL character")
    if not text.isascii() and _SURROGATE.search(text) is not None:
        raise ValueError("holds a lone surrogate")
    return text


def spelt(text: str) -> str:
    """Return a text as names are spelt, NFC and trimmed: two spellings of one name are one everywhere."""
    # What is ASCII is NFC: most names are, and asking costs less than normalizing.
    return (text if text.isascii() else unicodedata.normalize("NFC", text)).strip()


def _name(text: str) -> str:
    text = spelt(storable(text))
    if not text:
        raise ValueError("is empty")
    if len(text.encode()) > limits.NAME_BYTES_MAX:
        raise ValueError(f"has more than {limits.NAME_BYTES_MAX} bytes as UTF-8")
    return text


def is_name(value: object) -> bool:
    """Return whether a value could be the name of an entity."""
    try:
        return isinstance(value, str) and len(_name(value)) <= limits.NAME_CHARACTERS_MAX
    except ValueError:
        return False


Name = Annotated[str, AfterValidator(_name), Field(max_length=limits.NAME_CHARACTERS_MAX)]
Text = Annotated[str, AfterValidator(storable), Field(max_length=limits.TEXT_CHARACTERS_MAX)]
