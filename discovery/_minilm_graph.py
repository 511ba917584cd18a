"""
The ONNX graph of all-MiniLM-L6-v2, built node by node from its weights.

A BERT encoder (6 layers, 12 heads of 32, GELU by Erf), mean pooling over the attention mask and
L2 normalization, all in the graph: what comes out is the vector. No torch is needed to build it.

Source: Devlin et al., "BERT" (2019); Reimers and Gurevych, "Sentence-BERT" (2019).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from onnx import TensorProto, checker, helper, numpy_helper

from discovery._model import WIDTH

OPSET: Final = 17
"""The first with LayerNormalization."""

LAYERS: Final = 6
HEADS: Final = 12
HEAD_WIDTH: Final = WIDTH // HEADS
LAYER_NORM_EPSILON: Final = 1e-12
# Where the mask is 0 a score sinks by this much, so that its share after softmax is exactly 0 in fp32.
MASKED_SCORE: Final = -1e9

_Array = npt.NDArray[Any]


class _Graph:
    """Collects nodes and constants; `add` returns the name of a node's output."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, name: str, value: _Array) -> str:
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def add(self, operation: str, *inputs: str, **attributes: float | list[int]) -> str:
        name = f"{operation.lower()}_{len(self.nodes)}"
        node = helper.make_node(operation, list(inputs), [name], name=name)
        node.attribute.extend(helper.make_attribute(key, value) for key, value in attributes.items())
        self.nodes.append(node)
        return name

    def split(self, value: str, *, parts: int) -> list[str]:
        names = [f"split_{len(self.nodes)}_{part}" for part in range(parts)]
        self.nodes.append(helper.make_node("Split", [value], names, axis=-1))
        return names


def build_graph(weights: Mapping[str, _Array]) -> bytes:
    """
    Return the serialized model: `input_ids`, `attention_mask` (int64 `[n, s]`) to `embedding` `[n, 384]`.

    Args:
        weights: Tensors under their names in the published `model.safetensors`, fp32.
    """
    graph = _Graph()
    _shared_constants(graph)
    hidden = _embeddings(graph, weights)
    bias = _mask_bias(graph)
    for layer in range(LAYERS):
        hidden = _layer(graph, weights, hidden, bias, layer=layer)
    pooled = _pool(graph, hidden)
    graph.nodes.append(helper.make_node("Identity", [pooled], ["embedding"]))
    model = helper.make_model(
        helper.make_graph(
            graph.nodes,
            "all-MiniLM-L6-v2",
            [
                helper.make_tensor_value_info(name, TensorProto.INT64, ["texts", "tokens"])
                for name in ("input_ids", "attention_mask")
            ],
            [helper.make_tensor_value_info("embedding", TensorProto.FLOAT, ["texts", WIDTH])],
            graph.constants,
        ),
        opset_imports=[helper.make_opsetid("", OPSET)],
        # The oldest that carries this opset, so that any onnxruntime since 1.13 reads it.
        ir_version=8,
    )
    checker.check_model(model)
    return bytes(model.SerializeToString())


def _shared_constants(graph: _Graph) -> None:
    for name, value in (
        ("half", 0.5),
        ("one", 1.0),
        ("root_two", np.sqrt(2.0)),
        ("smallest", 1e-9),
        ("masked", MASKED_SCORE),
        ("scale", 1 / np.sqrt(HEAD_WIDTH)),
    ):
        graph.constant(name, np.array(value, dtype=np.float32))
    graph.constant("heads_apart", np.array([0, 0, HEADS, HEAD_WIDTH], dtype=np.int64))
    graph.constant("heads_together", np.array([0, 0, WIDTH], dtype=np.int64))
    for name, axes in (("axis_0", [0]), ("axis_1", [1]), ("axis_2", [2]), ("axes_1_2", [1, 2])):
        graph.constant(name, np.array(axes, dtype=np.int64))


def _norm(graph: _Graph, weights: Mapping[str, _Array], value: str, *, prefix: str) -> str:
    scale = graph.constant(f"{prefix}.weight", weights[f"{prefix}.weight"])
    shift = graph.constant(f"{prefix}.bias", weights[f"{prefix}.bias"])
    return graph.add("LayerNormalization", value, scale, shift, axis=-1, epsilon=LAYER_NORM_EPSILON)


