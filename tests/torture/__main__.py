"""`make torture`: hurt a plane at random for a while; the last line is the verdict."""

from __future__ import annotations

import argparse
import secrets
import signal
import sys

from tests.torture.run import torture


def main() -> int:
    parser = argparse.ArgumentParser(prog="make torture", description=__doc__)
    parser.add_argument("--seed", type=int, default=None, help="of what is written and done; else a new one")
    parser.add_argument("--seconds", type=float, default=600.0, help="how long; 600 if left out")
    given = parser.parse_args()
    seed = secrets.randbelow(2**32) if given.seed is None else given.seed
    print(f"seed {seed}", flush=True)
    # Ended from outside, it must not leave its processes behind.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    verdict = torture(
        seed=seed, seconds=given.seconds, pause_seconds=(0.5, 3.0), say=lambda line: print(line, flush=True)
    )
    for problem in verdict.problems:
        print(problem)
    print(verdict.line())
    return 0 if verdict.passed else 1


if __name__ == "__main__":
    sys.exit(main())
