"""`python -m echoplane`: the command line, and how a plane starts its own processes."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
from typing import NoReturn

from echoplane._roles_entry import ROLE_COMMAND, SUPERVISE_COMMAND, run_child


def end(code: int) -> NoReturn:
    """
    End at once. All is closed by now, and the system takes back what is left.

    To take apart modules and indexes, object by object, would take seconds more, and `down` waits for them.
    """
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        # Whoever read it may be gone.
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


def start() -> None:
    """Run our own process, or else the command line."""
    if sys.argv[1:2] in ([ROLE_COMMAND], [SUPERVISE_COMMAND]):
        end(run_child(sys.argv[1:]))
    from echoplane._cli import main  # noqa: PLC0415 - our own processes need none of it

    main()


if __name__ == "__main__":
    start()