def _embeddings(graph: _Graph, weights: Mapping[str, _Array]) -> str:
    words = graph.constant("words", weights["embeddings.word_embeddings.weight"])
    # Every token is of type 0 here, so the type's row is folded into the positions.
    rows = (
        weights["embeddings.position_embeddings.weight"]
        + weights["embeddings.token_type_embeddings.weight"][0]
    )
    positions = graph.constant("positions", rows)
    length = graph.add("Shape", "input_ids", start=1, end=2)
    used = graph.add(
        "Slice", positions, graph.constant("start", np.array([0], dtype=np.int64)), length, "axis_0"
    )
    total = graph.add("Add", graph.add("Gather", words, "input_ids", axis=0), used)
    return _norm(graph, weights, total, prefix="embeddings.LayerNorm")


def _mask_bias(graph: _Graph) -> str:
    mask = graph.add("Cast", "attention_mask", to=TensorProto.FLOAT)
    missing = graph.add("Sub", "one", graph.add("Unsqueeze", mask, "axes_1_2"))
    return graph.add("Mul", missing, "masked")


def _linear(graph: _Graph, weights: Mapping[str, _Array], value: str, *prefixes: str) -> str:
    # Several layers over one input are one product: half the time of three for query, key and value.
    matrix = np.concatenate([weights[f"{prefix}.weight"].T for prefix in prefixes], axis=1)
    shift = np.concatenate([weights[f"{prefix}.bias"] for prefix in prefixes])
    product = graph.add("MatMul", value, graph.constant(f"{prefixes[0]}.matrix", matrix))
    return graph.add("Add", product, graph.constant(f"{prefixes[0]}.shift", shift))


def _layer(graph: _Graph, weights: Mapping[str, _Array], hidden: str, bias: str, *, layer: int) -> str:
    prefix = f"encoder.layer.{layer}"
    own = f"{prefix}.attention.self"
    parts = graph.split(
        _linear(graph, weights, hidden, f"{own}.query", f"{own}.key", f"{own}.value"), parts=3
    )
    query, key, value = (graph.add("Reshape", part, "heads_apart") for part in parts)
    query = graph.add("Transpose", query, perm=[0, 2, 1, 3])
    key = graph.add("Transpose", key, perm=[0, 2, 3, 1])
    value = graph.add("Transpose", value, perm=[0, 2, 1, 3])
    scores = graph.add("Add", graph.add("Mul", graph.add("MatMul", query, key), "scale"), bias)
    mixed = graph.add("MatMul", graph.add("Softmax", scores, axis=-1), value)
    mixed = graph.add("Reshape", graph.add("Transpose", mixed, perm=[0, 2, 1, 3]), "heads_together")
    attended = graph.add("Add", _linear(graph, weights, mixed, f"{prefix}.attention.output.dense"), hidden)
    attended = _norm(graph, weights, attended, prefix=f"{prefix}.attention.output.LayerNorm")
    inner = _linear(graph, weights, attended, f"{prefix}.intermediate.dense")
    share = graph.add("Add", graph.add("Erf", graph.add("Div", inner, "root_two")), "one")
    inner = graph.add("Mul", graph.add("Mul", inner, share), "half")
    outer = graph.add("Add", _linear(graph, weights, inner, f"{prefix}.output.dense"), attended)
    return _norm(graph, weights, outer, prefix=f"{prefix}.output.LayerNorm")


def _pool(graph: _Graph, hidden: str) -> str:
    mask = graph.add("Unsqueeze", graph.add("Cast", "attention_mask", to=TensorProto.FLOAT), "axis_2")
    total = graph.add("ReduceSum", graph.add("Mul", hidden, mask), "axis_1", keepdims=0)
    count = graph.add("Max", graph.add("ReduceSum", mask, "axis_1", keepdims=0), "smallest")
    mean = graph.add("Div", total, count)
    length = graph.add("ReduceL2", mean, axes=[1], keepdims=1)
    return graph.add("Div", mean, graph.add("Max", length, "smallest"))
