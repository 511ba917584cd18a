"""
House rules that no linter knows.

They must hold, and be checkable, in a tree without git too: an archive of the source is such a tree.
"""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("contracts", "ledger", "projection", "discovery", "packing", "realize", "audit", "echoplane")
OTHER_FOLDERS = {"tests", "artifacts", "docs", "deploy"}
LEDGER_DOORS = {"log", "write", "resolve", "closure", "erase"}
ENTRIES = ("_cli", "_roles", "__main__")
"""Where a process begins."""
FILE_LINES_MAX = 400
FUNCTION_LINES_MAX = 60
TEXT_BYTES_MAX = 2_000_000
"""A tracked file that is longer is data, and not read for its words."""

# What a build leaves behind in a tree without git to say so.
LEFTOVERS = {"__pycache__", ".venv", "build", "dist", "node_modules"}

# Put together from pieces, so that this file does not hold what it forbids.
REGISTRY_HOSTS = re.compile(
    "|".join(
        re.escape(host)
        for host in (
            "pypi" + ".org",
            "python" + "hosted.org",
            "registry." + "npmjs.org",
            "deb." + "debian.org",
            "hugging" + "face.co",
        )
    )
)
MACHINE_PATHS = re.compile(
    r"(?<![\w.])/(?:" + "|".join(("wo" + "rk/", "ro" + "ot/", "ho" + "me/[a-z]", "Us" + "ers/[A-Z]")) + ")"
)
UNFINISHED = re.compile(r"\b(?:" + "|".join(("TO" + "DO", "FIX" + "ME", "X" + "XX", "HA" + "CK")) + r")\b")
ABBREVIATIONS = re.compile(r"^(?:cfg|mgr|util|utils|helper|helpers|misc|common|tmp|foo|bar)$")


@cache
def tracked() -> tuple[Path, ...]:
    """Every file of the project: what git tracks or would track, else all but what a build leaves."""
    if (ROOT / ".git").exists() and shutil.which("git") is not None:
        listed = subprocess.run(
            ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            check=False,
            capture_output=True,
        )
        # Git refuses a tree that belongs to someone else; the walk below does not.
        if listed.returncode == 0:
            names = [name for name in listed.stdout.decode().split("\0") if name]
            return tuple(sorted(path for name in names if (path := ROOT / name).is_file()))
    return tuple(sorted(_walked(ROOT)))


def _walked(folder: Path) -> Iterator[Path]:
    for entry in folder.iterdir():
        if entry.is_dir():
            hidden = entry.name.startswith(".") and entry.name != ".ci"
            if entry == ROOT / "data":
                continue
            if not hidden and entry.name not in LEFTOVERS and not entry.name.endswith(".egg-info"):
                yield from _walked(entry)
        elif entry.name != "uv.lock" and entry.suffix != ".pyc":
            yield entry


def python_files() -> list[Path]:
    return [path for path in tracked() if path.suffix == ".py"]


def modules_of(package: str) -> list[Path]:
    return [path for path in python_files() if path.relative_to(ROOT).parts[0] == package]


def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def shown(path: Path) -> str:
    return str(path.relative_to(ROOT))


def words_of(path: Path) -> str:
    """The text of a file; empty for data and for bytes that are no text."""
    if path.stat().st_size > TEXT_BYTES_MAX:
        return ""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return ""


@pytest.fixture(scope="module")
def project() -> dict[str, object]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def test_import_rules_types_and_the_wheel_name_every_package_folder(project):
    folders = {path.parent.name for path in ROOT.glob("*/__init__.py")}

    assert folders - OTHER_FOLDERS == set(PACKAGES)
    tool = project["tool"]
    assert sorted(tool["importlinter"]["root_packages"]) == sorted(PACKAGES)
    assert sorted(tool["mypy"]["packages"]) == sorted(PACKAGES)
    assert sorted(tool["hatch"]["build"]["targets"]["wheel"]["packages"]) == sorted(PACKAGES)


