"""
The import rules catch what they are there to catch.

A rule that was never seen to fail may be misspelt. Each one is tried on a skeleton of the packages with
one import planted in it, so the verdict does not depend on what the real packages import today.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.test_tidy import LEDGER_DOORS, PACKAGES, ROOT

PROGRAMS = Path(sys.executable).parent
DECIDING = ("_decide", "_court", "_answers")
"""The modules behind the resolver: the log may not lend them either."""


@pytest.fixture
def skeleton(tmp_path) -> Path:
    shutil.copy2(ROOT / "pyproject.toml", tmp_path)
    for package in PACKAGES:
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").write_text('"""Empty."""\n')
    for door in [*LEDGER_DOORS, *DECIDING]:
        (tmp_path / "ledger" / f"{door}.py").write_text('"""Empty."""\n')
    # What the true packages have: discovery reads events through the door of the log.
    (tmp_path / "discovery" / "_reads.py").write_text('"""Reads."""\n\nimport ledger.log\n')
    return tmp_path


def _linted(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [PROGRAMS / "lint-imports", "--no-cache"], cwd=folder, check=False, capture_output=True, text=True
    )


def test_the_skeleton_breaks_no_rule(skeleton):
    done = _linted(skeleton)

    assert done.returncode == 0, done.stdout
    assert " 0 broken" in done.stdout


@pytest.mark.parametrize(
    ("planted", "statement", "rule"),
    [
        ("discovery/_planted.py", "import ledger.resolve", "Discovery proposes"),
        ("discovery/_planted.py", "from ledger import resolve", "Discovery proposes"),
        ("ledger/log.py", "import ledger.resolve", "Discovery proposes"),
        ("ledger/log.py", "import ledger.write", "Discovery proposes"),
        ("ledger/log.py", "import ledger._decide", "Discovery proposes"),
        ("discovery/_planted.py", "import ledger._court", "Discovery proposes"),
        (
            "discovery/_planted.py",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import ledger.closure",
            "Discovery proposes",
        ),
        ("packing/_planted.py", "import ledger.log", "Packing and realizing are pure"),
        ("realize/_planted.py", "import packing", "Imports point down"),
        ("realize/_planted.py", "import ledger.resolve", "Packing and realizing are pure"),
        ("audit/_planted.py", "import projection", "Audit shares no code"),
        ("audit/_planted.py", "import discovery", "Imports point down"),
        ("ledger/_planted.py", "import audit", "Imports point down"),
        ("contracts/_planted.py", "import ledger.log", "Imports point down"),
        ("discovery/_planted.py", "import fastapi", "Web, CLI and settings libraries"),
        ("ledger/_planted.py", "import pydantic_settings", "Web, CLI and settings libraries"),
        ("audit/_planted.py", "import httpx", "HTTP transports"),
        ("ledger/_planted.py", "import faststream", "The broker library"),
        ("contracts/_planted.py", "import sqlalchemy", "Contracts are values"),
    ],
)
def test_a_planted_import_breaks_its_rule(skeleton, planted, statement, rule):
    with (skeleton / planted).open("a") as file:
        file.write(f"{statement}\n")

    done = _linted(skeleton)

    assert done.returncode == 1
    _, _, broken = done.stdout.partition("Broken contracts")
    assert f"\n{rule}" in broken, done.stdout


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("from ledger._secret import name", "PLC2701"),
        ("import os\n\nHOME = os.environ", "TID251"),
        ("import os\n\nHOME = os.getenv('HOME')", "TID251"),
        ("from datetime import UTC, datetime\n\nNOW = datetime.now(UTC)", "TID251"),
    ],
)
def test_a_planted_line_is_refused_by_the_linter(skeleton, statement, code):
    (skeleton / "audit" / "_planted.py").write_text(f'"""Planted."""\n\n{statement}\n')

    done = subprocess.run(
        [PROGRAMS / "ruff", "check", "--no-cache", "--output-format", "json", "audit"],
        cwd=skeleton,
        check=False,
        capture_output=True,
        text=True,
    )

    assert done.returncode == 1
    assert code in done.stdout
