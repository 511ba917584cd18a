"""When two values are the same: normal forms under a contract (SEMANTICS: "Relation contracts")."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable, Mapping
from typing import Any, Final

from contracts.relations import RelationContract


def _each_string(value: object, change: Callable[[str], str]) -> object:
    match value:
        case str():
            return change(value)
        case list():
            return [_each_string(item, change) for item in value]
        case dict():
            return {change(str(name)): _each_string(item, change) for name, item in value.items()}
        case _:
            return value


def _nfc_trim(text: str) -> str:
    return unicodedata.normalize("NFC", text).strip()


def _casefold(text: str) -> str:
    return unicodedata.normalize("NFC", _nfc_trim(text).casefold())


def _words(text: str) -> str:
    return " ".join(_casefold(text).split())


def _exact(text: str) -> str:
    return text


NORMALIZERS: Final[Mapping[str, Callable[[str], str]]] = {
    "nfc_trim": _nfc_trim,
    "casefold": _casefold,
    "words": _words,
    "exact": _exact,
}
"""By name, as contracts call them: `words` also folds runs of white space into one space."""


def normal_form(value: Any, normalizer: str) -> str:  # noqa: ANN401 — any JSON value
    """
    Return the one text that every equal value has.

    Numbers are equal by value (`1` and `1.0`); a boolean is no number, a string no number.
    """
    return json.dumps(
        _whole(_each_string(value, NORMALIZERS[normalizer])), sort_keys=True, separators=(",", ":")
    )


class Normals:
    """
    Normal forms where some entities are one (`root`, as in an identity): their names share one form.

    Spelling comes first: names that are equal under the normalizer are one value, and join the
    entities that they name.
    """

    def __init__(self, root: Mapping[str, str]) -> None:
        self._root = root
        self._shared: dict[str, dict[str, str]] = {}

    def of(self, value: object, contract: RelationContract) -> str:
        """Return the value's normal form under a contract."""
        form = normal_form(value, contract.normalizer)
        if contract.value_type != "entity" or not isinstance(value, str) or not self._root:
            return form
        if contract.normalizer not in self._shared:
            self._shared[contract.normalizer] = self._share(contract.normalizer)
        return self._shared[contract.normalizer].get(form, form)

    def _share(self, normalizer: str) -> dict[str, str]:
        above: dict[str, str] = {}

        def top(form: str) -> str:
            while above.get(form, form) != form:
                form = above[form]
            return form

        for name, representative in self._root.items():
            one, other = (top(normal_form(text, normalizer)) for text in (name, representative))
            above[max(one, other)] = above.setdefault(min(one, other), min(one, other))
        return {form: top(form) for form in above}


def _whole(value: object) -> object:
    match value:
        case bool():
            return value
        case float() if value.is_integer():
            return int(value)
        case list():
            return [_whole(item) for item in value]
        case dict():
            return {name: _whole(item) for name, item in value.items()}
        case _:
            return value
