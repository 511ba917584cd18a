"""The docs list everything that a caller can set, call or be answered; the schemas are current."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from typer.main import get_command

from contracts import errors, limits
from contracts.errors import EchoplaneError
from contracts.limits import (
    CLOSURE_EVENTS_MAX,
    DIFF_CAUSES_MAX,
    DIFF_CHANGES_MAX,
    EXTRACTED_CLAIMS_MAX,
    HISTORY_CELLS_MAX,
    JOIN_PAIRS_MAX,
    LISTED_CLAIMS_MAX,
    LISTED_VALUES_MAX,
)
from contracts.wire import SCHEMAS
from discovery._degraded import CLAIMS_READ_MAX
from echoplane._cli import app
from echoplane._failures import EXIT_CODES, HTTP_STATUSES, exit_code, http_status
from echoplane._http_events import EVENT_PARAMETERS
from echoplane._http_lists import LIST_PARAMETERS
from echoplane._http_log import LOG_PARAMETERS
from echoplane._http_reads import PARAMETERS
from echoplane._http_routes import make_router
from echoplane._http_trails import TRAIL_PARAMETERS
from echoplane._settings import Settings
from ledger._piece import PIECE_CLAIMS_MAX
from ledger._problems import PROBLEMS_LISTED_MAX
from ledger._verify_cells import CUTS_MAX, CUTS_MIN

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
ERRORS = sorted(
    (kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, EchoplaneError)),
    key=lambda kind: kind.__name__,
)


def page(name):
    return (DOCS / name).read_text(encoding="utf-8")


def bare(kind):
    return kind.__new__(kind)


def test_every_setting_is_listed():
    missing = [f for f in Settings.model_fields if f"`ECHOPLANE_{f.upper()}`" not in page("cli.md")]

    assert missing == []


def test_every_route_is_listed():
    listed = page("http.md")
    routes = make_router(None, None, None).routes

    missing = [
        f"{method} {route.path}"
        for route in routes
        for method in route.methods
        if f"`{method} {route.path}`" not in listed
    ]
    assert len(routes) >= 11
    assert missing == []


def test_every_query_parameter_is_listed():
    models = (*PARAMETERS, *LOG_PARAMETERS, *EVENT_PARAMETERS, *LIST_PARAMETERS, *TRAIL_PARAMETERS)
    names = {name for model in models for name in model.model_fields}

    assert [name for name in names if f"`{name}`" not in page("http.md")] == []


def test_every_command_and_option_is_listed():
    listed = page("cli.md")
    missing = []
    for path, command in commands(get_command(app)):
        if f"`{path}" not in listed:
            missing.append(path)
        for parameter in command.params:
            missing += [
                f"{path} {option}"
                for option in parameter.opts
                if option.startswith("--") and option != "--help" and option not in listed
            ]
    assert missing == []


def commands(group, prefix=""):
    for name, command in group.commands.items():
        if command.hidden:
            continue
        if hasattr(command, "commands"):
            yield from commands(command, f"{prefix}{name} ")
        else:
            yield f"{prefix}{name}", command


@pytest.mark.parametrize("kind", [kind for kind in ERRORS if kind is not EchoplaneError])
def test_every_error_has_a_status_an_exit_code_and_a_line_in_the_docs(kind):
    error = bare(kind)

    assert f"| {http_status(error)} | `{kind.code}` |" in page("http.md")
    assert f"| {exit_code(error)} | `{kind.code.split('.')[0]}` |" in page("cli.md")


def test_no_class_is_hidden_behind_an_earlier_line_of_the_tables():
    for table in (EXIT_CODES, HTTP_STATUSES):
        classes = [kind for kind, _ in table]
        for index, kind in enumerate(classes):
            assert not any(issubclass(kind, earlier) for earlier in classes[:index])


def test_every_limit_is_listed_with_its_value():
    bounds = {name: value for name, value in vars(limits).items() if name.isupper()}

    missing = [name for name, value in bounds.items() if f"| `{name}` | {value:,} |" not in page("limits.md")]
    assert missing == []


def test_what_is_cut_is_listed_with_its_value():
    """Whoever changes one of these changes the page."""
    cut = page("limits.md").split("## What is cut")[1]

    assert (
        LISTED_CLAIMS_MAX, LISTED_VALUES_MAX, PIECE_CLAIMS_MAX, CLOSURE_EVENTS_MAX,
        EXTRACTED_CLAIMS_MAX, CLAIMS_READ_MAX, CUTS_MAX, CUTS_MIN, PROBLEMS_LISTED_MAX, HISTORY_CELLS_MAX,
        JOIN_PAIRS_MAX, DIFF_CHANGES_MAX, DIFF_CAUSES_MAX,
    ) == (32, 1_000, 256, 64, 64, 50_000, 64, 8, 100, 10_000, 10_000, 1_000, 64)  # fmt: skip
    assert all(f"{bound:,}" in cut for bound in (32, 256, 1_000, 100, 64, 50_000, 8, 10_000))
    assert "cut silently" not in page("limits.md")


@pytest.mark.parametrize("folder", [ROOT, DOCS])
def test_every_page_can_be_reached(folder):
    """From the README every page of the docs, and every link leads somewhere."""
    named = set(re.findall(r"\]\((?:docs/)?([a-z-]+\.md)", (ROOT / "README.md").read_text(encoding="utf-8")))
    for text in folder.glob("*.md"):
        for link in re.findall(r"\]\(([^)#:]+)", text.read_text(encoding="utf-8")):
            assert (folder / link).exists(), (text.name, link)

    assert {path.name for path in DOCS.glob("*.md")} == named


@pytest.mark.parametrize("name", SCHEMAS)
def test_the_schemas_in_the_docs_are_current(name):
    """`echoplane schemas docs/schemas` writes them anew."""
    stored = json.loads((DOCS / "schemas" / f"{name}.json").read_text(encoding="utf-8"))

    assert stored == SCHEMAS[name].model_json_schema(by_alias=True)


def test_there_is_no_schema_of_nothing():
    assert {path.stem for path in (DOCS / "schemas").iterdir()} == set(SCHEMAS)


def test_every_page_that_a_page_links_to_is_there():
    broken = []
    for path in [ROOT / "README.md", *DOCS.glob("*.md")]:
        for part in path.read_text(encoding="utf-8").split("](")[1:]:
            target = part.split(")")[0].split("#")[0]
            if target and "://" not in target and not (path.parent / target).exists():
                broken.append(f"{path.name}: {target}")
    assert broken == []
