"""Packing: from closures to a hashed context."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from contracts.contexts import Closure, ClosureSet, ContextPack, Deferred, Evidence, Line
from contracts.errors import IntegrityFault
from contracts.ports import Digests, TokenCounter
from contracts.proposals import Plan, Proposal
from contracts.resolutions import KeyResolution
from contracts.times import format_instant
from contracts.trails import Question
from contracts.views import View
from packing._canonical import canonical, digest
from packing._choose import Choice, Size, choose, parts_of, room
from packing._form import content_form, context_form
from packing._page import PACKER_VERSION, Page
from packing._render import line_id, shown
from packing._seal import seal


def pack(
    *,
    question: Question,
    plan: Plan,
    view: View,
    proposal: Proposal,
    closures: ClosureSet,
    resolutions: Sequence[KeyResolution],
    digests: Digests,
    counter: TokenCounter,
    configuration_hash: str,
    packer: int = PACKER_VERSION,
) -> ContextPack:
    """
    Choose, render and hash. A pure function: the same arguments give the same bytes for ever.

    Args:
        closures: All that the ledger closed for this question; their order changes nothing.
        resolutions: Every key that was resolved for it; their order changes nothing.
        digests: With the data keys of `event_ids(resolutions)` read.
        packer: The version that a stored context was packed by, to build it anew.

    Raises:
        IntegrityFault: A closure names an event that came without evidence, twice the same id
            stands for different things, a data key is not at hand, or the packer is none of ours.
    """
    evidence = _checked(closures)
    ordered = _in_source_order(evidence, evidence)
    page = Page.of({each.event_id: shown(each) for each in ordered}, counter, packer=packer)
    choice, tokens = _within(closures.closures, page, question, counter)
    chosen = _in_source_order(choice.members, evidence)
    rendered = page.lines(choice.members)
    deferred = _deferred(closures.closures, choice, page.sizes)
    content = content_form(chosen, [seal(key, digests) for key in resolutions], digests)
    content_hash = digest(canonical(content))
    form = canonical(
        context_form(
            packer=packer, content=content, content_hash=content_hash, question=question, plan=plan,
            view=view, proposal=proposal, admitted=choice.admitted, deferred=deferred, tokens=tokens,
            counter=counter.name, configuration_hash=configuration_hash, digests=digests,
        )
    )  # fmt: skip
    return ContextPack(
        lines=tuple(_line(each, rendered[each.event_id], counter) for each in chosen),
        admitted=choice.admitted,
        deferred=deferred,
        tokens=tokens,
        budget_tokens=question.budget_tokens,
        bytes_=sum(len(line.encode()) + 1 for line in rendered.values()),
        budget_bytes=question.budget_bytes,
        counter=counter.name,
        content_hash=content_hash,
        context_hash=digest(form),
        form=form,
    )


def _within(
    closures: Sequence[Closure], page: Page, question: Question, counter: TokenCounter
) -> tuple[Choice, int]:
    """Choose; where the counter says more of the whole than of its lines, choose again with less."""
    allowed = question.budget_tokens
    while True:
        choice = choose(closures, page.sizes, budget_tokens=allowed, budget_bytes=question.budget_bytes)
        whole = "".join(f"{line}\n" for line in page.lines(choice.members).values())
        tokens = counter.count(whole)
        if tokens <= question.budget_tokens or not whole:
            return choice, tokens
        # Below what this choice cost, or the same choice would come again.
        allowed = min(allowed, choice.tokens) - max(1, tokens - question.budget_tokens)


def _deferred(closures: Sequence[Closure], choice: Choice, sizes: Mapping[str, Size]) -> tuple[Deferred, ...]:
    """Name what did not fit, by id, each with what it would cost beside the lines already shown."""
    admitted = set(choice.admitted)
    found = []
    for closure in sorted(closures, key=lambda closure: closure.closure_id):
        if closure.closure_id not in admitted:
            tokens, bytes_ = room(parts_of(closure.members, sizes), choice.parts)
            found.append(
                Deferred(
                    closure_id=closure.closure_id,
                    cost_tokens=tokens,
                    cost_bytes=bytes_,
                    required=closure.required,
                )
            )
    return tuple(found)


def _line(evidence: Evidence, rendered: str, counter: TokenCounter) -> Line:
    return Line(
        line_id=line_id(evidence.position),
        event_id=evidence.event_id,
        rendered=rendered,
        text=evidence.text,
        observed_at=format_instant(evidence.observed_at, offset_minutes=evidence.offset_minutes),
        mark=evidence.mark,
        tokens=counter.count(f"{rendered}\n"),
    )


def _in_source_order(members: Iterable[str], evidence: Mapping[str, Evidence]) -> list[Evidence]:
    return sorted((evidence[member] for member in members), key=lambda each: each.position)


def _checked(closures: ClosureSet) -> dict[str, Evidence]:
    """Return the evidence by event, where it does not contradict itself."""
    evidence: dict[str, Evidence] = {}
    for each in closures.evidence:
        if evidence.setdefault(each.event_id, each) != each:
            raise IntegrityFault(what="evidence: one event stands for two texts")
    if len({each.position for each in evidence.values()}) < len(evidence):
        raise IntegrityFault(what="evidence: two events stand at one position")
    if len({closure.closure_id for closure in closures.closures}) < len(closures.closures):
        raise IntegrityFault(what="closure: one id stands for two closures")
    if any(member not in evidence for closure in closures.closures for member in closure.members):
        raise IntegrityFault(what="closure: a member came without evidence")
    return evidence
