"""
The wheel, installed outside the checkout, is whole.

A file that the build forgets is found by an editable install all the same, so only this test sees it
missing. It needs no network: the built wheel goes into a new environment, and the packages it depends
on are borrowed from the one that runs the tests.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from tests.test_tidy import PACKAGES, ROOT, tracked


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    _pip("wheel", "--no-build-isolation", "--wheel-dir", str(folder), str(ROOT))
    (built,) = folder.glob("echoplane-*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory) -> Path:
    """The folder of programs of an environment that has the wheel and nothing of the checkout."""
    place = tmp_path_factory.mktemp("clean") / "venv"
    _run(sys.executable, "-m", "venv", "--without-pip", str(place))
    _pip("install", str(wheel), python=place / "bin" / "python")
    # A folder named in a .pth is searched, but the .pth files inside are not read: the editable
    # install of the checkout stays out.
    (site,) = place.glob("lib/python*/site-packages")
    (site / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return place / "bin"


def _pip(action: str, *arguments: str, python: Path = Path(sys.executable)) -> None:
    quiet = ("--quiet", "--disable-pip-version-check", "--no-index", "--no-deps")
    _run(sys.executable, "-m", "pip", "--python", str(python), action, *quiet, *arguments)


def _run(*command: str, cwd: Path = Path("/")) -> str:
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=cwd, timeout=240)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def test_the_wheel_holds_every_file_of_the_packages_and_nothing_else(wheel):
    expected = {
        str(path.relative_to(ROOT)) for path in tracked() if path.relative_to(ROOT).parts[0] in PACKAGES
    }

    with zipfile.ZipFile(wheel) as archive:
        inside = {name for name in archive.namelist() if ".dist-info/" not in name}

    assert inside == expected


def test_the_wheel_holds_migrations_and_the_demo(wheel):
    with zipfile.ZipFile(wheel) as archive:
        inside = archive.namelist()

    assert "ledger/migrations/env.py" in inside
    assert any(name.startswith("ledger/migrations/versions/") and name.endswith(".py") for name in inside)
    assert any(name.startswith("echoplane/demo/") and name.endswith(".jsonl") for name in inside)


def test_the_wheel_may_not_be_uploaded(wheel):
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = archive.read(name).decode()

    assert "Classifier: Private :: Do Not Upload" in metadata


def test_every_package_is_imported_from_the_wheel(installed):
    program = f"import importlib\nfor name in {PACKAGES!r}: print(importlib.import_module(name).__file__)"

    files = _run(str(installed / "python"), "-I", "-c", program).splitlines()

    assert len(files) == len(PACKAGES)
    assert all(Path(file).is_relative_to(installed.parent) for file in files)


def test_the_command_runs_from_the_wheel(installed):
    shown = _run(str(installed / "echoplane"), "--help")

    assert all(command in shown for command in ("up", "down", "emit", "ask", "replay", "verify"))


def test_the_wheel_migrates_a_database(installed, empty_database):
    program = (
        "import asyncio, sys\n"
        "from ledger.schema import upgrade\n"
        "asyncio.run(upgrade(sys.argv[1]))\n"
        "print('migrated')\n"
    )

    assert _run(str(installed / "python"), "-I", "-c", program, empty_database.owner) == "migrated\n"


def test_the_archive_of_the_source_needs_no_git_to_be_checked(tmp_path):
    """The house rules list files through git where there is git; without it they must see the same ones."""
    bare = tmp_path / "source"
    for path in tracked():
        copy = bare / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, copy)
    program = (
        "import sys\n"
        "sys.path.insert(0, sys.argv[1])\n"
        "from tests.test_tidy import ROOT, tracked\n"
        "print('\\n'.join(str(path.relative_to(ROOT)) for path in tracked()))\n"
    )

    seen = _run(sys.executable, "-c", program, str(bare), cwd=bare).splitlines()

    assert sorted(seen) == sorted(str(path.relative_to(ROOT)) for path in tracked())
