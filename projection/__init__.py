"""
The workers that fold the event log into claims and cells.

Promises: a fold is a function of the log alone, so a repeated, lost or reordered wake-up
changes nothing.
Does not promise: freshness. Readers wait for a commit if they need it.
"""

from typing import TYPE_CHECKING

from projection._projector import RuleProjector
from projection._queue import Queue, queue
from projection._traces import link, span

if TYPE_CHECKING:
    from projection._relay import run_relay
    from projection._run import run_projection
    from projection._worker import run_worker

__all__ = ["Queue", "RuleProjector", "link", "queue", "run_projection", "run_relay", "run_worker", "span"]


def __getattr__(name: str) -> object:
    """
    Import what runs on the broker when it is first asked for.

    The broker library takes most of a second to import, and every command line call names the
    projector while only the worker's process runs one.
    """
    match name:
        case "run_relay":
            from projection._relay import run_relay  # noqa: PLC0415 -- see above

            return run_relay
        case "run_projection":
            from projection._run import run_projection  # noqa: PLC0415 -- see above

            return run_projection
        case "run_worker":
            from projection._worker import run_worker  # noqa: PLC0415 -- see above

            return run_worker
        case _:
            raise AttributeError(f"module 'projection' has no attribute {name!r}")
