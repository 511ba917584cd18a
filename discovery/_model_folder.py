"""What names the model of a folder, and how it is used: known without loading it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from contracts.errors import Unavailable

GRAPH_FILE: Final = "model.onnx"
TOKENIZER_FILE: Final = "tokenizer.json"
TOKENS_MAX: Final = 512
"""Tokens of a text that are seen; fewer where the model takes fewer."""
FOLDER_VERSION: Final = 1
"""Goes into the digest of a folder's model: raise it when the same files may give other vectors."""


def holds_graph(folder: Path) -> bool:
    """Return whether a folder holds a model as an ONNX graph."""
    return (folder / GRAPH_FILE).is_file()


def folder_digest(folder: Path) -> str:
    """
    Return what names the model of a folder: its weights, its tokenizer, and how they are used.

    Raises:
        Unavailable: A file is missing.
    """
    digest = hashlib.sha256(json.dumps([FOLDER_VERSION, options_of(folder)], sort_keys=True).encode())
    # Large graphs keep their weights in files beside them.
    for path in (*sorted(folder.glob(f"{GRAPH_FILE}*")), folder / TOKENIZER_FILE):
        digest.update(path.name.encode())
        try:
            with path.open("rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
        except OSError as error:
            raise Unavailable(part="embedder", reason=f"the model folder has no {path.name}") from error
    return f"onnx.{FOLDER_VERSION}:{digest.hexdigest()}"


def options_of(folder: Path) -> dict[str, Any]:
    """Return how many tokens the model of a folder takes, and whether the first one stands for the text."""
    positions = _json_of(folder / "config.json").get("max_position_embeddings")
    pooling = _json_of(folder / "1_Pooling" / "config.json")
    return {
        "tokens_max": min(
            TOKENS_MAX, positions if isinstance(positions, int) and positions > 0 else TOKENS_MAX
        ),
        "first_token": pooling.get("pooling_mode_cls_token") is True,
    }


def _json_of(path: Path) -> Mapping[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
