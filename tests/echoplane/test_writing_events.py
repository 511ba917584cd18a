"""The examples of docs/writing-events.md come to what they say."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from contracts.errors import Incorrect
from contracts.events import EventDraft
from contracts.grants import LOCAL_GRANT
from contracts.relation_wire import ContractRequest
from echoplane import _reads
from echoplane._cli_ask import print_resolution
from echoplane._cli_reads import print_occurrences
from echoplane._requests import read_view
from ledger.write import fold, register_contract
from projection import RuleProjector

PAGE = Path(__file__).parents[2] / "docs" / "writing-events.md"
SECTIONS = {
    part.split("\n", 1)[0]: re.findall(r"^```(\S+(?: \S+)?)\n(.*?)^```$", part, re.MULTILINE | re.DOTALL)
    for part in PAGE.read_text(encoding="utf-8").split("\n## ")[1:]
}


async def append(plane, line):
    draft = EventDraft.model_validate_json(line)
    await plane.append("docs", [draft], grant=LOCAL_GRANT, expected_version=None)


async def answered(plane, command, capsys):
    """Run what stands behind the `$`, and return what it prints."""
    name, entity, relation, *options = shlex.split(command.removeprefix("$ echoplane "))
    at = options[1] if options else None
    assert options == ([] if at is None else ["--valid-at", at])
    view = read_view(valid_at=at, known_at=None, generation=None, min_commit=None)
    if name == "resolve":
        print_resolution(await plane.resolve("docs", entity, relation, view))
        return capsys.readouterr().out.splitlines()[:1]
    assert name == "occurrences"
    wanted = _reads.OccurrencesWanted(entity=entity, relation=relation, valid_from=None, valid_to=None)
    print_occurrences(await _reads.occurrences(plane, "docs", view, wanted))
    return capsys.readouterr().out.splitlines()


async def run_block(plane, kind, text, capsys):
    lines = text.splitlines()
    match kind:
        case "json contract":
            contract = ContractRequest.model_validate_json(text).contract()
            await register_contract(
                plane.database, "docs", contract, stream="c", actor_id="op", grant=LOCAL_GRANT
            )
        case "jsonl":
            for line in lines:
                await append(plane, line)
            while not (await fold(plane.database, "docs", RuleProjector(), events_max=100)).is_at_head:
                pass
        case "jsonl refused":
            for line in lines:
                with pytest.raises(Incorrect):
                    await append(plane, line)
        case "console":
            for number, line in enumerate(lines):
                if line.startswith("$"):
                    found = await answered(plane, line, capsys)
                    assert found == lines[number + 1 : number + 1 + len(found)], line
        case _:
            pytest.fail(f"no example is of this kind: {kind}")


@pytest.mark.parametrize("title", SECTIONS)
async def test_the_examples_come_to_what_they_say(plane, capsys, title):
    await plane.make_tenant("docs")

    for kind, text in SECTIONS[title]:
        await run_block(plane, kind, text, capsys)


def test_every_field_of_an_event_stands_on_the_page():
    page = PAGE.read_text(encoding="utf-8")
    schema = EventDraft.model_json_schema(by_alias=True)
    models = [schema, *schema["$defs"].values()]
    fields = {name for model in models for name in model.get("properties", {})}

    assert {"occurrence_id", "interval", "precision", "class", "winner"} <= fields
    assert [name for name in sorted(fields) if f'"{name}"' not in page and f"`{name}`" not in page] == []
