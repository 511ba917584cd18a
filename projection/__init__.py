"""
The workers that fold the event log into claims and cells.

Promises: a fold is a function of the log alone, so a repeated, lost or reordered wake-up
changes nothing.
Does not promise: freshness. Readers wait for a commit if they need it.
"""

from projection._projector import RuleProjector

__all__ = ["RuleProjector"]
