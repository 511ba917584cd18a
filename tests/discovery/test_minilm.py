"""The bundled embedder against a forward pass written a second time, in numpy, from the paper."""

from __future__ import annotations

import math

import numpy as np
import pytest
from safetensors.numpy import load_file
from tokenizers import Tokenizer

from contracts.errors import ModelMismatch, Unavailable
from discovery import _minilm
from discovery._minilm import find_model_folder, load_minilm, write_graph

TEXTS = [
    "Where did you go last summer?",
    "We spent two weeks by the sea in August.",
    "The gripper lost its grip on the red mug.",
    "ok",
    "",
    "¿Dónde está la biblioteca? 図書館はどこですか 🙂",
]


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="module")
def minilm(cache):
    return load_minilm(cache)


def forward(weights, ids):
    """One text, no padding, no mask: BERT as its paper describes it."""

    def norm(x, name):
        centred = x - x.mean(-1, keepdims=True)
        spread = np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-12)
        return centred / spread * weights[f"{name}.weight"] + weights[f"{name}.bias"]

    def linear(x, name):
        return x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]

    x = (
        weights["embeddings.word_embeddings.weight"][ids]
        + weights["embeddings.position_embeddings.weight"][: len(ids)]
        + weights["embeddings.token_type_embeddings.weight"][0]
    )
    x = norm(x, "embeddings.LayerNorm")
    for layer in range(6):
        name = f"encoder.layer.{layer}"
        query, key, value = (
            linear(x, f"{name}.attention.self.{part}").reshape(len(ids), 12, 32)
            for part in ("query", "key", "value")
        )
        heads = []
        for head in range(12):
            scores = query[:, head] @ key[:, head].T / math.sqrt(32)
            shares = np.exp(scores - scores.max(-1, keepdims=True))
            heads.append(shares / shares.sum(-1, keepdims=True) @ value[:, head])
        x = norm(
            x + linear(np.concatenate(heads, -1), f"{name}.attention.output.dense"),
            f"{name}.attention.output.LayerNorm",
        )
        inner = linear(x, f"{name}.intermediate.dense")
        inner = inner * 0.5 * (1 + np.vectorize(math.erf)(inner / math.sqrt(2)))
        x = norm(x + linear(inner, f"{name}.output.dense"), f"{name}.output.LayerNorm")
    mean = x.mean(0)
    return mean / np.linalg.norm(mean)


def test_vectors_equal_an_independent_forward_pass(minilm):
    folder = find_model_folder(None)
    weights = {
        name: tensor.astype(np.float64) for name, tensor in load_file(folder / "model.safetensors").items()
    }
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()

    vectors = minilm.embed(TEXTS)

    for text, vector in zip(TEXTS, vectors, strict=True):
        expected = forward(weights, tokenizer.encode(text).ids)
        assert np.abs(vector - expected).max() < 1e-5
        assert float(vector @ expected) == pytest.approx(1, abs=1e-6)


def test_rows_are_normalized_and_in_the_order_of_the_texts_whatever_their_batch(minilm):
    texts = [f"{text} {'again ' * (number % 7)}" for number, text in enumerate(TEXTS * 6)]

    together = minilm.embed(texts)
    apart = np.concatenate([minilm.embed([text]) for text in texts])

    assert together.shape == (36, 384)
    assert together.dtype == np.float32
    assert np.allclose(np.linalg.norm(together, axis=1), 1, atol=1e-5)
    assert np.abs(together - apart).max() < 1e-5


def test_nothing_to_embed_gives_no_rows(minilm):
    assert minilm.embed([]).shape == (0, 384)


def test_text_past_the_truncation_is_not_seen(minilm):
    long = "word " * 254

    first, second = minilm.embed([long + "lighthouse", long + "submarine"])

    assert np.array_equal(first, second)


def test_a_paraphrase_is_nearer_than_another_topic(minilm):
    question, near, far = minilm.embed(
        ["A man is eating food.", "Someone eats a meal.", "The stock market fell sharply today."]
    )

    assert question @ near > 0.6
    assert question @ far < 0.2


def test_weights_other_than_the_pinned_are_refused_and_leave_no_file(tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(b"other weights")
    (folder / "tokenizer.json").write_text("{}")

    with pytest.raises(ModelMismatch):
        load_minilm(tmp_path / "cache", model_dir=folder)

    assert not list((tmp_path / "cache").glob("*"))


def test_a_folder_without_weights_is_named_as_the_embedder_being_unavailable(tmp_path):
    with pytest.raises(Unavailable, match=r"model\.safetensors"):
        load_minilm(tmp_path, model_dir=tmp_path)


def test_a_build_that_breaks_off_leaves_nothing_behind(tmp_path, monkeypatch):
    def break_off(weights):
        raise KeyboardInterrupt

    monkeypatch.setattr(_minilm, "build_graph", break_off)

    with pytest.raises(KeyboardInterrupt):
        write_graph(find_model_folder(None) / "model.safetensors", tmp_path / "graph.onnx")

    assert not list(tmp_path.iterdir())


def test_the_graph_is_built_once(minilm, cache):
    (graph,) = cache.iterdir()
    before = graph.stat().st_mtime_ns

    load_minilm(cache)

    assert graph.stat().st_mtime_ns == before
