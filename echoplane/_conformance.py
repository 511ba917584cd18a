"""
Hold a real ledger against a file of cases, and say where they differ.

A case file states what is told, at which readings of the clock, and what is to be answered. What a
format does not have is an error of its case: to pass it over would be to agree with what nobody checked.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from contracts.errors import BadRequest, EchoplaneError, LimitExceeded, Unavailable
from contracts.limits import CASES_BYTES_MAX
from contracts.reports import ConformanceAnswer, MismatchAnswer
from echoplane._conformance_bitemporal import SCHEMA, BitemporalCase
from echoplane._conformance_forms import Case, Fields, Sides
from echoplane._conformance_ledger import CaseLedger, Ledgers
from echoplane._conformance_scenarios import Scenario


def read_cases(path: Path) -> list[Case]:
    """
    Read a file of cases, of either format.

    Raises:
        BadRequest: It cannot be read, is no JSON, or is of no format that is known here.
        LimitExceeded: It is longer than `CASES_BYTES_MAX`.
    """
    try:
        size = path.stat().st_size
        if size > CASES_BYTES_MAX:
            raise LimitExceeded(limit="CASES_BYTES_MAX", allowed=CASES_BYTES_MAX, given=size)
        form: Any = json.loads(path.read_bytes())
    except OSError as error:
        raise BadRequest(field="FILE", reason=f"cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise BadRequest(field="FILE", reason="is no JSON") from error
    if not isinstance(form, dict):
        raise BadRequest(field="FILE", reason="is no object")
    if form.get("schema") == SCHEMA:
        return _cases(form.get("cases"), "cases", BitemporalCase)
    if "scenarios" in form:
        return _cases(form["scenarios"], "scenarios", Scenario)
    raise BadRequest(field="FILE", reason=f"has neither the schema {SCHEMA} nor scenarios")


def _cases(forms: object, field: str, made: Callable[[Fields], Case]) -> list[Case]:
    if not isinstance(forms, list) or not all(isinstance(form, dict) for form in forms):
        raise BadRequest(field=f"FILE: {field}", reason="is a list of objects")
    found: list[Case] = []
    for number, form in enumerate(forms):
        try:
            found.append(made(form))
        except BadRequest as error:
            raise BadRequest(field=f"FILE: {field}[{number}].{error.field}", reason=error.reason) from error
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class _Outcome:
    agreed: int
    mismatches: list[MismatchAnswer]


async def run_cases(
    cases: Sequence[Case], ledgers: Ledgers, *, say: Callable[[MismatchAnswer], None]
) -> ConformanceAnswer:
    """
    Run cases, each in a tenant of its own, and count.

    Args:
        cases: What to run.
        ledgers: Where.
        say: Called for each mismatch as it is found.

    Raises:
        Unavailable: The database is down.
    """
    counts: Counter[str] = Counter()
    for case in cases:
        counts["queries"] += len(case.queries)
        if not case.is_applicable:
            counts["not_applicable"] += len(case.queries)
            continue
        outcome = await _run(case, await ledgers.new())
        counts["agreed"] += outcome.agreed
        counts["mismatched"] += len(outcome.mismatches)
        for mismatch in outcome.mismatches:
            say(mismatch)
    return ConformanceAnswer(
        cases=len(cases),
        queries=counts["queries"],
        agreed=counts["agreed"],
        mismatched=counts["mismatched"],
        not_applicable=counts["not_applicable"],
    )


async def _run(case: Case, ledger: CaseLedger) -> _Outcome:
    try:
        wrong = [_mismatch(case, where, sides) for where, sides in await case.tell(ledger)]
    except Unavailable:
        raise
    except Exception as error:  # noqa: BLE001 - a case of another shape, or a bug: the others are run all the same
        # Nothing that follows can be asked, and none of it counts as agreed.
        whole = _failed(case, "the case", error)
        unasked = [
            _failed(case, _place(case, number, query), error) for number, query in enumerate(case.queries)
        ]
        return _Outcome(agreed=0, mismatches=unasked or [whole])
    agreed = 0
    for number, query in enumerate(case.queries):
        try:
            sides = await case.ask(ledger, query)
        except Unavailable:
            raise
        except Exception as error:  # noqa: BLE001 - as above
            wrong.append(_failed(case, _place(case, number, query), error))
            continue
        if sides.agree:
            agreed += 1
        else:
            wrong.append(_mismatch(case, _place(case, number, query), sides))
    return _Outcome(agreed=agreed, mismatches=wrong)


def _place(case: Case, number: int, query: Fields) -> str:
    kind = case.kind(query) if isinstance(query, dict) else "no query"
    return f"query {number + 1} ({kind})"


def _mismatch(case: Case, where: str, sides: Sides) -> MismatchAnswer:
    return MismatchAnswer(case=case.name, where=where, expected=sides.expected, found=sides.found, error=None)


def _failed(case: Case, where: str, error: Exception) -> MismatchAnswer:
    words = (
        str(error) if isinstance(error, EchoplaneError | ValueError) else f"{type(error).__name__}: {error}"
    )
    return MismatchAnswer(case=case.name, where=where, expected=None, found=None, error=words)
