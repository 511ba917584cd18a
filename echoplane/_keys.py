"""
The keys of the plane, each in a file of its own, never beside what they protect in the database.

The master key wraps the tenants' keys, which wrap one data key per event: losing it loses every text,
which is what erasure relies on and why a backup must carry it apart. The checkpoint key signs how a
log stood: whoever has it can sign another past.
"""

from __future__ import annotations

import binascii
import contextlib
import os
import secrets
import stat
from pathlib import Path
from typing import Final

from contracts.errors import BadRequest
from echoplane._folders import DataFolder
from echoplane._settings import Settings

KEY_BYTES: Final = 32
MASTER_KEY_FILE: Final = "ECHOPLANE_MASTER_KEY_FILE"
CHECKPOINT_KEY_FILE: Final = "ECHOPLANE_CHECKPOINT_KEY_FILE"


def load_master_key(settings: Settings, folder: DataFolder) -> bytes:
    """
    Return the key of the configured file, which must exist, or of `keys/master.key`, made if need be.

    Raises:
        BadRequest: As `read_key`.
    """
    if settings.master_key_file is not None:
        return read_key(settings.master_key_file.expanduser(), named_by=MASTER_KEY_FILE)
    return ensure_key(folder.keys / "master.key", named_by=MASTER_KEY_FILE)


def load_checkpoint_key(settings: Settings, folder: DataFolder) -> bytes:
    """
    Return the key that signs checkpoints: as the master key, of `keys/checkpoint.key`.

    Raises:
        BadRequest: As `read_key`.
    """
    if settings.checkpoint_key_file is not None:
        return read_key(settings.checkpoint_key_file.expanduser(), named_by=CHECKPOINT_KEY_FILE)
    return ensure_key(folder.keys / "checkpoint.key", named_by=CHECKPOINT_KEY_FILE)


def read_key(path: Path, *, named_by: str) -> bytes:
    """
    Return the key that the file holds as hexadecimal digits.

    Raises:
        BadRequest: There is no such file, others may read it, or it holds no key.
    """
    try:
        if stat.S_IMODE(path.stat().st_mode) & 0o077:
            raise BadRequest(field=named_by, reason=f"{path} can be read by others (chmod 600)")
        key = binascii.unhexlify(path.read_text(encoding="ascii").strip())
    except OSError as error:
        raise BadRequest(field=named_by, reason=f"{path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise BadRequest(field=named_by, reason=f"{path} does not hold hexadecimal digits") from error
    if len(key) != KEY_BYTES:
        raise BadRequest(field=named_by, reason=f"{path} does not hold {KEY_BYTES} bytes")
    return key


def ensure_key(path: Path, *, named_by: str) -> bytes:
    """
    Return the file's key; at the first start, when there is no file, make one.

    Raises:
        BadRequest: As `read_key`.
    """
    if not path.exists():
        beside = path.with_name(f".{path.name}.{os.getpid()}")
        beside.unlink(missing_ok=True)
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(secrets.token_hex(KEY_BYTES) + "\n")
            file.flush()
            # Events may be encrypted and committed a moment from now; the key must not be lost before them.
            os.fsync(file.fileno())
        # A link, not a rename: of two first starts at once, both must use the key of the first.
        with contextlib.suppress(FileExistsError):
            path.hardlink_to(beside)
        beside.unlink()
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    return read_key(path, named_by=named_by)
