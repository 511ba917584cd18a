"""
The answer, derived from resolved states and a frozen context and nothing else. Pure.

Promises: it shows only what was asked, or says that evidence is missing or in conflict; every
answer cites its lines; a question is derived from (`read_task`, `derive`) only if every word of it is
understood.
Does not promise: an answer.
"""

from realize._derive import Derivation, Derived, Found, claims_of, derive
from realize._realize import realize
from realize._select import named_pairs
from realize._task import Task, read_task

__all__ = [
    "Derivation",
    "Derived",
    "Found",
    "Task",
    "claims_of",
    "derive",
    "named_pairs",
    "read_task",
    "realize",
]
