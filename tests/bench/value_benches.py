"""Reading a claim's value into its type, beside the same value where its relation has none."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator
from dataclasses import replace

from contracts.relations import ValueType, default_contract
from ledger._values import normal_form
from tests.bench.grounds import Grounds
from tests.bench.measure import Row, rate

CLAIMS = 20_000
RUNS = 9
PLAIN = default_contract("range")
NUMBER = replace(PLAIN, value_type=ValueType.NUMBER, unit="km")
SCHEMA = {"type": "object", "required": ["a"], "properties": {"a": {"type": "integer"}}}


async def values(_at: Grounds, *, large: bool) -> AsyncIterator[Row]:
    """Numbers, times and JSON: what a claim costs at the border, and once more in the fold."""
    _ = large
    json_type = replace(PLAIN, value_type=ValueType.JSON, schema=json.dumps(SCHEMA))
    for name, contract, value in (
        ("value: number in its unit", NUMBER, "5 km"),
        ("value: number in another unit", NUMBER, "5000 m"),
        ("value: number without a unit", NUMBER, 5),
        ("value: instant", replace(PLAIN, value_type=ValueType.INSTANT), "2026-03-01T13:00+03:00"),
        ("value: json", json_type, {"a": 1}),
    ):
        # The first one in another unit brings the library in, once a process.
        normal_form(value, contract)
        seconds, beside = [], []
        for _ in range(RUNS):
            seconds.append(_timed(value, contract))
            beside.append(_timed(value, PLAIN))
        plain = rate(bench=name, size=CLAIMS, events=CLAIMS, seconds=beside).value
        note = "claims; beside: the same value, of any type"
        yield rate(bench=name, size=CLAIMS, events=CLAIMS, seconds=seconds, beside=plain, note=note)


def _timed(value: object, contract: object) -> float:
    started = time.perf_counter()
    for _ in range(CLAIMS):
        normal_form(value, contract)
    return time.perf_counter() - started
