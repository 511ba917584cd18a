"""
What a plane's own processes run: the supervisor in the background, and the roles.

Apart from the command line, so that none of them pays for the libraries of all the commands.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import structlog

from contracts.errors import EchoplaneError
from echoplane._failures import EXIT_OK, EXIT_VERDICT_FALSE, exit_code
from echoplane._keeper import Post
from echoplane._logging import configure_logging
from echoplane._settings import Settings, read_settings
from echoplane._state import Mode, Role

ROLE_COMMAND = "role"
SUPERVISE_COMMAND = "supervise"


def run_child(arguments: Sequence[str]) -> int:
    """Run `role NAME NUMBER` or `supervise MODE [ROLE …]` and return the exit code. Errors go to the log."""
    settings = read_settings()
    configure_logging(settings.log_level)
    try:
        if arguments[0] == ROLE_COMMAND:
            from echoplane._roles import run_role  # noqa: PLC0415 - not the supervisor's to pay for

            run_role(Post(role=Role(arguments[1]), number=int(arguments[2])), settings)
            return EXIT_OK
        return asyncio.run(_supervise(settings, Mode(arguments[1]), [Role(name) for name in arguments[2:]]))
    except EchoplaneError as error:
        structlog.get_logger().exception("process_failed")
        return exit_code(error)


async def _supervise(settings: Settings, mode: Mode, roles: Sequence[Role]) -> int:
    from echoplane._plane import child_environment  # noqa: PLC0415 - not a role's to pay for
    from echoplane._supervisor import AlreadyRunning, Supervisor  # noqa: PLC0415

    supervisor = Supervisor(settings, environment=child_environment(settings), mode=mode, roles=roles)
    try:
        await supervisor.claim()
    except AlreadyRunning:
        return EXIT_VERDICT_FALSE
    await supervisor.run()
    return EXIT_OK
