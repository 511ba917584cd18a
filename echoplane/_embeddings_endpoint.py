"""
Any OpenAI-compatible `/embeddings` endpoint as an embedder.

It is somebody else's: it may be slow, gone, full, or answer nonsense. What passes by itself is tried
again a few times; what does not is a typed error, and discovery goes on with its other routes. A text
that it refuses alone gets a vector of zeros, near to nothing, so that it does not hold up all others.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

import httpx
import numpy as np
import structlog

from contracts.errors import ModelMismatch, Unavailable
from contracts.limits import (
    ENDPOINT_ANSWER_BYTES_MAX,
    ENDPOINT_ATTEMPTS_MAX,
    ENDPOINT_BATCH_TEXTS_MAX,
    ENDPOINT_SECONDS_MAX,
    ENDPOINT_TEXT_CHARACTERS_MAX,
)
from discovery import Vectors

VERSION: Final = 1
"""Goes into the model's name: raise it when the same model may give other vectors."""
CONNECT_SECONDS: Final = 5.0
ANSWER_SECONDS: Final = 30.0
BACKOFF_FIRST_SECONDS: Final = 0.5
BACKOFF_MAX_SECONDS: Final = 10.0
"""Also of what the endpoint itself asks to wait."""
_PROBE: Final = "a text"

_PASSES: Final = frozenset({408, 409, 425, 429, 500, 502, 503, 504})
_REFUSES_TEXT: Final = frozenset({400, 413, 422})

log = structlog.get_logger()


def configured_digest(model: str) -> str:
    """Return what names an endpoint's model before it was asked for its dimensions."""
    return f"endpoint.{VERSION}:{model}"


class EndpointEmbedder:
    """
    An `Embedder` over HTTP. Making it asks the endpoint once, for the length of its vectors.

    Args:
        base_url: What stands before `/embeddings`.
        model: Its name at the endpoint. The same name has to mean the same model: vectors of it are compared.
        key: Sent as a bearer token; None for an endpoint that wants none.
        sleep: Waits between two attempts.

    Raises:
        Unavailable: It cannot be reached, or refuses us.
        ModelMismatch: It does not give vectors.
    """

    def __init__(
        self,
        base_url: str,
        *,
        model: str,
        key: str | None,
        answer_seconds: float = ANSWER_SECONDS,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._url = f"{base_url.rstrip('/')}/embeddings"
        self._model = model
        self._answer_seconds = answer_seconds
        self._sleep = sleep
        self._client = httpx.Client(
            headers={} if key is None else {"Authorization": f"Bearer {key}"},
            # A key is not said to whomever the endpoint points at, and no proxy is asked that nobody set.
            follow_redirects=False,
            trust_env=False,
        )
        self.dimensions = 0
        probe = self._ask([_PROBE])
        if probe is None or probe.shape[1] == 0:
            raise ModelMismatch(index_model="vectors", served_model=f"{model} gave none for a plain text")
        self.dimensions = probe.shape[1]
        self.model_digest = f"{configured_digest(model)}:{self.dimensions}"

    def embed(self, texts: Sequence[str]) -> Vectors:
        """
        Return one row of length 1 per text; of zeros for one that the endpoint refuses.

        Raises:
            Unavailable: It cannot be reached, or refuses us.
            ModelMismatch: It gives other vectors than it did.
        """
        result = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        for start in range(0, len(texts), ENDPOINT_BATCH_TEXTS_MAX):
            some = [
                text[:ENDPOINT_TEXT_CHARACTERS_MAX] or " "
                for text in texts[start:][:ENDPOINT_BATCH_TEXTS_MAX]
            ]
            found = self._ask(some)
            if found is None:
                found = np.concatenate([self._alone(text) for text in some])
            result[start : start + len(some)] = found
        return result

    def _alone(self, text: str) -> Vectors:
        found = self._ask([text])
        if found is None:
            log.warning("text_refused_by_endpoint", characters_count=len(text))
            return np.zeros((1, self.dimensions), dtype=np.float32)
        return found

    def _ask(self, texts: list[str]) -> Vectors | None:
        """Return the vectors of texts; None where one of them is refused."""
        reason = ""
        until = time.monotonic() + ENDPOINT_SECONDS_MAX
        for attempt in range(ENDPOINT_ATTEMPTS_MAX):
            wait_seconds = min(BACKOFF_MAX_SECONDS, BACKOFF_FIRST_SECONDS * 2**attempt)
            try:
                status, wanted_seconds, body = self._post(texts, until)
            except httpx.HTTPError as error:
                reason = f"cannot be reached ({type(error).__name__})"
            else:
                if status == httpx.codes.OK:
                    return self._vectors(body, len(texts))
                if status in _REFUSES_TEXT:
                    return None
                reason = f"answered {status}"
                if status not in _PASSES:
                    break
                wait_seconds = min(BACKOFF_MAX_SECONDS, max(wait_seconds, wanted_seconds))
            if time.monotonic() + wait_seconds >= until:
                reason += f", and takes over {ENDPOINT_SECONDS_MAX:g} s"
                break
            if attempt + 1 < ENDPOINT_ATTEMPTS_MAX:
                self._sleep(wait_seconds)
        raise Unavailable(part="embedder", reason=f"the embeddings endpoint {reason}")

    def _post(self, texts: list[str], until: float) -> tuple[int, float, bytes]:
        question = {"model": self._model, "input": texts, "encoding_format": "float"}
        # This is for one read, of which an answer may take many.
        read_seconds = min(self._answer_seconds, max(0.001, until - time.monotonic()))
        timeout = httpx.Timeout(read_seconds, connect=min(CONNECT_SECONDS, read_seconds))
        with self._client.stream("POST", self._url, json=question, timeout=timeout) as answer:
            body = b""
            for part in answer.iter_bytes():
                body += part
                if len(body) > ENDPOINT_ANSWER_BYTES_MAX:
                    raise Unavailable(part="embedder", reason="the embeddings endpoint answers without end")
                if time.monotonic() >= until:
                    raise httpx.ReadTimeout("its parts take too long together")
            return answer.status_code, _seconds(answer.headers.get("Retry-After")), body

    def _vectors(self, body: bytes, count: int) -> Vectors:
        try:
            placed = {int(row["index"]): row["embedding"] for row in json.loads(body)["data"]}
            found = np.array([placed[place] for place in range(count)], dtype=np.float64).reshape(count, -1)
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
            raise Unavailable(
                part="embedder", reason="the answer of the embeddings endpoint cannot be read"
            ) from error
        if self.dimensions and found.shape[1] != self.dimensions:
            raise ModelMismatch(
                index_model=self.model_digest, served_model=f"vectors of {found.shape[1]} numbers"
            )
        lengths = np.linalg.norm(found, axis=1, keepdims=True)
        if not np.isfinite(lengths).all() or not (lengths > 0).all():
            raise Unavailable(
                part="embedder", reason="the embeddings endpoint gave a vector without direction"
            )
        return np.asarray(found / lengths, dtype=np.float32)


def _seconds(value: Any) -> float:  # noqa: ANN401 - a header, or none
    try:
        return max(0.0, float(value))
    except (TypeError, ValueError):
        # A date, or nothing: our own pace.
        return 0.0
