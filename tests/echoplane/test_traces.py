"""From an append to what is visible, in spans that link to the commit and quote nothing."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import types

import opentelemetry.trace
import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import projection._traces
from contracts.traces import commit_link
from echoplane._settings import Settings
from echoplane._traces import exporting
from ledger import log
from projection import RuleProjector, run_projection, span

SECRET = "Zanzibar"


@pytest.fixture
def spans(monkeypatch):
    """What every tracer of this process makes, those of libraries too."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(opentelemetry.trace, "_TRACER_PROVIDER", provider)
    monkeypatch.setattr(projection._traces, "_tracer", provider.get_tracer("echoplane"))
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
        "import asyncio, sys, echoplane._role_api, echoplane._role_worker, echoplane._traces as t;"
        "from echoplane._settings import Settings; from projection import span\n"
        "async def run():\n"
        "    async with t.exporting(Settings(), role='api'):\n"
        "        with span('append') as one: assert not one.is_recording()\n"
        "asyncio.run(run())\n"
        "assert not [name for name in sys.modules if name.startswith('opentelemetry.exporter')]"
    )

    subprocess.run([sys.executable, "-c", code], check=True)


async def test_what_takes_the_last_spans_too_slowly_is_not_waited_for(monkeypatch, tmp_path):
    """A collector that hangs holds up neither the loop nor the end of the process."""
    hangs = threading.Event()

    class Hangs(InMemorySpanExporter):
        def shutdown(self):
            assert hangs.wait(60)

    module = types.ModuleType("opentelemetry.exporter.otlp.proto.http.trace_exporter")
    module.OTLPSpanExporter = lambda endpoint: Hangs()
    for name in ("exporter", "exporter.otlp", "exporter.otlp.proto", "exporter.otlp.proto.http"):
        monkeypatch.setitem(sys.modules, f"opentelemetry.{name}", types.ModuleType(name))
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(opentelemetry.trace, "set_tracer_provider", lambda provider: None)
    monkeypatch.setattr("echoplane._traces.END_SECONDS", 0.05)
    settings = Settings(data_dir=tmp_path).model_copy(update={"traces_url": "http://collector"})

    async with exporting(settings, role="api"):
        pass

    left = [thread for thread in threading.enumerate() if thread.name == "last spans"]
    assert [thread.daemon for thread in left] == [True]
    hangs.set()
    left[0].join()
