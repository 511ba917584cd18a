"""An endpoint of embeddings that misbehaves in each way that one can, on a real socket."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from contracts.errors import BadRequest, ModelMismatch, Unavailable
from contracts.limits import ENDPOINT_ATTEMPTS_MAX, ENDPOINT_BATCH_TEXTS_MAX
from echoplane._embedders import configured_model
from echoplane._embeddings_endpoint import EndpointEmbedder
from echoplane._settings import read_settings

GOOD = "good"


def vector_of(text: str, dimensions: int = 6) -> list[float]:
    return [1.0 + (len(text) * place) % 7 for place in range(dimensions)]


def answer(texts, dimensions: int = 6) -> bytes:
    rows = [{"index": at, "embedding": vector_of(text, dimensions)} for at, text in enumerate(texts)]
    # In any order: the index says which is whose.
    return json.dumps({"object": "list", "data": rows[::-1], "model": "m"}).encode()


def drip(handler, ended):
    """Answer a byte at a time, without end."""
    handler.send_response(200)
    handler.end_headers()
    with suppress(OSError):
        while not ended.wait(0.02):
            handler.wfile.write(b" ")


@contextmanager
def endpoint(*behaviours, after=GOOD):
    """Serve each behaviour once, in order, then `after`; yields the address, and what was asked."""
    planned, asked, hang = list(behaviours), [], threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            given = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            asked.append((self.path, self.headers.get("Authorization"), given))
            behaviour = planned.pop(0) if planned else after
            status, headers, body = 200, {}, answer(given["input"])
            match behaviour:
                case "hang":
                    hang.wait(20)
                case "drop":
                    self.connection.close()
                    return
                case int():
                    status = behaviour
                case (int() as status, headers):
                    pass
                case "refuses x" if "x" in given["input"]:
                    status = 400
                case bytes():
                    body = behaviour
                case "drips":
                    drip(self, hang)
                    return
                case "other length":
                    body = answer(given["input"], 5)
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1", asked
    finally:
        hang.set()
        server.shutdown()
        server.server_close()
        thread.join()


def embedder(url, waits=None, **options):
    waits = [] if waits is None else waits
    return EndpointEmbedder(url, model="m", key="secret", sleep=waits.append, **options)


def test_texts_come_back_in_order_at_length_one_in_batches_with_the_key(monkeypatch):
    texts = ["a" * (1 + at % 5) for at in range(ENDPOINT_BATCH_TEXTS_MAX + 3)]
    with endpoint() as (url, asked):
        made = embedder(url)
        vectors = made.embed(texts)

    expected = np.array([vector_of(text) for text in texts])
    assert made.dimensions == 6
    assert vectors == pytest.approx(expected / np.linalg.norm(expected, axis=1, keepdims=True), abs=1e-6)
    assert [len(given["input"]) for _, _, given in asked] == [1, ENDPOINT_BATCH_TEXTS_MAX, 3]
    assert {(path, key) for path, key, _ in asked} == {("/v1/embeddings", "Bearer secret")}


@pytest.mark.parametrize("trouble", [500, 503, (429, {"Retry-After": "3"}), "drop", "hang"])
def test_what_passes_by_itself_is_tried_again_with_longer_waits(trouble):
    waits: list[float] = []
    with endpoint(GOOD, trouble, trouble) as (url, _):
        # Only what hangs is waited for.
        vectors = embedder(url, waits, answer_seconds=2 if trouble == "hang" else 20).embed(["hello"])

    assert np.linalg.norm(vectors[0]) == pytest.approx(1)
    assert len(waits) == 2
    assert waits == [3, 3] if isinstance(trouble, tuple) else waits[1] == 2 * waits[0]


def test_what_does_not_pass_is_given_up_after_some_tries():
    with endpoint(GOOD, after=503) as (url, asked):
        made = embedder(url)
        with pytest.raises(Unavailable, match="503"):
            made.embed(["hello"])

    assert len(asked) == 1 + ENDPOINT_ATTEMPTS_MAX


@pytest.mark.parametrize("status", [401, 403, 404, 302])
def test_a_refusal_of_ourselves_is_not_tried_again_and_leads_nowhere_else(status):
    with endpoint(GOOD, after=(status, {"Location": "http://127.0.0.1:1/"})) as (url, asked):
        made = embedder(url)
        with pytest.raises(Unavailable, match=str(status)):
            made.embed(["hello"])

    assert len(asked) == 2


def test_a_text_that_is_refused_is_near_to_nothing_and_holds_up_no_other():
    with endpoint(after="refuses x") as (url, _):
        vectors = embedder(url).embed(["hello", "x", "there"])

    assert not vectors[1].any()
    assert np.linalg.norm(vectors[[0, 2]], axis=1) == pytest.approx(1)


NONSENSE = [
    b"",
    b"<html>",
    b"[]",
    b'{"data": []}',
    b'{"data": [{"index": 1, "embedding": [1, 2, 3, 4, 5, 6]}]}',
    b'{"data": [{"index": 0, "embedding": "AAAA"}]}',
    b'{"data": [{"index": 0, "embedding": [NaN, 0, 0, 0, 0, 0]}]}',
    b'{"data": [{"index": 0, "embedding": [0, 0, 0, 0, 0, 0]}]}',
    b'{"data": [{"index": 0, "embedding": [1e400, 0, 0, 0, 0, 0]}]}',
    b"[" * 200_000,
]


@pytest.mark.parametrize("body", NONSENSE)
def test_nonsense_is_no_vector(body):
    with endpoint(GOOD, body) as (url, _):
        made = embedder(url)
        with pytest.raises(Unavailable):
            made.embed(["hello"])


def test_vectors_of_another_length_are_another_model():
    with endpoint(GOOD, "other length") as (url, _):
        made = embedder(url)
        with pytest.raises(ModelMismatch):
            made.embed(["hello"])
    with endpoint("other length") as (url, _):
        assert embedder(url).model_digest != made.model_digest


def test_an_answer_without_end_is_cut_off(monkeypatch):
    monkeypatch.setattr("echoplane._embeddings_endpoint.ENDPOINT_ANSWER_BYTES_MAX", 100_000)
    with endpoint(GOOD, b" " * 1_000_000) as (url, _):
        made = embedder(url)
        with pytest.raises(Unavailable, match="without end"):
            made.embed(["hello"])


@pytest.mark.parametrize(
    ("trouble", "reason"), [("drips", "ReadTimeout"), ("hang", "ReadTimeout"), (503, "503")]
)
def test_all_attempts_and_all_parts_of_an_answer_together_have_a_deadline(trouble, reason, monkeypatch):
    with endpoint(GOOD, after=trouble) as (url, asked):
        made = embedder(url)
        monkeypatch.setattr("echoplane._embeddings_endpoint.ENDPOINT_SECONDS_MAX", 0.4)
        with pytest.raises(Unavailable, match=f"{reason}.*over 0.4 s"):
            made.embed(["hello"])

    assert len(asked) == 2


def test_nobody_there_is_unavailable():
    with endpoint() as (url, _):
        pass
    with pytest.raises(Unavailable, match="reached"):
        embedder(url)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"embeddings_url": "http://localhost/v1"}, "go together"),
        ({"embeddings_model": "m"}, "go together"),
        ({"embeddings_key": "k"}, "needs embeddings_url"),
        ({"embeddings_url": "ftp://x", "embeddings_model": "m"}, "begins with"),
        ({"embeddings_url": "http://x", "embeddings_model": "m", "model_dir": "/m"}, "two embedders"),
    ],
)
def test_settings_that_name_no_embedder_or_two_are_refused(given, reason):
    with pytest.raises(BadRequest, match=reason):
        read_settings(**given)


def test_the_configuration_of_an_answer_names_the_model():
    named = {
        configured_model(read_settings(**given))
        for given in (
            {},
            {"embeddings_url": "http://x", "embeddings_model": "m"},
            {"embeddings_url": "http://y", "embeddings_model": "m"},
            {"embeddings_url": "http://x", "embeddings_model": "n"},
        )
    }

    # The address is not the model.
    assert len(named) == 3
