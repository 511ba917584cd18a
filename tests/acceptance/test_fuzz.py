"""
Whatever is sent to the API, it says what was wrong and has written nothing, or it has done all of it.

Requests are drawn from the OpenAPI document, as it allows them and as it does not. What was accepted is
folded, so that nothing that the door lets in can stop a tenant.
"""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import quote

import pytest
import requests
import schemathesis
from hypothesis import strategies as st
from schemathesis import GenerationMode

from tests.acceptance.fuzzing import Target, drawn, is_sound

BASE: Final = "http://127.0.0.1:7415"
STOPPING: Final = {
    "delete /v1/{tenant}": "deleted", "post /v1/{tenant}/suspend": "suspended",
    "put /v1/{tenant}/quota": "bounded", "put /v1/{tenant}/retention": "retained",
}  # fmt: skip
"""Operations after which a tenant takes nothing any more, and a tenant for each."""


HOSTILE: Final = (
    "9" * 30,
    "-1",
    "\0",
    "0001-01-01T00:00:00+14:00",
    "1:" + "9" * 30,
    "\u0661",
    "x" * 9_000,
    "",
)
"""Put in the place of each parameter: each was, somewhere, somebody's undoing."""


async def test_no_parameter_can_be_what_breaks_what_reads_it(door, target: Target):
    needed = {
        "tenant": door.tenant, "epoch": "1", "position": "1", "name": "monday", "event_id": "ev_1",
        "context_hash": "0" * 64, "entity": "Ann", "relation": "lives_in", "other_entity": "Ann",
        "other_relation": "likes", "commit": "1", "size": "1", "old_size": "1",
    }  # fmt: skip
    for path, operations in target.app.openapi()["paths"].items():
        for method, operation in operations.items():
            parameters = operation.get("parameters", [])
            names = {one["name"] for one in parameters if one["in"] == "query"}
            given = {one["name"]: needed[one["name"]] for one in parameters if one["required"]}
            for name in (one["name"] for one in parameters):
                for hostile in HOSTILE:
                    values = {key: quote(value, safe="") for key, value in (given | {name: hostile}).items()}
                    query = "&".join(f"{key}={value}" for key, value in values.items() if key in names)
                    where = f"{path.format(**values)}?{query}".rstrip("?")
                    answer = await target.call(method.upper(), where, b"", {})
                    await target.judge(answer, f"{method} {where:.200}")
    print(target.counts)
    assert min(target.counts[status] for status in ("200", "404", "422")) > 10
    await is_sound(door)


@pytest.mark.parametrize("examples", [4, pytest.param(60, marks=pytest.mark.slow)])
@pytest.mark.timeout(1_800)
async def test_no_request_that_the_document_allows_or_forbids_is_a_fault_or_half_done(
    door, target: Target, examples
):
    document = target.app.openapi()
    page = await door.call("GET", "/events", params={"limit": 1})
    known = {
        "tenant": door.tenant, "epoch": "1", "position": "1", "name": "monday", "entity": "Ann",
        "relation": "lives_in", "commit": "1", "size": "1", "old_size": "1", "limit": "1",
        "event_id": page["events"][0]["event_id"],
    }  # fmt: skip
    schema = schemathesis.openapi.from_dict(document)

    async def tried(case: Any) -> None:
        sending = case.as_transport_kwargs(base_url=BASE)
        request = requests.Request(
            **{name: sending.get(name) for name in ("method", "url", "headers", "params", "data", "json")}
        ).prepare()
        body = request.body or b""
        answer = await target.call(
            request.method, request.path_url, body.encode() if isinstance(body, str) else body,
            {name: str(value) for name, value in request.headers.items()},
        )  # fmt: skip
        await target.judge(answer, f"{request.method} {request.path_url} {body!r:.2000}")

    for result in schema.get_all_operations():
        operation = result.ok()
        own = STOPPING.get(f"{operation.method} {operation.path}", door.tenant)
        await door.plane.make_tenant(own)
        target.written = target.digest()
        aimed = known | {"tenant": own}
        path = {one.name: aimed[one.name] for one in operation.path_parameters if one.name in aimed}
        where = (path, {"tenant": own} if path else {}, {})
        strategies = [
            operation.as_strategy(generation_mode=mode, path_parameters=fixed)
            for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE) for fixed in where
        ]  # fmt: skip
        await drawn(st.one_of(strategies), tried, examples=examples)
        await door.fold()
    print(target.counts)
    assert min(target.counts[status] for status in ("200", "404", "422")) > 10
    await is_sound(door)
