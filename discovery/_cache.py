"""
A tenant's index in a file, so that a large one need not be read from its log again after a restart.

The file is encrypted with a key that is computed from the data keys of every event in it, as they lie in
the database, and from the tenant's own. Once one of these events is erased its data key is gone, and with
it, in the same transaction, the key of the file: nobody can read what is left of it, and it is deleted
when it is met. Nothing is lost with a file: it can be dropped at any time.

What is in it is this process's own objects as Python writes them, which is safe for a reason alone: it is
read only if it was encrypted with that key. Another build of this package does not read it.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import pickle
import sys
import tempfile
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Final

import sqlalchemy as sa
import structlog
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from sqlalchemy.ext.asyncio import AsyncConnection

import contracts
from discovery._index import TenantIndex
from ledger import log

CACHED_UNITS_MIN: Final = 5_000
"""Units from which on an index is kept in a file: fewer are read from the log in two seconds."""
CACHE_GROWTH: Final = 1.25
"""As many times more units than in its file an index has when the file is written anew."""
CACHE_BYTES_MAX: Final = 8 * 1_073_741_824
"""Bytes of all files together; past it the one written longest ago goes."""
_PART_BYTES: Final = 64 * 1_048_576
_SALT_BYTES: Final = 16
_HEADER_BYTES_MAX: Final = 4_096
_SUFFIX: Final = ".index"
_PART_SUFFIX: Final = ".part"
_BUILT_WITH: Final = ("numpy", "bm25s", "snowballstemmer")
"""What arrays, terms and stems in a file are made by."""

_log = structlog.get_logger(__name__)

# One row: what all data keys of events up to a position come to.
_KEYS: Final = sa.text(
    """
    SELECT sha256(coalesce(string_agg(k.wrapped_key, ''::bytea ORDER BY e.position), ''::bytea)) AS digest,
        count(*) AS events
    FROM event AS e JOIN event_key AS k ON k.tenant = e.tenant AND k.event_id = e.event_id
    WHERE e.tenant = :tenant AND e.position <= :position
    """
)


@dataclass(frozen=True, slots=True)
class Loaded:
    """An index from its file, and the end of the log in the snapshot in which that could still be read."""

    index: TenantIndex
    head_position: int


class IndexCache:
    """The files of one data folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._build = _build_digest()
        self._saved_units: dict[Path, int] = {}
        # What a kill left. One that another process is writing is lost with it, and is written later.
        for path in folder.glob(f"*{_PART_SUFFIX}"):
            path.unlink(missing_ok=True)

    def wants(self, tenant: str, model: str | None, index: TenantIndex) -> bool:
        """Return whether an index is large enough, and has grown enough since it was written."""
        saved = self._saved_units.get(self._path(tenant, model), 0)
        return len(index) >= max(CACHED_UNITS_MIN, CACHE_GROWTH * saved)

    async def save(self, db: log.Database, tenant: str, model: str | None, index: TenantIndex) -> bool:
        """
        Write an index that was read to its end; return whether it was.

        Raises:
            NotFound: No such tenant.
            Unavailable: The database is down.
        """
        if index.claims_position > index.position:
            # Folded after the log was read: names of events that the file's key does not cover would outlive
            # their erasure. The next reading takes these events in.
            return False
        path, units = self._path(tenant, model), len(index)
        self._saved_units[path] = units
        # In one go: while it is written, nothing may be added to it.
        written = pickle.dumps(index, protocol=5)
        position, events = index.position, index.events_held
        header = json.dumps(
            {
                "build": self._build,
                "model": model,
                "position": position,
                "salt": db.randomness(_SALT_BYTES).hex(),
            }
        ).encode()
        async with db.snapshot(tenant) as conn:
            key, still_there = await _key(db, conn, tenant, header, position)
        if still_there != events:
            # One of them has been erased since it was read.
            return False
        try:
            await asyncio.to_thread(self._write, path, header, AESGCM(key), written)
        except OSError as error:
            # A full disk, most likely. It can be done without.
            _log.warning("index_not_kept", error=type(error).__name__)
            return False
        _log.info("index_kept", tenant=tenant, units_count=units, bytes_count=len(written))
        return True

    async def load(self, db: log.Database, tenant: str, model: str | None) -> Loaded | None:
        """
        Return an index from its file; None where there is none, or it cannot be read any more.

        Raises:
            NotFound: No such tenant.
            Unavailable: The database is down.
        """
        path = self._path(tenant, model)
        header = await asyncio.to_thread(_header, path)
        if header is None:
            return None
        try:
            found = json.loads(header)
            position = (
                int(found["position"]) if (found["build"], found["model"]) == (self._build, model) else -1
            )
            async with db.snapshot(tenant) as conn:
                head = await log.head(conn)
                key, _ = await _key(db, conn, tenant, header, position)
            index = await asyncio.to_thread(_read, path, header, AESGCM(key))
        except (OSError, ValueError, KeyError, TypeError, InvalidTag):
            # Cut off, of another build, or an event in it was erased.
            await asyncio.to_thread(path.unlink, missing_ok=True)
            _log.info("index_file_dropped", tenant=tenant)
            return None
        self._saved_units[path] = len(index)
        return Loaded(index, head.position)

    def drop(self, tenant: str) -> None:
        """Delete the files of a tenant, of every model; one that is being written is not finished."""
        for path in self._folder.glob(f"{_name(tenant)}-*"):
            self._saved_units.pop(path, None)
            path.unlink(missing_ok=True)

    def _path(self, tenant: str, model: str | None) -> Path:
        # A tenant's name may be a person's and hold any character. Who guesses it can find its file.
        return self._folder / f"{_name(tenant)}-{_name(model or '')[:16]}{_SUFFIX}"

    def _write(self, path: Path, header: bytes, cipher: AESGCM, written: bytes) -> None:
        self._folder.mkdir(mode=0o700, exist_ok=True)
        self._make_room(len(written))
        descriptor, name = tempfile.mkstemp(dir=self._folder, prefix=path.name, suffix=_PART_SUFFIX)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(len(header).to_bytes(4) + header)
                for number, start in enumerate(range(0, len(written), _PART_BYTES)):
                    last = start + _PART_BYTES >= len(written)
                    sealed = cipher.encrypt(
                        _nonce(number, last=last), written[start : start + _PART_BYTES], header
                    )
                    file.write(len(sealed).to_bytes(4) + sealed)
            Path(name).replace(path)
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                Path(name).unlink()
            raise

    def _make_room(self, size: int) -> None:
        files = sorted(self._folder.glob(f"*{_SUFFIX}"), key=lambda path: path.stat().st_mtime)
        held = sum(path.stat().st_size for path in files)
        for path in files:
            if held + size <= CACHE_BYTES_MAX:
                return
            held -= path.stat().st_size
            path.unlink()


