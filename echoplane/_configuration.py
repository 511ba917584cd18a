"""The configuration hash: everything besides question, view and proposal that changes an answer."""

from __future__ import annotations

import hashlib
from importlib.metadata import version as installed_version
from typing import Any, Final

import rfc8785

from contracts import limits
from packing import PACKER_VERSION

ANSWER_VERSIONS: Final = {"closure": 3, "packer": PACKER_VERSION, "planner": 2, "realizer": 5, "resolver": 3}
"""Raised by whoever changes what the part answers for the same input."""

_LIMITS: Final = (
    "BUDGET_DEFAULT_TOKENS",
    "BUDGET_TOKENS_MAX",
    "CANDIDATES_MAX",
    "CLOSURE_EVENTS_MAX",
    "KEYS_MAX",
    "LISTED_CLAIMS_MAX",
    "QUESTION_CHARACTERS_MAX",
)


def configuration(*, projector: str, model_digest: str, counter: str) -> dict[str, Any]:
    """Return what is hashed, as JSON."""
    return {
        "counter": counter,
        "limits": {name: getattr(limits, name) for name in _LIMITS},
        "model": model_digest,
        "projector": projector,
        "versions": {"echoplane": installed_version("echoplane"), **ANSWER_VERSIONS},
    }


def configuration_hash(*, projector: str, model_digest: str, counter: str) -> str:
    """Return SHA-256 over its canonical JSON (RFC 8785), as hex."""
    found = configuration(projector=projector, model_digest=model_digest, counter=counter)
    return hashlib.sha256(rfc8785.dumps(found)).hexdigest()
