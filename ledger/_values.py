"""
When two values are the same: normal forms under a contract (SEMANTICS: "Relation contracts").

A value that is none of its relation's type has a form too, which no value of the type has: it is the
same as itself and as nothing else, and no claim of it counts.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable, Mapping
from typing import Any, Final

from contracts import values
from contracts.names import spelt
from contracts.relations import RelationContract, ValueType
from contracts.times import format_instant
from contracts.values import NotOfType, Point, Quantity
from ledger._schemas import follow
from ledger._units import conversion


def _each_string(value: object, change: Callable[[str], str]) -> object:
    match value:
        case str():
            return change(value)
        case list():
            return [_each_string(item, change) for item in value]
        case dict():
            names = [change(str(name)) for name in value]
            if len(set(names)) < len(names):
                # Two members that would be one stay two: else one would be lost, and which by chance.
                names = list(value)
            items = [_each_string(item, change) for item in value.values()]
            return dict(zip(names, items, strict=True))
        case _:
            return value


def _casefold(text: str) -> str:
    return unicodedata.normalize("NFC", spelt(text).casefold())


def _words(text: str) -> str:
    return " ".join(_casefold(text).split())


def _exact(text: str) -> str:
    return text


NORMALIZERS: Final[Mapping[str, Callable[[str], str]]] = {
    "nfc_trim": spelt,
    "casefold": _casefold,
    "words": _words,
    "exact": _exact,
}
"""By name, as contracts call them: `words` also folds runs of white space into one space."""


# Made once: `json.dumps` makes one each time, which takes longer than the form of most values.
_ENCODE: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode

_WRONG: Final = "!"
"""What the form of a value begins with that is none of its relation's type: no JSON does."""


def spelt_form(value: Any, normalizer: str) -> str:  # noqa: ANN401 — any JSON value
    """
    Return the one text that every equal JSON value has.

    Numbers are equal by value (`1` and `1.0`); a boolean is no number, a string no number.
    """
    if isinstance(value, str):
        # Most values are, and each claim that is read of a key may have its own.
        return _ENCODE(NORMALIZERS[normalizer](value))
    return _form(_whole(_each_string(value, NORMALIZERS[normalizer])))


def normal_form(value: Any, contract: RelationContract) -> str:  # noqa: ANN401 — any JSON value
    """
    Return the one text that every equal value of a relation has.

    Raises:
        NotOfType: It is none of the relation's type; says why.
    """
    match contract.value_type:
        case ValueType.ANY:
            return spelt_form(value, contract.normalizer)
        case ValueType.TEXT:
            return spelt_form(values.read_text(value), contract.normalizer)
        case ValueType.ENTITY:
            return spelt_form(values.read_entity(value), contract.normalizer)
        case ValueType.NUMBER:
            return _number_form(values.read_number(value), contract.unit)
        case ValueType.INSTANT:
            return _form(["instant", format_instant(values.read_instant(value))])
        case ValueType.DATE:
            return _form(["date", values.read_date(value)])
        case ValueType.INTERVAL:
            return _form(["interval", *values.interval_form(values.read_interval(value))])
        case ValueType.BOOLEAN:
            return _form(values.read_boolean(value))
        case ValueType.PLACE:
            return _place_form(values.read_place(value), contract.normalizer)
        case ValueType.JSON:
            if contract.schema is not None:
                follow(value, contract.schema)
            return spelt_form(value, contract.normalizer)


def takes(value: object, contract: RelationContract) -> bool:
    """Return whether a value is one of the relation's type."""
    if contract.value_type == ValueType.ANY:
        return True
    try:
        normal_form(value, contract)
    except NotOfType:
        return False
    return True


def is_wrong(form: str) -> bool:
    """Return whether a normal form is that of a value which is none of its relation's type."""
    return form.startswith(_WRONG)


def _number_form(quantity: Quantity, unit: str | None) -> str:
    number = quantity.number
    if quantity.unit is not None and quantity.unit != unit:
        if unit is None:
            raise NotOfType("a number without a unit is expected")
        factor, shift = conversion(quantity.unit, unit)
        number = factor * number + shift
    # JSON too, and several times faster so: digits and a stroke need no escaping.
    return f'["number","{number}"]'


def _place_form(place: str | Point, normalizer: str) -> str:
    if isinstance(place, str):
        return spelt_form(place, normalizer)
    return _form(["place", str(place.latitude.normalize()), str(place.longitude.normalize())])


def _form(value: object) -> str:
    return _ENCODE(value)


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
        """Return the value's normal form under a contract; one of its own for what is none of its type."""
        try:
            form = normal_form(value, contract)
        except NotOfType:
            return _WRONG + spelt_form(value, "exact")
        if contract.value_type != ValueType.ENTITY or not self._root:
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
            one, other = (top(spelt_form(text, normalizer)) for text in (name, representative))
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
