"""
Any OpenAI-compatible `/chat/completions` endpoint as a language model.

It is somebody else's: it may be slow, gone, full, or answer nonsense. What passes by itself is tried
again within one deadline; everything else is a failure with a name, and never an empty answer.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Awaitable, Callable
from typing import Any, Final

import httpx
from pydantic import SecretStr

from contracts.limits import MODEL_ANSWER_BYTES_MAX, MODEL_ATTEMPTS_MAX, MODEL_TOKENS_MAX
from contracts.models import ModelFailed, ModelFailure, ModelOutput, Prompt
from echoplane._settings import Settings

CONNECT_SECONDS: Final = 5.0
BACKOFF_FIRST_SECONDS: Final = 0.5
BACKOFF_MAX_SECONDS: Final = 10.0
"""Also of what the endpoint itself asks to wait."""

_PASSES: Final = frozenset({408, 409, 425, 429, 500, 502, 503, 504})
_OPTIONS: Final[dict[str, Any]] = {
    "temperature": 0, "top_p": 1, "seed": 0, "n": 1, "stream": False, "max_tokens": MODEL_TOKENS_MAX,
}  # fmt: skip


class ChatModel:
    """
    A `LanguageModel` over HTTP.

    Args:
        base_url: What stands before `/chat/completions`.
        name: The model's name there. An answer that names another is a failure: a model is pinned.
        key: Sent as a bearer token; None for an endpoint that wants none.
        answer_seconds: For one prompt, all attempts together.
        sleep: Waits between two attempts.
    """

    def __init__(
        self,
        base_url: str,
        *,
        name: str,
        key: str | None,
        answer_seconds: float,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.name = name
        self.digest = hashlib.sha256(json.dumps([name, _OPTIONS], sort_keys=True).encode()).hexdigest()
        self._url = f"{base_url.rstrip('/')}/chat/completions"
        self._answer_seconds = answer_seconds
        self._sleep = sleep
        self._client = httpx.AsyncClient(
            headers={} if key is None else {"Authorization": f"Bearer {key}"},
            # One deadline holds for all attempts together.
            timeout=httpx.Timeout(None, connect=CONNECT_SECONDS),
            # A key is not said to whomever the endpoint points at, and no proxy is asked that nobody set.
            follow_redirects=False,
            trust_env=False,
        )

    async def close(self) -> None:
        """Close its connections."""
        await self._client.aclose()

    async def complete(self, prompt: Prompt) -> ModelOutput:
        """Return what it says; see the port."""
        attempts = 0
        failure = ModelFailure.UNREACHABLE
        try:
            async with asyncio.timeout(self._answer_seconds):
                while attempts < MODEL_ATTEMPTS_MAX:
                    attempts += 1
                    wait_seconds = BACKOFF_FIRST_SECONDS * 2 ** (attempts - 1)
                    try:
                        status, wanted_seconds, body = await self._post(prompt, attempts)
                    except httpx.HTTPError:
                        failure = ModelFailure.UNREACHABLE
                    else:
                        if status == httpx.codes.OK:
                            return self._read(body, attempts)
                        if status not in _PASSES:
                            raise ModelFailed(failure=ModelFailure.REJECTED, attempts=attempts)
                        failure = ModelFailure.OVERLOADED
                        wait_seconds = max(wait_seconds, wanted_seconds)
                    if attempts < MODEL_ATTEMPTS_MAX:
                        await self._sleep(min(BACKOFF_MAX_SECONDS, wait_seconds))
        except TimeoutError:
            failure = ModelFailure.TIMEOUT
        raise ModelFailed(failure=failure, attempts=attempts)

    async def _post(self, prompt: Prompt, attempts: int) -> tuple[int, float, bytes]:
        asked = {
            "model": self.name,
            "messages": [
                {"role": "system", "content": prompt.system},
                {"role": "user", "content": prompt.user},
            ],
            **_OPTIONS,
        }
        async with self._client.stream("POST", self._url, json=asked) as answer:
            body = b""
            async for part in answer.aiter_bytes():
                body += part
                if len(body) > MODEL_ANSWER_BYTES_MAX:
                    raise ModelFailed(failure=ModelFailure.TOO_LONG, attempts=attempts)
            return answer.status_code, _seconds(answer.headers.get("Retry-After")), body

    def _read(self, body: bytes, attempts: int) -> ModelOutput:
        def failed(failure: ModelFailure, output: str | None) -> ModelFailed:
            return ModelFailed(failure=failure, attempts=attempts, output=output)

        raw = body.decode("utf-8", errors="replace")
        try:
            answer = json.loads(body)
            (choice,) = answer["choices"]
            message, reason = choice["message"], choice.get("finish_reason")
            text, refusal, model = message.get("content"), message.get("refusal"), answer.get("model")
            usage = answer.get("usage") or {}
            counts = usage.get("prompt_tokens"), usage.get("completion_tokens")
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise failed(ModelFailure.MALFORMED, raw) from error
        if refusal or reason == "content_filter":
            raise failed(ModelFailure.REFUSAL, raw)
        if model is not None and model != self.name:
            raise failed(ModelFailure.OTHER_MODEL, raw)
        if reason == "length":
            raise failed(ModelFailure.CUT_OFF, raw)
        if text is None or (isinstance(text, str) and not text.strip()):
            raise failed(ModelFailure.EMPTY, raw)
        if not isinstance(text, str) or "\0" in text or any("\ud800" <= c <= "\udfff" for c in text):
            raise failed(ModelFailure.MALFORMED, raw)
        prompt_tokens, output_tokens = (count if type(count) is int else None for count in counts)
        return ModelOutput(
            text=text,
            model=model,
            attempts=attempts,
            prompt_tokens=prompt_tokens,
            output_tokens=output_tokens,
        )


def configured_reader(settings: Settings) -> ChatModel | None:
    """Return the reader that is set; None where there is none."""
    return _configured(settings, settings.reader_url, settings.reader_model, settings.reader_key)


def configured_judge(settings: Settings) -> ChatModel | None:
    """Return the judge that is set; None where there is none."""
    return _configured(settings, settings.judge_url, settings.judge_model, settings.judge_key)


def _configured(settings: Settings, url: str | None, name: str, key: SecretStr | None) -> ChatModel | None:
    if url is None:
        return None
    bearer = None if key is None else key.get_secret_value()
    return ChatModel(url, name=name, key=bearer, answer_seconds=settings.reader_seconds)


def _seconds(value: str | None) -> float:
    try:
        return max(0.0, float(value or 0))
    except ValueError:
        # A date: our own pace.
        return 0.0
