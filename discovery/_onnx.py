"""
An embedding model as an ONNX graph with its tokenizer: the bundled one's, or any folder that holds such.

A folder has `model.onnx` and `tokenizer.json`, as published models have them. A graph that gives one
vector a text is taken as it is; of one that gives a vector a token, their mean is taken, or the
first where `1_Pooling/config.json` says so. Vectors are brought to length 1 either way.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import onnxruntime
from tokenizers import Tokenizer

from contracts.errors import ModelMismatch, Unavailable
from discovery._embedder import Vectors
from discovery._model_folder import GRAPH_FILE, TOKENIZER_FILE, folder_digest, options_of

BATCH_TEXTS_MAX: Final = 16
"""Texts in one run of the graph: more would only hold more padding and memory."""
THREADS: Final = 2
"""Fixed, not taken from the machine: sums over threads round differently with their number."""

_KNOWN_INPUTS: Final = frozenset({"input_ids", "attention_mask", "token_type_ids"})


class OnnxEmbedder:
    """An `Embedder` over onnxruntime."""

    def __init__(
        self,
        *,
        graph: Path,
        tokenizer: Path,
        model_digest: str,
        tokens_max: int,
        first_token: bool = False,
    ) -> None:
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
        self._inputs = {given.name for given in self._session.get_inputs()}
        self._tokenizer = Tokenizer.from_file(str(tokenizer))
        self._tokenizer.enable_truncation(max_length=tokens_max)
        self._tokenizer.no_padding()
        self._first_token = first_token
        self.model_digest = model_digest
        unknown = self._inputs - _KNOWN_INPUTS
        if unknown or "input_ids" not in self._inputs:
            raise ModelMismatch(
                index_model="input_ids, attention_mask, token_type_ids",
                served_model=f"a graph of {', '.join(sorted(self._inputs))}",
            )
        self.dimensions = self._run([[0]]).shape[1]

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one normalized row per text. What is past the model's length is not seen."""
        result = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        tokens = [encoding.ids for encoding in self._tokenizer.encode_batch(list(texts))]
        # Neighbours of like length share a batch, so that little of it is padding.
        order = sorted(range(len(texts)), key=lambda index: len(tokens[index]))
        for start in range(0, len(order), BATCH_TEXTS_MAX):
            rows = order[start : start + BATCH_TEXTS_MAX]
            result[rows] = self._run([tokens[row] for row in rows])
        return result

    def _run(self, batch: list[list[int]]) -> Vectors:
        # Some tokenizers give no token at all for an empty text.
        length = max(1, *(len(ids) for ids in batch))
        ids = np.zeros((len(batch), length), dtype=np.int64)
        mask = np.zeros_like(ids)
        for row, row_ids in enumerate(batch):
            ids[row, : len(row_ids)] = row_ids
            mask[row, : len(row_ids)] = 1
        given = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        output = self._session.run(None, {name: given[name] for name in self._inputs})
        return normalized(self._pooled(output, mask))

    def _pooled(self, outputs: Sequence[Any], mask: npt.NDArray[Any]) -> Vectors:
        for output in outputs:
            # One vector a text, if the graph gives any.
            if output.ndim == 2:  # noqa: PLR2004 - texts by numbers
                return np.asarray(output, dtype=np.float32)
        tokens = np.asarray(outputs[0], dtype=np.float32)
        if self._first_token:
            return tokens[:, 0]
        weights = mask[:, :, None].astype(np.float32)
        return np.asarray((tokens * weights).sum(axis=1) / np.maximum(weights.sum(axis=1), 1e-9))


def normalized(vectors: Vectors) -> Vectors:
    """Return each row at length 1; a row of zeros stays one."""
    return np.asarray(vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9))


def load_folder(folder: Path) -> OnnxEmbedder:
    """
    Return the embedder of a folder with `model.onnx` and `tokenizer.json`. Blocks: reads and hashes both.

    Raises:
        Unavailable: A file is missing, or is no graph and no tokenizer.
        ModelMismatch: The graph asks for something that is no text.
    """
    options = options_of(folder)
    try:
        return OnnxEmbedder(
            graph=folder / GRAPH_FILE,
            tokenizer=folder / TOKENIZER_FILE,
            model_digest=folder_digest(folder),
            tokens_max=options["tokens_max"],
            first_token=options["first_token"],
        )
    except (ModelMismatch, Unavailable):
        raise
    # Neither library has exceptions of its own that can be named.
    except Exception as error:
        raise Unavailable(
            part="embedder", reason=f"the model folder cannot be read ({type(error).__name__})"
        ) from error
