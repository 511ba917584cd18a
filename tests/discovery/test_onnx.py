"""Any folder with a graph and a tokenizer is an embedder: its length is found out, its files are its name."""

from __future__ import annotations

import json

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace

from contracts.errors import ModelMismatch, Unavailable
from discovery import folder_digest, holds_graph, load_folder

WORDS = {"[UNK]": 0, "the": 1, "red": 2, "mug": 3, "is": 4, "here": 5}
TABLE = np.random.default_rng(5).standard_normal((len(WORDS), 16)).astype(np.float32)


def make(folder, *, inputs=("input_ids", "attention_mask", "token_type_ids"), table=TABLE):
    """A model that gives each token its row of a table: one vector a token, as published encoders do."""
    folder.mkdir(exist_ok=True)
    nodes = [helper.make_node("Gather", ["table", "input_ids"], ["last_hidden_state"])]
    graph = helper.make_graph(
        nodes,
        "small",
        [helper.make_tensor_value_info(name, TensorProto.INT64, ["n", "s"]) for name in inputs],
        [helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, ["n", "s", table.shape[1]])],
        [numpy_helper.from_array(table, "table")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    tokenizer = Tokenizer(WordLevel(WORDS, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


def at_length_one(row):
    return row / np.linalg.norm(row)


def test_token_vectors_are_averaged_over_the_text_alone(tmp_path):
    model = load_folder(make(tmp_path / "m"))

    vectors = model.embed(["red mug", "the red mug is here", ""])

    assert model.dimensions == 16
    assert vectors[0] == pytest.approx(at_length_one(TABLE[[2, 3]].mean(axis=0)), abs=1e-6)
    assert vectors[1] == pytest.approx(at_length_one(TABLE[[1, 2, 3, 4, 5]].mean(axis=0)), abs=1e-6)
    assert np.isfinite(vectors).all()


def test_the_first_token_stands_for_the_text_where_the_folder_says_so(tmp_path):
    folder = make(tmp_path / "m", inputs=("input_ids",))
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({"pooling_mode_cls_token": True}))
    (folder / "config.json").write_text(json.dumps({"max_position_embeddings": 2}))

    vectors = load_folder(folder).embed(["mug red red red"])

    assert vectors[0] == pytest.approx(at_length_one(TABLE[3]), abs=1e-6)


def test_each_file_that_decides_a_vector_changes_the_name(tmp_path):
    names = {folder_digest(make(tmp_path / "m"))}
    assert folder_digest(make(tmp_path / "same")) in names
    names.add(folder_digest(make(tmp_path / "m", table=TABLE + 1)))
    (tmp_path / "m" / "model.onnx_data").write_bytes(b"weights")
    names.add(folder_digest(tmp_path / "m"))
    (tmp_path / "m" / "tokenizer.json").write_text("{}")
    names.add(folder_digest(tmp_path / "m"))
    (tmp_path / "m" / "config.json").write_text(json.dumps({"max_position_embeddings": 99}))
    names.add(folder_digest(tmp_path / "m"))

    assert len(names) == 5
    assert load_folder(tmp_path / "same").model_digest in names


def test_a_folder_that_holds_no_model_is_unavailable(tmp_path):
    folder = make(tmp_path / "m")
    (folder / "tokenizer.json").unlink()
    with pytest.raises(Unavailable, match=r"tokenizer\.json"):
        load_folder(folder)
    make(folder)
    (folder / "model.onnx").write_bytes(b"no graph")
    with pytest.raises(Unavailable):
        load_folder(folder)
    assert holds_graph(folder)
    assert not holds_graph(tmp_path)


def test_a_graph_that_wants_something_else_than_text_is_a_mismatch(tmp_path):
    with pytest.raises(ModelMismatch, match="pixels"):
        load_folder(make(tmp_path / "m", inputs=("input_ids", "pixels")))
