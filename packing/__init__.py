"""
The choice of evidence under a token budget, its rendering, and its hash. Pure.

Promises: same inputs, same bytes; an evidence set is admitted whole or deferred by name; the
budget is never exceeded by the counter named; `parse(render(lines)) == lines`.
Does not promise: that what it was given is current. The ledger decided that before.
"""

from packing._canonical import canonical
from packing._counter import ApproximateCounter
from packing._pack import pack
from packing._page import PACKER_VERSION, room_of
from packing._render import Shown, parse, render
from packing._seal import answer_digest, event_ids, seal

__all__ = [
    "PACKER_VERSION",
    "ApproximateCounter",
    "Shown",
    "answer_digest",
    "canonical",
    "event_ids",
    "pack",
    "parse",
    "render",
    "room_of",
    "seal",
]
