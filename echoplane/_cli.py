"""
The command line: parses, calls a use case, prints the answer.

Exit codes stand in one table, `echoplane._failures`: 0, 1 (the verdict is no), and one for each
category of error.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from typing import Final

import typer
from typer.exceptions import Abort, Exit, TyperException

from contracts.errors import BadRequest, EchoplaneError
from echoplane import (
    _cli_ask,
    _cli_audit,
    _cli_conformance,
    _cli_data,
    _cli_dead,
    _cli_discovery,
    _cli_epochs,
    _cli_erase,
    _cli_eval,
    _cli_events,
    _cli_gate,
    _cli_log,
    _cli_move,
    _cli_reads,
    _cli_relations,
    _cli_run,
    _cli_tenants,
    _cli_views,
)
from echoplane._cli_options import report
from echoplane._failures import exit_code
from echoplane._logging import configure_logging

USAGE_EXIT: Final = 2

app = typer.Typer(
    name="echoplane",
    help="A memory plane for long-running agents. Without `up`, a command starts what it needs and the "
    "last one to finish stops it.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
_cli_run.register(app)
_cli_data.register(app)
_cli_log.register(app)
_cli_events.register(app)
_cli_ask.register(app)
_cli_reads.register(app)
_cli_views.register(app)
_cli_relations.register(app)
_cli_epochs.register(app)
_cli_dead.register(app)
_cli_discovery.register(app)
_cli_conformance.register(app)
_cli_audit.register(app)
_cli_gate.register(app)
_cli_erase.register(app)
_cli_eval.register(app)
_cli_tenants.register(app)
_cli_move.register(app)


def main() -> None:
    """Run one command and exit with its code."""
    sys.exit(execute(sys.argv[1:]))


def execute(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code; errors are printed, never raised."""
    as_json = "--json" in arguments
    # A command answers on standard output and reports on standard error; what it went through is no answer.
    configure_logging("error")
    try:
        result = app(args=list(arguments), prog_name="echoplane", standalone_mode=False)
    except EchoplaneError as error:
        report(error, as_json=as_json)
        return exit_code(error)
    except TyperException as error:
        words = error.format_message() if hasattr(error, "format_message") else str(error)
        if words:
            report(BadRequest(field="command line", reason=words), as_json=as_json)
        return USAGE_EXIT
    except Exit as end:
        return end.exit_code
    except (Abort, KeyboardInterrupt):
        return 128 + signal.SIGINT
    except BrokenPipeError:
        # The reader of our output left; there is nobody to tell.
        sys.stderr.close()
        return 128 + signal.SIGPIPE
    return result if isinstance(result, int) else 0
