"""Which model the plane comes with: known without loading it."""

from __future__ import annotations

from typing import Final

WEIGHTS_SHA256: Final = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
"""SHA-256 of `model.safetensors` as published."""
GRAPH_VERSION: Final = 1
"""Goes into the model digest: raise it when the graph may give other vectors."""
WIDTH: Final = 384
"""Dimensions of a vector."""
MODEL_DIGEST: Final = f"minilm-l6-v2.{GRAPH_VERSION}:{WEIGHTS_SHA256}"
"""Names the model and how its graph was built: what vectors are compared by."""