def test_no_folder_of_python_files_is_outside_the_packages():
    tops = {path.relative_to(ROOT).parts[0] for path in python_files()}

    assert tops <= set(PACKAGES) | OTHER_FOLDERS


def test_files_are_short():
    lengths = {shown(path): len(words_of(path).splitlines()) for path in python_files()}

    assert {name: count for name, count in lengths.items() if count > FILE_LINES_MAX} == {}


def test_functions_are_short():
    long = {}
    for path in python_files():
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines_count = (node.end_lineno or node.lineno) - node.lineno + 1
                if lines_count > FUNCTION_LINES_MAX:
                    long[f"{shown(path)}:{node.name}"] = lines_count

    assert long == {}


def test_modules_are_split_by_noun():
    """A file named after nothing, or with a number, was cut where it got too long."""
    bad = [
        shown(path)
        for package in PACKAGES
        for path in modules_of(package)
        if "migrations" not in path.parts
        and (ABBREVIATIONS.match(path.stem.strip("_")) or re.search(r"_\d+$", path.stem))
    ]

    assert bad == []


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_says_what_it_promises_and_what_not(package):
    docstring = ast.get_docstring(parsed(ROOT / package / "__init__.py"))

    assert docstring is not None
    assert "Promises:" in docstring
    assert "Does not promise:" in docstring


@pytest.mark.parametrize("package", [name for name in PACKAGES if name != "ledger"])
def test_the_door_of_a_package_is_complete_and_everything_in_it_exists(package):
    module = importlib.import_module(package)
    tree = parsed(ROOT / package / "__init__.py")
    # Names that `__getattr__` imports when they are asked for stand under TYPE_CHECKING.
    lazy = [each for node in tree.body if isinstance(node, ast.If) for each in node.body]
    bound = {
        alias.asname or alias.name
        for node in [*tree.body, *lazy]
        if isinstance(node, ast.ImportFrom) and node.module not in {"__future__", "typing"}
        for alias in node.names
    } | {
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    }
    # `schemas` and the like are folders of data; a module without an underscore is part of the door.
    public_modules = {
        info.name
        for info in pkgutil.iter_modules([str(ROOT / package)])
        if not info.name.startswith("_") and not info.ispkg
    }

    assert sorted(module.__all__) == sorted({name for name in bound | public_modules if name[0] != "_"})
    assert [name for name in module.__all__ if name not in public_modules and not hasattr(module, name)] == []


def test_the_ledger_has_its_doors_and_its_package_imports_nothing():
    """A package that re-exported the resolver would let discovery reach it through the log."""
    imports = [
        node
        for node in ast.walk(parsed(ROOT / "ledger" / "__init__.py"))
        if isinstance(node, ast.Import | ast.ImportFrom)
    ]
    public = {
        info.name for info in pkgutil.iter_modules([str(ROOT / "ledger")]) if not info.name.startswith("_")
    }

    assert imports == []
    assert public == LEDGER_DOORS | {"schema", "migrations"}


@pytest.mark.parametrize("door", sorted(LEDGER_DOORS | {"schema"}))
def test_a_door_of_the_ledger_says_what_is_in_it(door):
    module = importlib.import_module(f"ledger.{door}")

    assert module.__doc__
    assert module.__all__
    assert [name for name in module.__all__ if not hasattr(module, name)] == []


def test_contracts_need_nothing_but_pydantic():
    allowed = {"pydantic", "pydantic_core", "annotated_types", "typing_extensions", "contracts"}

    foreign = {
        f"{shown(path)}: {name}"
        for path in modules_of("contracts")
        for name in _imported(path)
        if name not in allowed and name not in sys.stdlib_module_names
    }

    assert foreign == set()


