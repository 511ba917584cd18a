"""`python -m echoplane`: the command line, and how a plane starts its own processes."""

from __future__ import annotations

import sys

from echoplane._roles_entry import ROLE_COMMAND, SUPERVISE_COMMAND, run_child


def start() -> None:
    """Run our own process, or else the command line."""
    if sys.argv[1:2] in ([ROLE_COMMAND], [SUPERVISE_COMMAND]):
        sys.exit(run_child(sys.argv[1:]))
    from echoplane._cli import main  # noqa: PLC0415 - our own processes need none of it

    main()


if __name__ == "__main__":
    start()
