"""
The answer, derived from resolved states and a frozen context and nothing else. Pure.

Promises: it shows only what was asked, or says that evidence is missing or in conflict; every
answer cites its lines; a question is derived from (`read_task`, `derive`) only if every word of it is
understood. A reader gets the context and the question and nothing else, and how it fails is said.
Does not promise: an answer.
"""

from realize._being import placed_keys
from realize._derive import claims_of, derive
from realize._found import Derivation, Derived, Found, Withheld
from realize._holders import Holders, is_mutual, may_ask_holders, placing, read_holders
from realize._holding import HolderKey, holding, standing_of_holders
from realize._reader import ABSTENTION, PROMPT_DIGEST, read_answer, read_rendered, reader_prompt
from realize._realize import realize
from realize._select import named_pairs
from realize._show import NOTHING_FOUND
from realize._stays import NOT_OF_KIND
from realize._task import OCCURRED, THROUGH_TIME, Subject, Task, read_task

__all__ = [
    "ABSTENTION",
    "NOTHING_FOUND",
    "NOT_OF_KIND",
    "OCCURRED",
    "PROMPT_DIGEST",
    "THROUGH_TIME",
    "Derivation",
    "Derived",
    "Found",
    "HolderKey",
    "Holders",
    "Subject",
    "Task",
    "Withheld",
    "claims_of",
    "derive",
    "holding",
    "is_mutual",
    "may_ask_holders",
    "named_pairs",
    "placed_keys",
    "placing",
    "read_answer",
    "read_holders",
    "read_rendered",
    "read_task",
    "reader_prompt",
    "realize",
    "standing_of_holders",
]
