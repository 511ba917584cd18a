"""
From one unit into another: exact, by fractions, by a table of our own (`_units.txt`).

The library is loaded where a number is first said in another unit than its contract's: most plans
never meet one, and it takes half a second.
"""

from __future__ import annotations

import re
import unicodedata
from fractions import Fraction
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from contracts.limits import UNIT_CHARACTERS_MAX
from contracts.values import NotOfType

if TYPE_CHECKING:
    from pint import UnitRegistry

UNITS_VERSION: Final = 1
"""Of the table. It stands in every contract with a unit: by another table, other values are equal."""

_TABLE: Final = Path(__file__).with_name("_units.txt")
_CONVERSIONS_CACHED_MAX: Final = 4_096
# No number stands in it but a power of one digit behind a name, so that what a unit costs is bounded by
# its length.
_NAME: Final = r"%|‰|°?[^\W\d¹²³⁴⁵⁶⁷⁸⁹]+"
_POWER: Final = r"(?:\s*(?:\^|\*\*)\s*|(?=-?[1-9]))(?P<power>-?[1-9])|(?P<raised>⁻?[¹²³⁴⁵⁶⁷⁸⁹])"
_PART: Final = re.compile(rf"\s*(?P<sign>per\b|[*·⋅/])?\s*(?P<name>{_NAME})(?:{_POWER})?")
_BELOW: Final = re.compile(r"/\s*\(([^()/]*)\)")
_RAISED: Final = str.maketrans("⁻¹²³⁴⁵⁶⁷⁸⁹", "-123456789")
_NAMES: Final = {
    "%": "percent",
    "‰": "permille",
    "°": "degree",
    "°C": "degree_Celsius",
    "°F": "degree_Fahrenheit",
    "°K": "kelvin",
}


@lru_cache(maxsize=_CONVERSIONS_CACHED_MAX)
def conversion(said: str, wanted: str) -> tuple[Fraction, Fraction]:
    """
    Return (factor, shift) that make a number said in one unit one of another: `factor * x + shift`.

    Raises:
        NotOfType: One is no unit of the table, or they measure different things.
    """
    if said == wanted:
        return Fraction(1), Fraction(0)
    from pint.errors import PintError  # noqa: PLC0415 — see the head of the module

    units = _units()
    source, target = _expression(said), _expression(wanted)
    try:
        at_zero = units.convert(Fraction(0), source, target)
        at_one = units.convert(Fraction(1), source, target)
    except (PintError, ArithmeticError, ValueError) as error:
        raise NotOfType(f"its unit does not convert to {wanted}") from error
    return Fraction(at_one) - Fraction(at_zero), Fraction(at_zero)


def check_unit(unit: str) -> None:
    """
    Refuse what is no unit of the table.

    Raises:
        NotOfType: With the reason.
    """
    from pint.errors import PintError  # noqa: PLC0415 — see the head of the module

    try:
        _units().parse_units(_expression(unit))
    except (PintError, ArithmeticError, ValueError) as error:
        raise NotOfType(
            "no unit of the table; money and other units without a fixed rate are in none"
        ) from error


@cache
def _units() -> UnitRegistry[Any]:
    from pint import UnitRegistry  # noqa: PLC0415 — see the head of the module

    return UnitRegistry(str(_TABLE), non_int_type=Fraction, cache_folder=None)


def _expression(unit: str) -> str:
    """Return a unit as the library reads it: names, each raised to a power, multiplied."""
    if len(unit) > UNIT_CHARACTERS_MAX:
        raise NotOfType(f"its unit has more than {UNIT_CHARACTERS_MAX} characters")
    text = unicodedata.normalize("NFC", unit).replace("\u00b5", "\u03bc").replace("**", "^").strip()
    # "J/(kg K)" is "J/kg/K".
    text = _BELOW.sub(lambda below: "/" + re.sub(r"[*·⋅\s]+", "/", below[1].strip()), text)
    inverted = re.match(r"1\s*(?=/)", text)
    place = start = 0 if inverted is None else inverted.end()
    parts: list[str] = []
    while place < len(text):
        part = _PART.match(text, place)
        if part is None or (part["sign"] and place == start and inverted is None):
            raise NotOfType("its unit is not written as names, powers, `*` and `/`")
        name = _NAMES.get(part["name"], part["name"])
        power = int(part["power"] or (part["raised"] or "1").translate(_RAISED))
        parts.append(f"{name}**{-power if part['sign'] in {'/', 'per'} else power}")
        place = part.end()
    return "*".join(parts) or "dimensionless"
