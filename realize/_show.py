"""
R: from what was derived to the answer that is shown: only what was asked, and only with its lines. Pure.

A derivation may stand on many claims; the surface shows one value. If a claim that it stands on has
no line in the context, or a closure that was required did not fit, nothing is shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, assert_never

from contracts.answers import Answer, AnswerStatus
from contracts.claims import Claim
from contracts.contexts import ContextPack
from contracts.relations import RelationContract
from contracts.resolutions import Conflict
from contracts.trails import Question
from contracts.values import with_unit
from realize._found import Derivation, Derived, Withheld

NOTHING_FOUND: Final = "nothing_found"
"""Why an answer says nothing where there was nothing to show: nobody claims to have understood more."""


def show(
    question: Question, derivation: Derivation, pack: ContextPack, *, contract: RelationContract | None
) -> Answer:
    """
    Return the answer, with the lines that it cites.

    Args:
        question: Whether the values of a conflict may be shown.
        derivation: What was derived.
        pack: The frozen context.
        contract: Of the relation: the unit that values have. None where no key is in conflict.
    """
    match derivation:
        case Derived(value=value, groups=groups):
            return answered(pack, groups, value)
        case Withheld(conflict=Conflict() as conflict) as withheld:
            assert contract is not None
            value = {"rivals": rivals(conflict, contract)}
            return disclosed(question, pack, withheld.groups, value=value, why=withheld.reason)
        case Withheld(is_missing=True) as withheld:
            return insufficient(
                withheld.reason, cites=merged(cites(pack, group) for group in withheld.groups)
            )
        case Withheld() as withheld:
            # Where there is not even a line to hand out, why is all that can be said.
            return evidence(pack, withheld.reason) if pack.lines else insufficient(withheld.reason)
        case _ as never:
            assert_never(never)


def answered(pack: ContextPack, groups: Iterable[Sequence[Claim]], value: Any) -> Answer:  # noqa: ANN401 -- values are any JSON
    """Answer with a value, if each group of claims that it stands on has a line of its own."""
    if required_deferred(pack):
        return insufficient("required_evidence_deferred")
    lines = [cites(pack, group) for group in groups]
    # Nothing is answered that the context does not show, each member by a line of its own.
    if not all(lines):
        return insufficient("not_in_context")
    return Answer(status=AnswerStatus.ANSWERED, value=value, cites=merged(lines), reason=None)


def disclosed(
    question: Question,
    pack: ContextPack,
    groups: Iterable[Sequence[Claim]],
    *,
    value: Any,  # noqa: ANN401 -- values are any JSON
    why: str,
) -> Answer:
    """Say a conflict even where its lines did not fit; its values only on request, where they are shown."""
    lines = [cites(pack, group) for group in groups]
    is_shown = question.disclose_conflicts and all(lines) and not required_deferred(pack)
    return Answer(
        status=AnswerStatus.CONFLICT, value=value if is_shown else None, cites=merged(lines), reason=why
    )


def evidence(pack: ContextPack, reason: str) -> Answer:
    """Hand out all lines, and no value."""
    if not pack.lines:
        return insufficient(NOTHING_FOUND)
    lines = tuple(line.line_id for line in pack.lines)
    return Answer(status=AnswerStatus.EVIDENCE, value=None, cites=lines, reason=reason)


def insufficient(reason: str, *, cites: tuple[str, ...] = ()) -> Answer:
    """Say that nothing stands, or did not fit."""
    return Answer(status=AnswerStatus.INSUFFICIENT_EVIDENCE, value=None, cites=cites, reason=reason)


def rivals(conflict: Conflict, contract: RelationContract) -> list[dict[str, Any]]:
    """Return the values in dispute."""
    return [{"value": with_unit(rival.value, contract), "ended": rival.ended} for rival in conflict.rivals]


def required_deferred(pack: ContextPack) -> bool:
    """Say whether evidence that an answer needs did not fit."""
    return any(deferred.required for deferred in pack.deferred)


def cites(pack: ContextPack, claims: Iterable[Claim]) -> tuple[str, ...]:
    """Return the lines of the events that made some claims."""
    events = {claim.event_id for claim in claims}
    return tuple(line.line_id for line in pack.lines if line.event_id in events)


def merged(lines: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    """Return line ids once each, in their order in the log."""
    ids = {line_id for each in lines for line_id in each}
    return tuple(sorted(ids, key=lambda line_id: int(line_id[1:])))
