"""From an append to what is visible, in spans that link to the commit and quote nothing."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import opentelemetry.trace
import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import echoplane._traces
import projection._traces
from contracts.errors import BadRequest
from contracts.traces import commit_link
from echoplane._settings import Settings
from echoplane._traces import exporting, span
from ledger import log
from projection import RuleProjector, run_projection

SECRET = "Zanzibar"


@pytest.fixture
def spans(monkeypatch):
    """What every tracer of this process makes, those of libraries too."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(opentelemetry.trace, "_TRACER_PROVIDER", provider)
    for module in (echoplane._traces, projection._traces):
        monkeypatch.setattr(module, "_tracer", provider.get_tracer("echoplane"))
    yield exporter.get_finished_spans
    provider.shutdown()


def commits_of(found):
    return [one.attributes["echoplane.commit"] for one in found.links]


async def test_append_relay_and_fold_link_to_the_same_commits_and_quote_nothing(client, plane, spans, turn):
    await client.put("/v1/home")
    for number in range(3):
        event = turn(f"I live in {SECRET}.", source_event_id=f"{SECRET}-{number}")
        assert (await client.post("/v1/home/events", json={"events": [event]})).status_code == 201
    await client.get(f"/v1/home/resolve?entity={SECRET}&relation={SECRET}")

    stop = asyncio.Event()
    relaying = asyncio.create_task(
        run_projection(plane.database, plane.servers.redis_url, RuleProjector(), consumer="traced", stop=stop)
    )
    async with asyncio.timeout(60):
        while await log.pending(plane.database):
            await asyncio.sleep(0.02)
    stop.set()
    await relaying

    found = {name: [one for one in spans() if one.name == name] for name in ("append", "relay", "fold")}
    assert [commits_of(one) for one in found["append"]] == [[1], [2], [3]]
    assert commits_of(found["relay"][0]) == [3]
    assert sorted(commit for one in found["fold"] for commit in commits_of(one)) == [1, 2, 3]
    for one in spans():
        for link in one.links:
            made = commit_link("home", link.attributes["echoplane.commit"])
            assert (link.context.trace_id, link.context.span_id) == (made.trace_id, made.span_id)
        assert SECRET.lower() not in one.to_json().lower()
    assert {one.name for one in spans()} == {"append", "relay", "fold"}


def test_an_error_is_named_in_a_span_and_not_quoted(spans):
    with pytest.raises(ValueError, match=SECRET), span("append"):
        raise ValueError(SECRET)

    (found,) = spans()
    assert found.attributes["error.type"] == "ValueError"
    assert SECRET not in found.to_json()


def test_without_the_setting_nothing_that_exports_is_loaded():
    code = (
        "import sys, echoplane._role_api, echoplane._role_worker, echoplane._traces as t;"
        "from echoplane._settings import Settings\n"
        "with t.exporting(Settings(), role='api'), t.span('append') as one: assert not one.is_recording()\n"
        "assert not [name for name in sys.modules if name.startswith('opentelemetry.exporter')]"
    )

    subprocess.run([sys.executable, "-c", code], check=True)


def test_spans_that_nothing_can_send_are_refused_with_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    settings = Settings(data_dir=tmp_path, traces_url="http://127.0.0.1:4318/v1/traces")

    with pytest.raises(BadRequest, match="echoplane\\[traces\\]"), exporting(settings, role="api"):
        pass
