"""
What spans of different processes have in common: the commit that they are about.

Nothing is carried along for it: whoever works on a commit knows its tenant and number, and makes the same
link of them. No content enters it.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitLink:
    """What spans about one commit link to: 128 and 64 bits, as OpenTelemetry numbers them, never zero."""

    trace_id: int
    span_id: int


def commit_link(tenant: str, commit: int) -> CommitLink:
    """Return the link of a commit, the same in every process and for ever."""
    digest = hashlib.sha256(f"echoplane commit {tenant} {commit}".encode()).digest()
    return CommitLink(trace_id=int.from_bytes(digest[:16]) or 1, span_id=int.from_bytes(digest[16:24]) or 1)
