"""The folder of the socket: whoever can reach into it can ask, or pretend to answer."""

from __future__ import annotations

import os
import stat
from pathlib import Path


def make_folder(folder: Path) -> None:
    """Make the folder for this user alone, if it is missing; leave it as it is otherwise."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)


def is_private(folder: Path) -> bool:
    """Say whether the folder is there, is this user's, and lets nobody else in."""
    try:
        found = folder.lstat()
    except OSError:
        return False
    # A link, or a folder that another user made first, would lead to their socket.
    is_ours = stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()
    return is_ours and not stat.S_IMODE(found.st_mode) & 0o077
