"""
The workers that fold the event log into claims and cells.

Promises: a fold is a function of the log alone, so a repeated, lost or reordered wake-up
changes nothing.
Does not promise: freshness. Readers wait for a commit if they need it.
"""

from projection._backlog import Backlog, backlog
from projection._projector import RuleProjector
from projection._relay import run_relay
from projection._run import run_projection
from projection._worker import run_worker

__all__ = ["Backlog", "RuleProjector", "backlog", "run_projection", "run_relay", "run_worker"]