@pytest.mark.parametrize("package", ["packing", "realize"])
def test_pure_packages_import_nothing_that_reads_writes_or_waits(package):
    """What they are given decides what they return; a file, a clock or chance would decide too."""
    worldly = {
        "asyncio", "glob", "http", "io", "logging", "os", "pathlib", "random", "secrets", "shutil", "socket",
        "sqlite3", "subprocess", "tempfile", "threading", "time", "urllib", "uuid",
        "httpx", "psycopg", "redis", "sqlalchemy", "structlog",
    }  # fmt: skip

    assert [
        f"{shown(path)}: {name}" for path in modules_of(package) for name in _imported(path) & worldly
    ] == []


def _imported(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            names.add(node.module.split(".")[0])
    return names


def test_packages_do_not_import_tests_or_artifacts():
    offenders = [
        shown(path)
        for package in PACKAGES
        for path in modules_of(package)
        if _imported(path) & {"tests", "artifacts"}
    ]

    assert offenders == []


def test_only_the_entry_of_a_process_starts_an_event_loop():
    """I/O is written once and async; a second loop inside would block the first."""
    starters = [
        shown(path)
        for package in PACKAGES
        for path in modules_of(package)
        if not path.stem.startswith(ENTRIES)
        and "migrations" not in path.parts
        and "asyncio.run(" in words_of(path)
    ]

    assert starters == []


@pytest.mark.parametrize(
    ("rule", "pattern"),
    [("no address of a package registry", REGISTRY_HOSTS), ("no path of one machine", MACHINE_PATHS)],
)
def test_no_tracked_file_depends_on_one_place(rule, pattern):
    found = [
        f"{shown(path)}: {hit.group()}" for path in tracked() for hit in pattern.finditer(words_of(path))
    ]

    assert found == [], rule


def test_nothing_is_left_for_later_in_the_code():
    """An open point is an issue; in the code nobody finds it."""
    found = [
        f"{shown(path)}: {hit.group()}"
        for path in python_files()
        for hit in UNFINISHED.finditer(words_of(path))
    ]

    assert found == []


def test_every_suppressed_rule_of_the_linter_is_named():
    bare = [
        f"{shown(path)}:{number}"
        for path in python_files()
        for number, line in enumerate(words_of(path).splitlines(), start=1)
        if re.search(r"#\s*noqa(?!:)", line) or re.search(r"#\s*type:\s*ignore(?!\[)", line)
    ]

    assert bare == []


def test_every_ignored_rule_has_its_reason_beside_it(project):
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    lint = project["tool"]["ruff"]["lint"]
    ignored = {*lint["ignore"], *(rule for rules in lint["per-file-ignores"].values() for rule in rules)}

    unexplained = [rule for rule in ignored if not re.search(rf'"{rule}",\s+# .', text)]

    assert unexplained == []


def test_locks_pin_everything_by_hash_and_name_no_index():
    for name in ("requirements.txt", "requirements-dev.txt", "requirements-model.txt"):
        text = (ROOT / name).read_text(encoding="utf-8")
        pins = re.findall(r"(?m)^[\w.\-\[\]]+==\S+(?:(?!\n\S).)*", text, flags=re.DOTALL)

        assert pins, name
        assert all("--hash=sha256:" in pin for pin in pins), name
        assert re.search(r"(?m)^--|://", text) is None, name


def test_the_smaller_lock_is_part_of_the_larger(project):
    def pins(name: str) -> set[str]:
        return set(re.findall(r"(?m)^[\w.\-\[\]]+==[^\s;\\]+", (ROOT / name).read_text(encoding="utf-8")))

    def plain(requirement: str) -> str:
        return re.split(r"[\[><=~!; ]", requirement)[0]

    assert pins("requirements.txt") <= pins("requirements-dev.txt")
    needed = {plain(line) for line in project["project"]["dependencies"]}
    assert needed <= {pin.split("==")[0] for pin in pins("requirements.txt")}


def test_every_target_of_make_is_phony_or_a_file():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    phony = set(re.search(r"(?m)^\.PHONY:(.*)$", makefile).group(1).split())
    targets = set(re.findall(r"(?m)^([a-z][\w-]*):", makefile))

    assert {"setup", "demo", "up", "test", "check", "bench"} <= phony
    assert targets == phony
