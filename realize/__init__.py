"""
The answer, derived from a frozen context and nothing else. Pure.

Promises: it shows only what was asked, or says that evidence is missing or in conflict; every
answer cites its lines.
Does not promise: an answer.
"""

from realize._realize import realize

__all__ = ["realize"]