async def _key(
    db: log.Database, conn: AsyncConnection, tenant: str, header: bytes, position: int
) -> tuple[bytes, int]:
    keys = await log.tenant_keys(db, tenant, conn)
    found = (await conn.execute(_KEYS, {"tenant": tenant, "position": position})).one()
    # Its salt is in the header: no two files have one key, so a part's number can be its nonce.
    return keys.digest(b"index file\0" + bytes(found.digest) + header), found.events


def _header(path: Path) -> bytes | None:
    try:
        with path.open("rb") as file:
            length = int.from_bytes(file.read(4))
            return file.read(length) if length <= _HEADER_BYTES_MAX else b""
    except OSError:
        return None


def _read(path: Path, header: bytes, cipher: AESGCM) -> TenantIndex:
    parts: list[bytes] = []
    with path.open("rb") as file:
        file.seek(4 + len(header))
        last = False
        while not last:
            sealed = file.read(int.from_bytes(file.read(4)))
            # The last part is sealed as such: one that is cut off here does not open.
            last = file.peek(1) == b""
            parts.append(cipher.decrypt(_nonce(len(parts), last=last), sealed, header))
    # Opened with the key of this tenant: nobody else can have written it.
    index = pickle.loads(b"".join(parts))  # noqa: S301 - see above
    assert isinstance(index, TenantIndex)
    return index


def _nonce(number: int, *, last: bool) -> bytes:
    return number.to_bytes(11) + bytes([last])


def _name(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _build_digest() -> str:
    built_with = [sys.version, *map(version, _BUILT_WITH)]
    digest = hashlib.sha256(" ".join(built_with).encode())
    for folder in (Path(__file__).parent, *map(Path, contracts.__path__)):
        for path in sorted(folder.glob("*.py")):
            digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()
