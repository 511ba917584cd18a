"""The HTTP door: it says nothing of content to logs and metrics, describes itself, and has bounds."""

from __future__ import annotations

import io

import pytest

from contracts import limits
from echoplane._logging import configure_logging
from tests.echoplane.test_http import code_of


@pytest.fixture
def logged(monkeypatch):
    """What is written to the log."""
    written = io.StringIO()
    monkeypatch.setattr("sys.stderr", written)
    configure_logging("debug")
    return written.getvalue


async def test_no_content_no_id_and_no_query_is_logged_or_measured(client, home, logged):
    secret = "Zanzibar"
    await client.get(f"/v1/home/resolve?entity={secret}&relation={secret}")
    await client.post("/v1/home/ask", json={"question": f"Who likes {secret}?"})
    await client.post("/v1/home/events", json={"events": [{"text": secret, secret: secret}]})
    await client.get(f"/{secret}?{secret}={secret}")
    await client.request(secret.upper(), "/v1/home/resolve")

    del client.headers["authorization"]
    measured = (await client.get("/metrics")).text
    assert logged().count('"event": "request"') >= 4
    assert "/v1/{tenant}/resolve" in logged()
    for text in (logged(), measured):
        assert secret.lower() not in text.lower()
        assert "home" not in text
        assert home[0].event_ids[0] not in text


async def test_the_api_describes_itself(client):
    document = (await client.get("/openapi.json")).json()

    assert "/v1/{tenant}/ask" in document["paths"]
    for schema in ("AskRequest", "AppendRequest", "AskAnswer", "ErrorAnswer"):
        assert schema in document["components"]["schemas"]


async def test_limits_of_a_question_hold(client, home):
    too_long = "x" * (limits.QUESTION_CHARACTERS_MAX + 1)
    wrong = [
        {"question": too_long},
        {"question": ""},
        {"question": "x", "budget": 0},
        {"question": "x", "y": 1},
    ]

    answers = [await client.post("/v1/home/ask", json=body) for body in wrong]

    assert [await code_of(answer) for answer in answers] == [(422, "incorrect.bad_request")] * 4


async def test_a_version_that_no_stream_can_have_is_refused(client, home):
    event = {"stream": "s", "kind": "turn", "actor": {"id": "Ann", "class": "user"}, "text": "Hello."}

    answer = await client.post("/v1/home/events", json={"events": [event], "expected_version": 10**40})

    assert await code_of(answer) == (422, "incorrect.bad_request")
