"""
The demonstration: the whole plane, on two small logs of ours, in a data folder of its own.

It runs the real role processes, asks through the API as any client would, and holds every answer
against what is expected of it.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import socket
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

import httpx

from contracts import limits
from contracts.grants import LOCAL_GRANT
from contracts.wire import AskAnswer, ReplayAnswer
from echoplane._cli_options import print_json, print_line
from echoplane._embedded import find_servers
from echoplane._emit import emit, read_lines
from echoplane._folders import DataFolder
from echoplane._plane import ensure_supervisor, stop_plane
from echoplane._settings import Settings, read_settings
from echoplane._state import Mode
from echoplane._wiring import Plane, open_plane

LOGS: Final = {"demo-chat": "conversation.jsonl", "demo-robot": "robot.jsonl"}
READY_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shown:
    tenant: str
    answer: AskAnswer
    met: bool


async def run_demo(data_dir: Path | None, *, as_json: bool) -> bool:
    """Run it and print it; true if every expectation was met."""
    started = time.perf_counter()
    root = Path(tempfile.mkdtemp(prefix="echoplane-demo-")) if data_dir is None else data_dir
    settings = read_settings(data_dir=root, http_port=_free_port())
    say = _silent if as_json else print_line
    try:
        say("echoplane demo: embedded PostgreSQL and Redis, a worker, discovery and an API, as processes")
        await ensure_supervisor(settings, mode=Mode.UP)
        servers = await find_servers(settings)
        assert servers is not None
        async with open_plane(settings, servers, wait_ms=limits.WAIT_MS_MAX) as plane:
            say(f"  started in {time.perf_counter() - started:.1f} s, data in {root}")
            met = await _show(plane, settings, say, as_json=as_json)
    finally:
        await stop_plane(settings)
        if data_dir is None:
            DataFolder.at(root).discard()
            shutil.rmtree(root, ignore_errors=True)
    say(f"\n{'All expectations met' if met else 'EXPECTATIONS NOT MET'}, everything stopped, "
        f"{time.perf_counter() - started:.1f} s.")  # fmt: skip
    return met


async def _show(plane: Plane, settings: Settings, say: Any, *, as_json: bool) -> bool:  # noqa: ANN401
    recorded: dict[str, dict[str, str]] = {}
    for tenant, name in LOGS.items():
        recorded[tenant] = await _bring_in(plane, tenant, name, say)
    questions = json.loads(_text("questions.json"))
    async with _client(settings, plane.local_token) as client:
        await _wait_ready(client)
        shown = []
        for number, question in enumerate(questions, start=1):
            one = await _ask(client, question, recorded[question["tenant"]])
            shown.append(one)
            if as_json:
                print_json(one.answer)
            else:
                _print(number, question, one)
        replayed = [await _replay(client, one) for one in shown]
    verdicts = {verdict: replayed.count(verdict) for verdict in sorted(set(replayed))}
    counted = ", ".join(f"{count} {word}" for word, count in verdicts.items())
    say(f"\nReplayed all {len(shown)} contexts: {counted}")
    intact = True
    for tenant in LOGS:
        report = await plane.verify(tenant)
        intact = intact and report.ok
        say(f"Verified {tenant}: chain of {report.commits} commits {'intact' if report.ok else 'BROKEN'}, "
            f"head {report.head[:16]}…")  # fmt: skip
    return intact and set(replayed) == {"identical"} and all(one.met for one in shown)


async def _bring_in(plane: Plane, tenant: str, name: str, say: Any) -> dict[str, str]:  # noqa: ANN401
    """Emit one log, wait for its fold, and return when each source event was recorded."""
    started = time.perf_counter()
    await plane.make_tenant(tenant)

    async def append(drafts: Any) -> Any:  # noqa: ANN401 - as `plane.append` has it
        return await plane.append(tenant, drafts, grant=LOCAL_GRANT, expected_version=None)

    recorded = {}
    commit = 0
    lines = read_lines(_text(name).encode())
    async for line, receipt in emit(lines, append, keeps_order=partial(plane.keeps_order, tenant)):
        recorded[f"{line.draft.stream}/{line.draft.source_event_id}"] = receipt.recorded_at
        commit = receipt.commit
    emitted = time.perf_counter()
    standing = await plane.wait_folded(tenant, commit)
    say(
        f"  {tenant}: {len(recorded)} events in {emitted - started:.2f} s, "
        f"folded to commit {standing.cursor} in {time.perf_counter() - emitted:.2f} s more"
    )
    return recorded


async def _ask(client: httpx.AsyncClient, question: Mapping[str, Any], recorded: Mapping[str, str]) -> _Shown:
    known_at = question["known_at"]
    if isinstance(known_at, dict):
        known_at = recorded[known_at["after_source_event"]]
    body = {"question": question["question"], "valid_at": question["valid_at"], "known_at": known_at}
    response = await client.post(f"/v1/{question['tenant']}/ask", json=body)
    response.raise_for_status()
    answer = AskAnswer.model_validate_json(response.content)
    expected = question["expect"]
    met = answer.status == expected["status"] and _same(answer.answer, expected["answer"])
    return _Shown(tenant=question["tenant"], answer=answer, met=met)


def _same(given: Any, expected: Any) -> bool:  # noqa: ANN401 - answers are any JSON
    return expected is None or str(given) == str(expected)


async def _replay(client: httpx.AsyncClient, one: _Shown) -> str:
    response = await client.post(f"/v1/{one.tenant}/contexts/{one.answer.context.hash}/replay")
    response.raise_for_status()
    return ReplayAnswer.model_validate_json(response.content).verdict


def _print(number: int, question: Mapping[str, Any], one: _Shown) -> None:
    answer = one.answer
    when = [f"valid {question['valid_at']}"] if question["valid_at"] else []
    if question["known_at"]:
        when.append(f"as known after {question['known_at']['after_source_event']}")
    print_line(f"\n{number}. {question['question']}" + (f"   [{', '.join(when)}]" if when else ""))
    value = "" if answer.answer is None else f": {answer.answer}"
    print_line(f"   {answer.status.upper()}{value}" + (f"  ({answer.reason})" if answer.reason else ""))
    print_line(f"   {question['why']}")
    lines = [line for line in answer.context.lines if line.id in answer.cites] or answer.context.lines[:3]
    for line in lines[:5]:
        print_line(f"     {line.id:>5}  {line.observed_at:<25}  {line.mark:<10}  {line.text}")
    rest = len(answer.context.lines) - len(lines[:5])
    if rest:
        print_line(f"            and {rest} more lines of evidence")
    print_line(
        f"     cut {answer.view.cut}, epoch {answer.view.epoch}, context {answer.context.hash[:16]}…, "
        f"content {answer.context.content_hash[:16]}…, {answer.context.tokens} tokens"
    )
    if not one.met:
        expected = question["expect"]
        print_line(f"   EXPECTED {expected['status']}: {expected['answer']}")


def _client(settings: Settings, token: str) -> httpx.AsyncClient:
    return httpx.AsyncClient(
        base_url=f"http://127.0.0.1:{settings.http_port}",
        headers={"authorization": f"Bearer {token}"},
        timeout=30,
        # A proxy of the environment must not see a request to this machine.
        trust_env=False,
    )


async def _wait_ready(client: httpx.AsyncClient) -> None:
    """Wait until the API answers and discovery is there; without discovery the demo shows less."""
    deadline = time.monotonic() + READY_SECONDS
    while time.monotonic() < deadline:
        try:
            parts = (await client.get("/readyz")).json()["parts"]
            if parts.get("discovery") == "ok" and parts.get("database") == "ok":
                return
        except httpx.TransportError:
            pass
        await asyncio.sleep(0.1)


def _text(name: str) -> str:
    return (files("echoplane") / "demo" / name).read_text(encoding="utf-8")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _silent(_text: str = "") -> None:
    """Say nothing: the output is JSON."""
