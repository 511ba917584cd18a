"""Where the API is to listen: whether that is free, and who holds it where it is not."""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from contracts.errors import AddressTaken, BadRequest

_PROC: Final = Path("/proc")
_LISTENING: Final = "0A"
"""The state of a socket in the kernel's tables."""


def require_free(host: str, port: int) -> None:
    """
    Refuse an address that we cannot listen at.

    Raises:
        AddressTaken: Another program does; says which, as far as this account may know.
        BadRequest: It is none of this machine, or not this account's to use.
    """
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        # As the server itself does: an address that a connection of before still holds is free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                raise AddressTaken(host=host, port=port, holder=_holder(port)) from error
            reason = f"{host} port {port} cannot be used: {error.strerror}"
            raise BadRequest(field="ECHOPLANE_HTTP_HOST, ECHOPLANE_HTTP_PORT", reason=reason) from error


def _holder(port: int) -> str | None:
    """Return who listens at a port, as `process 17 (name)`; None where the system does not tell."""
    wanted = {f"socket:[{inode}]" for inode in _listening(port)}
    for folder in _PROC.glob("[0-9]*/fd"):
        try:
            if any(str(link.readlink()) in wanted for link in folder.iterdir()):
                name = (folder.parent / "comm").read_text(encoding="utf-8", errors="replace").strip()
                return f"process {folder.parent.name} ({name})"
        except OSError:
            # Another account's, or gone meanwhile.
            continue
    return None


def _listening(port: int) -> Iterator[str]:
    for table in ("tcp", "tcp6"):
        try:
            rows = (_PROC / "net" / table).read_text(encoding="ascii").splitlines()[1:]
        except OSError:
            continue
        for row in rows:
            local, state, inode = (row.split()[place] for place in (1, 3, 9))
            if state == _LISTENING and int(local.rpartition(":")[2], 16) == port:
                yield inode
