"""What the page on audit tells a stranger to run checks real bundles, and finds what was turned."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from audit import GateRegister, check_bundle, check_gate
from tests.audit.bundles import bundle

ROOT = Path(__file__).resolve().parents[2]
ARTIFACTS = ROOT / "artifacts"
SHIPPED = sorted(path.parent for path in ARTIFACTS.glob("*/manifest.json"))


@pytest.fixture(scope="module")
def script(tmp_path_factory):
    (text,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "audit.md").read_text(), flags=re.DOTALL)
    path = tmp_path_factory.mktemp("stranger") / "check.py"
    path.write_text(text)
    return path


def run(script, folder):
    # Isolated: neither our packages nor any that is installed can help.
    return subprocess.run(
        [sys.executable, "-I", "-S", script, folder], capture_output=True, text=True, check=False
    )


def test_the_pages_script_checks_a_bundle_without_us(script, tmp_path):
    done = run(script, bundle(tmp_path))

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("24 rows and 9 numbers of small-")


@pytest.mark.parametrize("name", ["rows.jsonl", "measures.jsonl", "gold.jsonl", "predictions.jsonl"])
def test_the_pages_script_finds_what_was_turned(script, tmp_path, name):
    folder = bundle(tmp_path)
    path = folder / name
    path.write_bytes(path.read_bytes().replace(b"1", b"2", 1))

    assert "AssertionError" in run(script, folder).stderr


@pytest.mark.parametrize("folder", SHIPPED, ids=lambda path: path.name)
def test_every_bundle_of_the_repository_holds_by_both_checks(script, folder):
    report = check_bundle(folder)
    done = run(script, folder)

    assert report.problems == ()
    assert (done.returncode, done.stderr) == (0, "")


def test_every_gate_of_the_repository_has_a_record_that_holds():
    register = GateRegister(ARTIFACTS / "gates")

    reports = [check_gate(register, name, out=ARTIFACTS) for name in register.names()]

    assert len(reports) >= 3
    assert [(one.name, one.problems) for one in reports if one.problems] == []
    assert {one.outcome.bundle for one in reports if one.outcome} <= {path.name for path in SHIPPED}
