"""Settings, keys and logs: read once, refused loudly, and silent about content."""

from __future__ import annotations

import errno
import io
import json
import logging
import os
import stat
from pathlib import Path

import pytest
import structlog
from pydantic import ValidationError

from contracts.errors import BadRequest, NotFound
from echoplane._folders import DataFolder
from echoplane._keys import KEY_BYTES, ensure_key, load_checkpoint_key, load_master_key
from echoplane._logging import configure_logging
from echoplane._settings import Settings, read_settings


@pytest.fixture(autouse=True)
def no_settings_of_the_machine(monkeypatch):
    for name in list(os.environ):  # noqa: TID251 - the test takes the place of a process's environment
        if name.upper().startswith("ECHOPLANE_"):
            monkeypatch.delenv(name)


@pytest.fixture
def log_lines(monkeypatch):
    """What the configured logs wrote."""
    written = io.StringIO()
    monkeypatch.setattr("sys.stderr", written)
    configure_logging("info")
    return lambda: [json.loads(line) for line in written.getvalue().splitlines()]


def test_everything_has_a_value_with_nothing_configured():
    settings = read_settings()

    assert settings.http_host == "127.0.0.1"
    assert settings.data_dir.name == "echoplane"
    assert settings.database_url is None


def test_the_environment_is_read_and_a_command_line_goes_before_it(monkeypatch, tmp_path):
    monkeypatch.setenv("ECHOPLANE_HTTP_PORT", "8000")
    monkeypatch.setenv("ECHOPLANE_DATA_DIR", "/nowhere")

    settings = read_settings(data_dir=tmp_path)

    assert settings.http_port == 8000
    assert settings.data_dir == tmp_path


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ECHOPLANE_DATABSE_URL", "postgresql://db/echoplane"),
        ("ECHOPLANE_HTTP_PORT", "70000"),
        ("ECHOPLANE_LOG_LEVEL", "loud"),
        ("ECHOPLANE_WORKERS", "0"),
        ("ECHOPLANE_WORKERS", "17"),
    ],
)
def test_a_wrong_or_misspelt_setting_is_refused_by_its_name(monkeypatch, name, value):
    monkeypatch.setenv(name, value)

    with pytest.raises(BadRequest) as refused:
        read_settings()

    assert refused.value.field == name


def test_a_plane_url_without_its_relay_url_is_refused(monkeypatch):
    monkeypatch.setenv("ECHOPLANE_DATABASE_URL", "postgresql://db/echoplane")

    with pytest.raises(BadRequest, match="go together"):
        read_settings()


def test_settings_are_frozen_and_do_not_show_their_secrets():
    url = "postgresql://someone:hunter2@db/echoplane"
    settings = Settings(database_url=url, database_relay_url=url)

    assert "hunter2" not in repr(settings)
    with pytest.raises(ValidationError):
        settings.http_port = 1


def test_a_master_key_is_made_once_and_private(tmp_path):
    path = tmp_path / "master.key"

    first, second = [ensure_key(path, named_by="NAME") for _ in range(2)]

    assert first == second
    assert len(first) == KEY_BYTES
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_a_named_key_file_is_never_made(tmp_path):
    settings = Settings(data_dir=tmp_path, master_key_file=tmp_path / "missing.key")

    with pytest.raises(BadRequest, match="cannot be read"):
        load_master_key(settings, DataFolder.at(tmp_path))


@pytest.mark.parametrize(
    ("content", "mode", "reason"),
    [("00" * 32, 0o640, "read by others"), ("00" * 16, 0o600, "32 bytes"), ("a key", 0o600, "hexadecimal")],
)
def test_a_key_that_is_open_short_or_garbled_is_refused(tmp_path: Path, content, mode, reason):
    path = tmp_path / "master.key"
    path.write_text(content)
    path.chmod(mode)

    with pytest.raises(BadRequest, match=reason):
        ensure_key(path, named_by="NAME")


