"""Where discovery listens: a socket in a private folder, whose path the kernel can take."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Final

from echoplane._folders import DataFolder

SOCKET_PATH_BYTES_MAX: Final = 100
"""The kernel allows 107: those of the others have a number more."""


def discovery_sockets(folder: DataFolder, *, count: int) -> list[Path]:
    """Return where each of so many processes listens."""
    first = discovery_socket(folder)
    return [first, *(first.with_name(f"discovery-{number}.sock") for number in range(2, count + 1))]


def discovery_socket(folder: DataFolder) -> Path:
    """Return the path of the first; its folder is made, for this account alone, by whoever listens."""
    path = folder.run / "discovery.sock"
    if len(os.fsencode(path)) <= SOCKET_PATH_BYTES_MAX:
        return path
    name = hashlib.sha256(os.fsencode(folder.run)).hexdigest()[:16]
    # The sticky bit keeps others from replacing it, and the service refuses a folder open to others.
    return Path(f"/tmp/echoplane-{os.geteuid()}-{name}") / "discovery.sock"  # noqa: S108
