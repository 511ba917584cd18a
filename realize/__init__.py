"""
The answer, derived from a frozen context and nothing else. Pure, but for one model port.

Promises: it shows only what was asked, or says that evidence is missing or in conflict.
Does not promise: an answer.
"""

__all__: list[str] = []
