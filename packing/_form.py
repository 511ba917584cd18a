"""
The canonical form of a context, and its two hashes.

`content` says which evidence and which resolved state: equal for equal evidence, whatever was
asked. `context` adds the question, its options, the plan, `valid_at`, cut, epoch, the candidates
and the configuration, and what was admitted and deferred. `known_at` is not in it: only the cut
that it was turned into decides anything (SEMANTICS §1), and the trail keeps it. Nor are route
timings and index generations: they change no byte of an answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from contracts.contexts import Deferred, Evidence, Mark, SealedResolution
from contracts.ports import Digests
from contracts.proposals import Candidate, Plan, Proposal
from contracts.times import format_instant
from contracts.trails import Question
from contracts.views import View
from packing._canonical import canonical
from packing._page import PACKER_VERSION, WHOLE_TIMES
from packing._render import line_id

CONTENT_FORMAT: Final = "echoplane.content/1"
CONTEXT_FORMATS: Final = {WHOLE_TIMES: "echoplane.context/1", PACKER_VERSION: "echoplane.context/2"}
"""By the version of the packer. What is said stays the same; what it costs and what fits does not."""


def content_form(
    evidence: Sequence[Evidence], resolutions: Sequence[SealedResolution], digests: Digests
) -> dict[str, Any]:
    """Return the content: lines in source order, resolutions by key digest."""
    return {
        "format": CONTENT_FORMAT,
        "lines": [_line(each, digests) for each in evidence],
        "resolutions": [_resolution(each) for each in sorted(resolutions, key=lambda each: each.key_digest)],
    }


def context_form(
    *,
    packer: int,
    content: dict[str, Any],
    content_hash: str,
    question: Question,
    plan: Plan,
    view: View,
    proposal: Proposal,
    admitted: Sequence[str],
    deferred: Sequence[Deferred],
    tokens: int,
    counter: str,
    configuration_hash: str,
    digests: Digests,
) -> dict[str, Any]:
    """Return all that the context hash covers."""
    return {
        "format": CONTEXT_FORMATS[packer],
        "question": {
            "digest": digests.of_tenant(canonical(["question", question.text])),
            "budget_tokens": question.budget_tokens,
            "disclose_conflicts": question.disclose_conflicts,
            # Where no bytes are bounded, the form is what it was before they could be.
            **({} if question.budget_bytes is None else {"budget_bytes": question.budget_bytes}),
        },
        # A plan holds words of the question.
        "plan": {
            "digest": digests.of_tenant(canonical(["plan", plan])),
            "operation": plan.operation.value,
            "surface": plan.surface,
        },
        "view": {"valid_at": format_instant(view.valid_at), "cut": view.cut, "epoch": view.epoch},
        "candidates": [_candidate(candidate) for candidate in proposal.candidates],
        "keys": [
            {
                "digest": digests.of_tenant(canonical(["key", key.entity, key.relation])),
                "score_ppm": key.score_ppm,
                "named": key.named,
            }
            for key in proposal.keys
        ],
        # The id of a closure may name its key.
        "admitted": [_closure(closure_id, digests) for closure_id in admitted],
        "deferred": [
            {
                "closure": _closure(each.closure_id, digests),
                "cost_tokens": each.cost_tokens,
                **({} if question.budget_bytes is None else {"cost_bytes": each.cost_bytes}),
                "required": each.required,
            }
            for each in deferred
        ],
        "tokens": tokens,
        "counter": counter,
        "configuration": configuration_hash,
        "content": content,
        "content_hash": content_hash,
    }


def _candidate(candidate: Candidate) -> dict[str, Any]:
    return {
        "unit": candidate.unit_id,
        "events": list(candidate.event_ids),
        "score_ppm": candidate.score_ppm,
        "hits": [[hit.route, hit.rank, hit.score_ppm] for hit in candidate.hits],
    }


def _line(evidence: Evidence, digests: Digests) -> dict[str, Any]:
    return {
        "id": line_id(evidence.position),
        "event": evidence.event_id,
        "observed_at": format_instant(evidence.observed_at, offset_minutes=evidence.offset_minutes),
        "recorded_at": format_instant(evidence.recorded_at),
        "stream": digests.of_tenant(canonical(["stream", evidence.stream])),
        "speaker": digests.of_tenant(canonical(["speaker", evidence.actor_id])),
        "class": evidence.actor_class,
        "mark": evidence.mark.value,
        "from_commit": None if evidence.mark == Mark.PLAIN else evidence.marked_commit,
        "text": evidence.text_digest,
        "claims": list(evidence.claim_digests),
    }


def _resolution(sealed: SealedResolution) -> dict[str, Any]:
    return {
        "key": sealed.key_digest,
        "contract": sealed.contract_digest,
        "outcome": sealed.outcome,
        "reasons": list(sealed.reasons),
        "values": list(sealed.values),
        "claims": [
            [claim.role, claim.group, claim.event_id, claim.ordinal, claim.digest] for claim in sealed.claims
        ],
    }


def _closure(closure_id: str, digests: Digests) -> str:
    return digests.of_tenant(canonical(["closure", closure_id]))
