"""
Recall trails, replay, and evaluation: what checks the plane from outside.

Promises: it shares no code with the projection that it checks, nor with the packer whose hashes
it recomputes. Of a public data set, what is gold is read apart from what is told and asked.
Does not promise: to repair what it finds.
"""

from audit._baselines import BASELINES, Matrix, baseline_rankings, pack_plainly, said
from audit._bundle import BundleRecorder
from audit._bundle_check import BundleReport, check_bundle
from audit._bundle_files import code_digest_of, data_digests
from audit._calibration import agreement, agreements, make_packet
from audit._contexts import ContextRecorder
from audit._formulas import measure
from audit._gate_check import GateReport, check_gate
from audit._gate_register import GateRegister, content_digests, read_gate_file
from audit._gates import GatePlace, GateRunner, code_now, register_gate, run_gate
from audit._gold_lines import as_word, gold_answers, gold_lines, words_digest
from audit._histories import Gold, History, HistoryQuestion, HistoryTurn
from audit._judge import JUDGE_DIGEST
from audit._matrix import check_contexts, check_matrix, digest_of_lines, read_matrix, write_matrix
from audit._qa import check_seal, judge_run, read_cells, read_contexts, read_gold, write_gold
from audit._replay import replay
from audit._retracted import if_retracted
from audit._sets import DATA_SETS, DataSet
from audit._superiority import Claim, superiority
from audit._today import replay_today

__all__ = [
    "BASELINES",
    "DATA_SETS",
    "JUDGE_DIGEST",
    "BundleRecorder",
    "BundleReport",
    "Claim",
    "ContextRecorder",
    "DataSet",
    "GatePlace",
    "GateRegister",
    "GateReport",
    "GateRunner",
    "Gold",
    "History",
    "HistoryQuestion",
    "HistoryTurn",
    "Matrix",
    "agreement",
    "agreements",
    "as_word",
    "baseline_rankings",
    "check_bundle",
    "check_contexts",
    "check_gate",
    "check_matrix",
    "check_seal",
    "code_digest_of",
    "code_now",
    "content_digests",
    "data_digests",
    "digest_of_lines",
    "gold_answers",
    "gold_lines",
    "if_retracted",
    "judge_run",
    "make_packet",
    "measure",
    "pack_plainly",
    "read_cells",
    "read_contexts",
    "read_gate_file",
    "read_gold",
    "read_matrix",
    "register_gate",
    "replay",
    "replay_today",
    "run_gate",
    "said",
    "superiority",
    "words_digest",
    "write_gold",
    "write_matrix",
]
