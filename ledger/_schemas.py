"""
JSON Schemas of values: draft 2020-12, without what could fetch, never end or take for ever.

A schema is checked once, when its contract is registered; then any value is held against it in bounded
time: `JSON_CHECKS_MAX` parts of the value by schemas, each counted wherever it is referred to.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from contracts.limits import (
    JSON_CHECKS_MAX,
    JSON_PARTS_MAX,
    SCHEMA_BYTES_MAX,
    SCHEMA_DEPTH_MAX,
    SCHEMA_PARTS_MAX,
)
from contracts.values import NotOfType

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator, ValidationError

DRAFT: Final = "https://json-schema.org/draft/2020-12/schema"

_DEFINITIONS: Final = "#/$defs/"
_NAME: Final = re.compile(r"[\w.-]+")
"""Of a definition that is referred to: nothing that a JSON Pointer would read otherwise."""
_SCHEMAS_CACHED_MAX: Final = 256
_NAMED_VALUES_OF_A_PART: Final = 8
_REFUSED: Final[Mapping[str, str]] = {
    "pattern": "no regular expression: one can run for ever",
    "patternProperties": "no regular expression: one can run for ever",
    "unevaluatedItems": "the cost of `unevaluated` has no bound",
    "unevaluatedProperties": "the cost of `unevaluated` has no bound",
    "$dynamicRef": f"references are `$ref` to {_DEFINITIONS}",
    "$dynamicAnchor": f"references are `$ref` to {_DEFINITIONS}",
    "$anchor": f"references are `$ref` to {_DEFINITIONS}",
    "$id": f"references are `$ref` to {_DEFINITIONS}",
    "$vocabulary": "another vocabulary is another language",
}
# Where a schema holds further ones: by itself, in a list, or by name.
_ONE: Final = (
    "not", "if", "then", "else", "items", "contains", "additionalProperties", "propertyNames",
)  # fmt: skip
_LISTED: Final = ("allOf", "anyOf", "oneOf", "prefixItems")
_NAMED: Final = ("properties", "dependentSchemas")


def check_schema(text: str) -> None:
    """
    Refuse a schema that is none, is too large, or is of unbounded cost.

    Raises:
        NotOfType: With the reason.
    """
    if len(text) > SCHEMA_BYTES_MAX:
        raise NotOfType(f"has more than {SCHEMA_BYTES_MAX} bytes")
    schema = json.loads(text)
    if not isinstance(schema, dict):
        raise NotOfType("is no object")
    if _depth(schema) > SCHEMA_DEPTH_MAX:
        raise NotOfType(f"is nested deeper than {SCHEMA_DEPTH_MAX}")
    if schema.get("$schema", DRAFT) != DRAFT:
        raise NotOfType(f"is of another draft than {DRAFT}")
    # Lazily: no other kind of value needs the library.
    from jsonschema import Draft202012Validator, SchemaError  # noqa: PLC0415 — see above

    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        raise NotOfType(f"is no JSON Schema: {error.message[:200]}") from error
    definitions = schema.get("$defs", {})
    sizes: dict[str, int | None] = {}
    parts = _parts(schema, definitions, sizes)
    for name in definitions:
        _parts_of_definition(name, definitions, sizes)
    if parts > SCHEMA_PARTS_MAX:
        raise NotOfType(
            f"holds more than {SCHEMA_PARTS_MAX} schemas, each counted wherever it is referred to"
        )


def follow(value: object, text: str) -> None:
    """
    Hold a value against a checked schema.

    Raises:
        NotOfType: It does not follow it; names the place in the schema, not in the value.
    """
    count = _count(value)
    if count > JSON_PARTS_MAX:
        raise NotOfType(f"holds more than {JSON_PARTS_MAX} values")
    validator, parts = _validator(text)
    if count * parts > JSON_CHECKS_MAX:
        raise NotOfType(f"holds {count} values, to be held against {parts} schemas each: too many")
    try:
        error = next(validator.iter_errors(value), None)
    except (ArithmeticError, RecursionError) as failure:
        raise NotOfType("cannot be held against the schema") from failure
    if error is not None:
        place = "/".join(str(part) for part in ("#", *error.absolute_schema_path))
        raise NotOfType(f"does not follow {place}")


def checks_of(value: object, text: str) -> int:
    """Return how often something in a value is held against something in a checked schema."""
    return min(_count(value) * _validator(text)[1], JSON_CHECKS_MAX)


def _count(value: object) -> int:
    return sum(1 for _ in _pieces(value))


@lru_cache(maxsize=_SCHEMAS_CACHED_MAX)
def _validator(text: str) -> tuple[Draft202012Validator, int]:
    """Return what holds values against a checked schema, and how many schemas that holds."""
    from jsonschema import Draft202012Validator  # noqa: PLC0415 — as above
    from jsonschema.validators import extend  # noqa: PLC0415 — as above

    schema = json.loads(text)
    validator = extend(Draft202012Validator, {"uniqueItems": _unique})  # type: ignore[no-untyped-call]
    return validator(schema), _parts(schema, schema.get("$defs", {}), {})


def _unique(_validator: object, wanted: object, items: object, _schema: object) -> Iterator[ValidationError]:
    """Hold a list against `uniqueItems` in one pass; the library's own compares all with all."""
    from jsonschema import ValidationError  # noqa: PLC0415 — as above

    if wanted is True and isinstance(items, list):
        forms = {json.dumps(_counted(item), sort_keys=True) for item in items}
        if len(forms) < len(items):
            yield ValidationError("holds one item twice")


