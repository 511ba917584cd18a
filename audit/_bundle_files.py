"""Files of a bundle: canonical lines, digests, and what is left of a file that was cut off."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, TypeVar

import rfc8785
from pydantic import BaseModel, ValidationError

from contracts.artifacts import FileDigest, Lost
from contracts.errors import BadRequest, LimitExceeded
from contracts.limits import BUNDLE_LINE_BYTES_MAX, BUNDLE_ROWS_MAX

_READ_AT_ONCE: Final = 1 << 20

Model = TypeVar("Model", bound=BaseModel)


def canonical(record: BaseModel) -> bytes:
    """Return the canonical JSON (RFC 8785) of a record."""
    return rfc8785.dumps(json.loads(record.model_dump_json()))


def address_of(record: BaseModel) -> str:
    """Return the SHA-256 of a record's canonical form, as hex."""
    return hashlib.sha256(canonical(record)).hexdigest()


def file_digest(path: Path, *, name: str) -> FileDigest:
    """
    Return the digest of a file's bytes under a name.

    Raises:
        BadRequest: It cannot be read, or its name is none that a bundle can hold.
    """
    digest, size = hashlib.sha256(), 0
    try:
        with path.open("rb") as file:
            while piece := file.read(_READ_AT_ONCE):
                digest.update(piece)
                size += len(piece)
        return FileDigest(path=name, sha256=digest.hexdigest(), bytes_count=size)
    except OSError as error:
        raise BadRequest(field=name, reason=f"cannot be read: {error.strerror}") from error
    except ValidationError as error:
        raise BadRequest(
            field="path", reason="a file's name may hold letters, digits and ._- alone"
        ) from error


def data_digests(path: Path) -> tuple[FileDigest, ...]:
    """
    Return the digests of a data set: one file, or each below a folder, named from there.

    Raises:
        BadRequest: There is none, or one cannot be read.
    """
    if path.is_dir():
        files = sorted(file for file in path.rglob("*") if file.is_file())
        found = tuple(file_digest(file, name=file.relative_to(path).as_posix()) for file in files)
    else:
        found = (file_digest(path, name=path.name),)
    if not found:
        raise BadRequest(field="path", reason="holds no file")
    return found


def write_lines(path: Path, records: Iterable[BaseModel]) -> None:
    """Write a file anew: one record a line, on the disk before it takes its name."""
    write_whole(path, b"".join(canonical(record) + b"\n" for record in records))


def write_whole(path: Path, content: bytes) -> None:
    """Write a file anew, so that there is either the old one or the new one."""
    beside = path.with_name(path.name + ".new")
    with beside.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)


def read_lines(path: Path, model: type[Model]) -> list[Model]:
    """
    Read a file of records.

    Raises:
        BadRequest: It is not there, or a line is not such a record; says which.
        LimitExceeded: It has more lines than a bundle may have, or a longer one.
    """
    kept, lost = salvage(path, model)
    if lost:
        raise BadRequest(field=f"{path.name}: line {lost[0].line}", reason="not such a record")
    return kept


def salvage(path: Path, model: type[Model]) -> tuple[list[Model], list[Lost]]:
    """
    Read every whole record of a file, and what could not be read, as it stands there.

    Raises:
        BadRequest: It is not there.
        LimitExceeded: It has more lines than a bundle may have, or a longer one.
    """
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise BadRequest(field=path.name, reason=f"cannot be read: {error.strerror}") from error
    return records_of(raw, model, name=path.name)


def records_of(raw: bytes, model: type[Model], *, name: str) -> tuple[list[Model], list[Lost]]:
    """
    Read every whole record of a file's bytes, and what could not be read; see `salvage`.

    Raises:
        LimitExceeded: It has more lines than a bundle may have, or a longer one.
    """
    lines = raw.split(b"\n")
    # What follows the last line end was cut off, unless it is nothing.
    whole, cut = lines[:-1], lines[-1]
    if len(whole) > BUNDLE_ROWS_MAX:
        raise LimitExceeded(limit="BUNDLE_ROWS_MAX", allowed=BUNDLE_ROWS_MAX, given=len(whole))
    kept: list[Model] = []
    lost: list[Lost] = []
    for number, line in enumerate(lines if cut else whole, start=1):
        if len(line) > BUNDLE_LINE_BYTES_MAX:
            raise LimitExceeded(limit="BUNDLE_LINE_BYTES_MAX", allowed=BUNDLE_LINE_BYTES_MAX, given=len(line))
        # Without its end a line may be a record by chance, and another one than was meant.
        record = _record(line, model) if number <= len(whole) else None
        if record is None:
            lost.append(Lost(file=name, line=number, raw_hex=line.hex()))
        else:
            kept.append(record)
    return kept, lost


def _record(line: bytes, model: type[Model]) -> Model | None:
    try:
        return model.model_validate_json(line)
    except ValidationError:
        return None


def code_digest_of(root: Path, packages: Sequence[str]) -> str:
    """
    Return one digest of all source files of some packages: Python, SQL and their data, by path.

    Raises:
        BadRequest: A package is not there.
    """
    digest = hashlib.sha256()
    for package in sorted(packages):
        folder = root / package
        files = sorted(
            path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts
        )
        if not files:
            raise BadRequest(field="packages", reason=f"there is no source of {package}")
        for path in files:
            one = hashlib.sha256(path.read_bytes()).hexdigest()
            digest.update(f"{one}  {path.relative_to(root).as_posix()}\n".encode())
    return digest.hexdigest()
