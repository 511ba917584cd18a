"""
The choice of evidence under a token budget, its rendering, and its hash. Pure.

Promises: same inputs, same bytes; an evidence set is admitted whole or deferred by name.
Does not promise: that what it was given is current. The ledger decided that before.
"""

__all__: list[str] = []
