"""
An exported tenant: a folder with one file of JSON lines a table, and a manifest that says what they hold.

Digests in the manifest are keyed with the tenant's digest key, and so is the seal over it: only a
holder of the tenant's keys can have written it, and nobody can guess content from it. The keys
themselves stand in it wrapped, as they do in the database.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import hmac
import os
import stat
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final, Self

import sqlalchemy as sa
from pydantic import TypeAdapter, ValidationError

from contracts.errors import BadRequest, EchoplaneError
from contracts.limits import RESTORE_LINE_BYTES_MAX
from ledger import _tables
from ledger._canonical import canonical, parse
from ledger._keys import TenantKeys
from ledger._metadata import metadata

FORMAT: Final = "echoplane tenant 2"
MANIFEST: Final = "manifest.json"
_MANIFEST_BYTES_MAX: Final = 1_048_576

# What triggers hold to come from each other, and not foreign keys; and last, what holds appends back.
_FIRST: Final = (_tables.commit, _tables.event)
_LAST: Final = (_tables.claim, _tables.reach, _tables.cell, _tables.tenant_policy)
_APART: Final = (_tables.tenant, _tables.deleted_tenant, *_FIRST, *_LAST)
EXPORTED: Final = (*_FIRST, *(table for table in metadata.sorted_tables if table not in _APART), *_LAST)
"""Every table, each after what its rows come from. The tenant's own row is in the manifest."""
_CELL_COLUMNS: Final = (
    *("epoch", "entity", "relation", "part"),  # The key of its line, whose number is another elsewhere.
    *("valid", "known", "state", "claims", "seal"),
)


def columns_of(table: sa.Table) -> tuple[str, ...]:
    """Return what a line holds of a row: neither the tenant, nor what the database makes by itself."""
    if table is _tables.cell:
        return _CELL_COLUMNS
    return tuple(
        column.name
        for column in table.columns
        if column.name != "tenant" and column.computed is None and column.identity is None
    )


def file_of(table: str) -> str:
    """Return the name of a table's file."""
    return f"{table}.jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedTable:
    """One file: the columns of its lines, how many and how long they are, and their keyed digest (hex)."""

    table: str
    columns: tuple[str, ...]
    rows: int
    bytes: int
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """
    What an export holds. `hash` is that of the log's last commit, `root` the root of its tree (hex).

    `wrapped_keys` are the tenant's, wrapped by the master key of the plane that it comes from.
    """

    format: str
    tenant: str
    created_at: str
    created_by: str
    wrapped_keys: str
    commit: int
    position: int
    hash: str
    root: str
    tables: tuple[ExportedTable, ...]
    seal: str

    def sealed(self, keys: TenantKeys) -> str:
        """Return the seal that belongs to it."""
        form = asdict(self)
        del form["seal"]
        return keys.digest_of("export manifest", canonical(form)).hex()

    def check(self, keys: TenantKeys) -> None:
        """
        Check that a holder of the tenant's keys wrote it, and that its tables are ours.

        Raises:
            BadRequest: It was changed, or is of another version of the schema.
        """
        if not hmac.compare_digest(self.seal.encode(), self.sealed(keys).encode()):
            raise BadRequest(field=MANIFEST, reason="was changed: its seal does not match")
        if [(one.table, one.columns) for one in self.tables] != [
            (table.name, columns_of(table)) for table in EXPORTED
        ]:
            raise BadRequest(
                field=MANIFEST, reason="is of another version of the schema: restore it with that one"
            )

    def write(self, folder: Path) -> None:
        """Write it, last of all: a folder without it is no export."""
        with _created(folder / MANIFEST) as file:
            file.write(canonical(asdict(self)) + b"\n")

    @classmethod
    def read(cls, folder: Path) -> Manifest:
        """
        Read it; what it says is not checked yet.

        Raises:
            BadRequest: There is none, or it has another form.
        """
        try:
            with _regular(folder / MANIFEST) as file:
                said: dict[str, Any] = parse(file.read(_MANIFEST_BYTES_MAX))
            manifest = _MANIFEST.validate_python(said)
        except OSError as error:
            raise BadRequest(field=str(folder), reason=f"is no export: {error.strerror}") from error
        except (ValidationError, EchoplaneError) as error:
            raise BadRequest(field=MANIFEST, reason="is none of ours") from error
        if manifest.format != FORMAT:
            raise BadRequest(field=MANIFEST, reason=f"is of the format {manifest.format}, not {FORMAT}")
        return manifest


_MANIFEST: Final = TypeAdapter(Manifest)


class ExportWriter:
    """Writes one file, line by line, and says what is in it; left early, it closes what there is."""

    def __init__(self, folder: Path, table: sa.Table, keys: TenantKeys) -> None:
        self._table, self._keys = table, keys
        self._file = _created(folder / file_of(table.name))
        self._sha, self._rows, self._bytes = hashlib.sha256(), 0, 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        # What went wrong is on its way already; the disk may refuse what is left once more.
        with contextlib.suppress(OSError):
            self._file.close()

    def add(self, line: str) -> None:
        """Write a row."""
        raw = line.encode() + b"\n"
        self._file.write(raw)
        self._sha.update(raw)
        self._rows, self._bytes = self._rows + 1, self._bytes + len(raw)

    def end(self) -> ExportedTable:
        """Close the file and return its part of the manifest."""
        self._file.close()
        name = self._table.name
        return ExportedTable(
            table=name,
            columns=columns_of(self._table),
            rows=self._rows,
            bytes=self._bytes,
            digest=_digest(self._keys, name, self._sha.digest()),
        )


def _regular(path: Path) -> BinaryIO:
    """Open a file to read; whatever else bears its name, as a pipe that nobody writes to, is refused."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a regular file")
    return os.fdopen(descriptor, "rb")


def read_lines(folder: Path, exported: ExportedTable, keys: TenantKeys) -> Iterator[bytes]:
    """
    Yield the rows of a file; what was yielded is only to be believed once all were.

    Raises:
        BadRequest: It is not what the manifest says: changed, cut short, or gone.
    """
    name = file_of(exported.table)
    sha, rows, size = hashlib.sha256(), 0, 0
    try:
        with _regular(folder / name) as file:
            while line := file.readline(RESTORE_LINE_BYTES_MAX):
                sha.update(line)
                rows, size = rows + 1, size + len(line)
                yield line
    except OSError as error:
        raise BadRequest(field=name, reason=f"cannot be read: {error.strerror}") from error
    digest = _digest(keys, exported.table, sha.digest())
    if (rows, size) != (exported.rows, exported.bytes) or not hmac.compare_digest(digest, exported.digest):
        raise BadRequest(field=name, reason="is not what the manifest says: changed or cut short")


def _digest(keys: TenantKeys, table: str, sha: bytes) -> str:
    return keys.digest_of("export file", table.encode(), sha).hex()


def _created(path: Path) -> BinaryIO:
    # Content and keys: for nobody else to read.
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")
