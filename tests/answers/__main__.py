"""
Typed answers on real input: `make answers ANSWERS="vintages PATH"`, or `armar7 PATH`, `locomo PATH`.

A plane of its own in a temporary folder, or the one in `--root`: what is not there yet is imported
first. Several questions are asked at once. Prints questions that were answered wrongly or withheld
wrongly, and tables.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import structlog

from contracts.answers import Answer, AnswerStatus
from tests.acceptance.planes import RunningPlane
from tests.answers import scoring
from tests.answers.asking import Asked, Table, questions, shuffled
from tests.answers.oracle import read
from tests.answers.robot import ask_robot
from tests.answers.talk import ask_talk

BUDGET_TOKENS = 16_384
"""A cell of the archive was told up to 84 times, and each is a line that an answer stands on."""

AT_ONCE = 6
"""Questions on their way: as many as keep two cores busy."""
PROGRESS = 1_000


def main() -> None:
    parser = argparse.ArgumentParser(prog="make answers", description=__doc__)
    parser.add_argument("what", choices=("vintages", "armar7", "locomo"))
    parser.add_argument("path", type=Path, help="the folder of the published files, or the file")
    parser.add_argument("--count", type=int, default=200, help="questions of each operation")
    parser.add_argument("--minutes", type=float, default=600, help="stop then, each kind asked as often")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="*", help="tenants, or conversations")
    parser.add_argument("--root", type=Path, help="a folder to keep the plane in")
    given = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    with _plane(given.root) as plane:
        if given.what == "armar7":
            ask_robot(plane, given.path)
            return
        if given.what == "locomo":
            asyncio.run(ask_talk(plane, given.path, only=given.only, budget_tokens=BUDGET_TOKENS))
            return
        for table in _tables(plane, given.path, given.only):
            asyncio.run(_ask(plane, table, count=given.count, seed=given.seed, minutes=given.minutes))


@contextmanager
def _plane(root: Path | None) -> Iterator[RunningPlane]:
    folder = root or Path(tempfile.mkdtemp(prefix="echoplane-answers-"))
    plane = RunningPlane(folder)
    plane.up()
    try:
        yield plane
    finally:
        plane.down()
        if root is None:
            shutil.rmtree(folder)


def _tables(plane: RunningPlane, folder: Path, only: list[str] | None) -> Iterator[Table]:
    files = (
        ("gdp", "gdp", "statistics", "quarter", "gdp_vintages.csv.gz", ("id", "time", "pub_date", "value")),
        ("covid", "case_rate", "archive", "day", "covid_archive.csv.gz",
         ("geo_value", "time_value", "version", "case_rate_7d_av")),
    )  # fmt: skip
    for tenant, relation, source, period, name, columns in files:
        if only and tenant not in only:
            continue
        with plane.http() as client:
            is_there = client.get(f"/v1/{tenant}").status_code == 200
        if not is_there:
            entity, valid, known, value = columns
            print(
                plane.run(
                    "import", "vintages", str(folder / name), "--tenant", tenant, "--relation", relation,
                    "--source", source, "--period", period,
                    "--columns", f"entity={entity},valid={valid},known={known},value={value}",
                ).strip()
            )  # fmt: skip
        cells = read(folder / name, entity=columns[0], valid=columns[1], known=columns[2], value=columns[3])
        yield Table(
            tenant=tenant, relation=relation, source=source, quarterly=period == "quarter", cells=cells
        )


async def _ask(plane: RunningPlane, table: Table, *, count: int, seed: int, minutes: float) -> None:
    """Ask through HTTP and the whole plane, discovery and all: the door that a user has."""
    found: list[tuple[Asked, str]] = []
    waiting = iter(shuffled(questions(table, count=count, seed=seed), seed=seed))
    started = time.perf_counter()

    async def ask_on(client: httpx.AsyncClient) -> None:
        for asked in waiting:
            if time.perf_counter() > started + 60 * minutes:
                return
            request = {"question": asked.text, "budget": BUDGET_TOKENS}
            reply = await client.post(f"/v1/{table.tenant}/ask", json=request)
            body = reply.raise_for_status().json()
            answer = Answer(
                status=AnswerStatus(body["status"]), value=body["answer"], cites=tuple(body["cites"]),
                reason=body["reason"],
            )  # fmt: skip
            verdict = scoring.judge(asked, answer)
            found.append((asked, verdict))
            if verdict in {scoring.WRONG, scoring.STALE, scoring.FALSE}:
                print(f"{verdict}: {asked.text}\n  truth {asked.truth}\n  {answer}", flush=True)
            if len(found) % PROGRESS == 0:
                print(f"{table.tenant}: {len(found)} asked", flush=True)

    async with plane.async_client() as client:
        await asyncio.gather(*(ask_on(client) for _ in range(AT_ONCE)))
    seconds = time.perf_counter() - started
    print(f"{table.tenant}: {len(found)} questions in {seconds:.0f} s, {AT_ONCE} at once\n")
    print(scoring.table(found), flush=True)


if __name__ == "__main__":
    main()
