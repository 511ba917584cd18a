"""
The service that proposes where evidence may be: ids and scores, never a decision.

Promises: every candidate names its routes, and every route its index generation; nothing after the
view's cut is proposed; the same index up to the cut gives the same proposal, but for durations.
Does not promise: truth, currentness or completeness. The ledger re-reads all it proposes.
"""

from discovery._client import Client
from discovery._degraded import propose_degraded, typed_state_proposal
from discovery._embedder import Embedder, Vectors
from discovery._keeper import drop_index
from discovery._minilm import MODEL_DIGEST, load_minilm
from discovery._names import TenantNames, tenant_names
from discovery._planner import plan_question
from discovery._service import serve
from discovery._wire import Health, decode_proposal, encode_proposal

__all__ = [
    "MODEL_DIGEST",
    "Client",
    "Embedder",
    "Health",
    "TenantNames",
    "Vectors",
    "decode_proposal",
    "drop_index",
    "encode_proposal",
    "load_minilm",
    "plan_question",
    "propose_degraded",
    "serve",
    "tenant_names",
    "typed_state_proposal",
]
