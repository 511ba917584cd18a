"""
Recall trails, replay, and evaluation: what checks the plane from outside.

Promises: it shares no code with the projection that it checks, nor with the packer whose hashes
it recomputes. Of a public data set, what is gold is read apart from what is told and asked.
Does not promise: to repair what it finds.
"""

from audit._bundle import BundleRecorder
from audit._bundle_check import BundleReport, check_bundle
from audit._bundle_files import code_digest_of, data_digests
from audit._formulas import measure
from audit._gold_lines import gold_lines
from audit._histories import Gold, History, HistoryQuestion, HistoryTurn
from audit._replay import replay
from audit._sets import DATA_SETS, DataSet

__all__ = [
    "DATA_SETS",
    "BundleRecorder",
    "BundleReport",
    "DataSet",
    "Gold",
    "History",
    "HistoryQuestion",
    "HistoryTurn",
    "check_bundle",
    "code_digest_of",
    "data_digests",
    "gold_lines",
    "measure",
    "replay",
]