def test_checkpoints_are_signed_with_a_key_of_their_own(tmp_path):
    folder = DataFolder.at(tmp_path)
    settings = Settings(data_dir=tmp_path)

    keys = [load(settings, folder) for load in (load_checkpoint_key, load_master_key, load_checkpoint_key)]

    assert keys[0] == keys[2] != keys[1]
    named = Settings(data_dir=tmp_path, checkpoint_key_file=folder.keys / "master.key")
    assert load_checkpoint_key(named, folder) == keys[1]
    assert (folder.keys / "checkpoint.key").stat().st_mode & 0o777 == 0o600


def test_a_log_line_is_one_json_object_with_the_bound_context(log_lines):
    with structlog.contextvars.bound_contextvars(tenant="t1"):
        structlog.get_logger().info("context_packed", lines_count=2)

    (line,) = log_lines()
    assert (line["event"], line["level"], line["tenant"], line["lines_count"]) == (
        "context_packed",
        "info",
        "t1",
        2,
    )
    assert line["at"].endswith("Z")


def test_an_exception_is_logged_without_its_message(log_lines):
    try:
        raise NotFound(what="event about her address")
    except NotFound:
        structlog.get_logger().exception("request_failed")
    try:
        raise ValueError("her address")
    except ValueError:
        logging.getLogger("some.library").exception("it broke")

    ours, theirs = log_lines()
    assert (ours["error_code"], ours["level"]) == ("incorrect.not_found", "error")
    assert theirs["error_class"] == "builtins.ValueError"
    assert theirs["error_at"][0].startswith("test_settings.py:")
    assert "address" not in json.dumps([ours, theirs])


class Full(io.StringIO):
    """A file on a full disk."""

    def write(self, _text):
        raise OSError(errno.ENOSPC, "No space left on device")


class Closed(io.StringIO):
    """A file that somebody closed."""

    def write(self, _text):
        raise ValueError("I/O operation on closed file")


@pytest.mark.parametrize("stream", [Full, Closed])
def test_a_log_that_cannot_be_written_stops_nobody_and_quotes_nothing(monkeypatch, capfd, stream):
    with monkeypatch.context() as patch:
        patch.setattr("sys.stderr", stream())
        configure_logging("debug")
    log = structlog.get_logger()

    for say in (log.debug, log.info, log.warning, log.error, log.critical, log.exception):
        say("fold_poisoned")
    log.bind(tenant="t1").log(logging.CRITICAL, "broker_problem")
    logging.getLogger("some.library").error("it broke: %s", "her address")

    assert capfd.readouterr() == ("", "")


def test_requests_are_not_logged_with_their_query_strings(log_lines):
    logging.getLogger("uvicorn.access").error('GET /v1/t/resolve?entity=her "200"')

    assert log_lines() == []


@pytest.mark.parametrize("missing", ["opentelemetry.sdk.trace", "opentelemetry.exporter.otlp.proto.http"])
def test_an_address_for_spans_is_refused_where_nothing_can_send_them(monkeypatch, missing):
    modules = {"opentelemetry.sdk.trace", "opentelemetry.exporter.otlp.proto.http"}
    monkeypatch.setattr("importlib.util.find_spec", lambda name: name in modules or None)
    monkeypatch.setenv("ECHOPLANE_TRACES_URL", "http://127.0.0.1:4318/v1/traces")
    assert read_settings().traces_url is not None

    modules.remove(missing)
    with pytest.raises(BadRequest, match=r"echoplane\[traces\]") as caught:
        read_settings()
    assert caught.value.field == "ECHOPLANE_TRACES_URL"


@pytest.mark.parametrize("name", sorted(Settings.model_fields))
def test_every_setting_is_in_the_docs(name):
    docs = Path(__file__).resolve().parents[2] / "docs"

    assert any(f"ECHOPLANE_{name.upper()}`" in path.read_text(encoding="utf-8") for path in docs.glob("*.md"))
