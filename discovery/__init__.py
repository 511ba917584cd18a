"""
The service that proposes where evidence may be: ids and scores, never a decision.

Promises: every candidate names its routes, and every route its index generation; nothing after the
view's cut is proposed; the same index up to the cut gives the same proposal, but for durations.
Does not promise: truth, currentness or completeness. The ledger re-reads all it proposes.
"""

from typing import TYPE_CHECKING

from discovery._border import check_proposal
from discovery._client import Client
from discovery._degraded import propose_degraded, typed_state_proposal
from discovery._embedder import Embedder, Vectors
from discovery._grounding import grounded, speaks_of_self, speaks_to_agent, spellings
from discovery._keeper import drop_index
from discovery._model import MODEL_DIGEST
from discovery._model_folder import folder_digest, holds_graph
from discovery._names import TenantNames, tenant_names
from discovery._planner import plan_question
from discovery._routes import ROUTES
from discovery._wire import Health, decode_proposal, encode_proposal

if TYPE_CHECKING:
    from discovery._minilm import load_minilm
    from discovery._onnx import load_folder
    from discovery._service import serve

__all__ = [
    "MODEL_DIGEST",
    "ROUTES",
    "Client",
    "Embedder",
    "Health",
    "TenantNames",
    "Vectors",
    "check_proposal",
    "decode_proposal",
    "drop_index",
    "encode_proposal",
    "folder_digest",
    "grounded",
    "holds_graph",
    "load_folder",
    "load_minilm",
    "plan_question",
    "propose_degraded",
    "serve",
    "speaks_of_self",
    "speaks_to_agent",
    "spellings",
    "tenant_names",
    "typed_state_proposal",
]


def __getattr__(name: str) -> object:
    """
    Import what only the service's own process needs when it is first asked for.

    The model's runtime and the broker take seconds to import, and every command line call is a
    client of the service.
    """
    match name:
        case "load_minilm":
            from discovery._minilm import load_minilm  # noqa: PLC0415 -- see above

            return load_minilm
        case "load_folder":
            from discovery._onnx import load_folder  # noqa: PLC0415 -- see above

            return load_folder
        case "serve":
            from discovery._service import serve  # noqa: PLC0415 -- see above

            return serve
        case _:
            raise AttributeError(f"module 'discovery' has no attribute {name!r}")