def _counted(value: object) -> object:
    """Return a value with whole numbers written alike: 1 and 1.0 are one."""
    match value:
        case float() if value.is_integer():
            return int(value)
        case list():
            return [_counted(item) for item in value]
        case dict():
            return {name: _counted(item) for name, item in value.items()}
        case _:
            return value


def _depth(value: object) -> int:
    match value:
        case dict():
            return 1 + max(map(_depth, value.values()), default=0)
        case list():
            return 1 + max(map(_depth, value), default=0)
        case _:
            return 0


def _pieces(value: object) -> Iterator[object]:
    yield value
    match value:
        case dict():
            for item in value.values():
                yield from _pieces(item)
        case list():
            for item in value:
                yield from _pieces(item)
        case _:
            pass


def _parts(schema: Any, definitions: Mapping[str, Any], sizes: dict[str, int | None]) -> int:  # noqa: ANN401 — JSON
    """Return how many schemas a schema holds, those it refers to included."""
    if not isinstance(schema, dict):
        return 1
    for keyword, reason in _REFUSED.items():
        if keyword in schema:
            raise NotOfType(f"has `{keyword}`: {reason}")
    below = [schema[keyword] for keyword in _ONE if keyword in schema]
    below += [each for keyword in _LISTED for each in schema.get(keyword, ())]
    below += [each for keyword in _NAMED for each in schema.get(keyword, {}).values()]
    count = 1 + sum(_parts(each, definitions, sizes) for each in below)
    # One part for what takes about as long as one.
    count += len(schema.get("enum", ())) // _NAMED_VALUES_OF_A_PART
    if "$defs" in schema and schema["$defs"] is not definitions:
        raise NotOfType("has `$defs` below its top")
    if "$ref" in schema:
        target = schema["$ref"]
        name = target.removeprefix(_DEFINITIONS)
        if not target.startswith(_DEFINITIONS) or name not in definitions or not _NAME.fullmatch(name):
            raise NotOfType(f"has a `$ref` that is not to one of {_DEFINITIONS}")
        count += _parts_of_definition(name, definitions, sizes)
    return min(count, SCHEMA_PARTS_MAX + 1)


def _parts_of_definition(name: str, definitions: Mapping[str, Any], sizes: dict[str, int | None]) -> int:
    if name not in sizes:
        # None while it is being counted: whoever comes by then refers to itself.
        sizes[name] = None
        sizes[name] = _parts(definitions[name], definitions, sizes)
    size = sizes[name]
    if size is None:
        raise NotOfType("refers to itself: the value that follows it could be endless")
    return size
