"""
How near the packer's choice comes to the best possible: held against HiGHS, exact to its last digit.

Real instances are closures that questions to public conversations made, numbers alone: the shapes in
`tests/data`, each under ten budgets. Random ones share events, which makes them harder.
"""

from __future__ import annotations

import gzip
import json
import random
import statistics
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array

from contracts.contexts import Closure
from packing._choose import Head, Size, choose, parts_of, worth
from tests.bench.grounds import Grounds
from tests.bench.measure import Row

SHAPES = Path(__file__).parents[1] / "data" / "packing_shapes.json.gz"
BUDGETS = (384, 512, 768, 1_024, 1_536, 2_048, 3_072, 4_096, 7_000)
RANDOM = 1_000
SOLVER_SECONDS = 5.0

Instance = tuple[list[Closure], dict[str, Size], int]


def exact(closures: Sequence[Closure], sizes: dict[str, Size], budget_tokens: int) -> float:
    """Return an upper bound of the worth that fits: the best there is, where the solver ends in time."""
    costs = parts_of({member for one in closures for member in one.members}, sizes)
    parts = {part: n for n, part in enumerate(costs)}
    pairs = [(n, parts[part]) for n, one in enumerate(closures) for part in parts_of(one.members, sizes)]
    count = len(closures)
    # A closure is shown only with each of its parts; parts take room.
    rows = np.repeat(np.arange(len(pairs)), 2)
    columns = np.array([[n, count + m] for n, m in pairs]).ravel()
    values = np.tile([1.0, -1.0], len(pairs))
    room = np.full(len(parts), len(pairs))
    matrix = csr_array((
        np.concatenate([values, [float(tokens) for tokens, _ in costs.values()]]),
        (np.concatenate([rows, room]), np.concatenate([columns, count + np.arange(len(parts))])),
    ))  # fmt: skip
    scale = 1e6 / max(worth(one) for one in closures)
    found = milp(
        np.array([-worth(one) * scale for one in closures] + [0.0] * len(parts)),
        constraints=LinearConstraint(matrix, -np.inf, np.array([0.0] * len(pairs) + [float(budget_tokens)])),
        integrality=np.array([1] * count + [0] * len(parts)),
        bounds=Bounds(0, 1),
        options={"mip_rel_gap": 1e-9, "time_limit": SOLVER_SECONDS},
    )
    return float(-found.mip_dual_bound / scale)


def real() -> list[Instance]:
    found: list[Instance] = []
    for shape in json.loads(gzip.decompress(SHAPES.read_bytes()))["shapes"]:
        heads = [Head(number=n, tokens=t, bytes_=b) for n, (t, b) in enumerate(shape["heads"])]
        sizes = {
            str(n): Size(tokens=t, bytes_=b, heads=tuple(heads[head] for head in below))
            for n, (t, b, below) in enumerate(shape["sizes"])
        }
        closures = [
            Closure(closure_id=f"{n:03}", members=tuple(map(str, members)), utility_ppm=score, required=False)
            for n, (score, members) in enumerate(shape["closures"])
        ]
        found += [(closures, sizes, budget) for budget in BUDGETS]
    return found


def drawn(chance: random.Random) -> Instance:
    """Return a hard one: closures of up to three events, many of them shared."""
    count = chance.choice((16, 64, 256))
    events = [f"e{n}" for n in range(count)]
    sizes = {event: Size(tokens=chance.randint(10, 150), bytes_=1, heads=()) for event in events}
    closures = [
        Closure(
            closure_id=f"c{n:03}", members=tuple(chance.sample(events, chance.choice((1, 1, 2, 3)))),
            utility_ppm=chance.randint(1_000, 1_000_000), required=False,
        )
        for n in range(count)
    ]  # fmt: skip
    return closures, sizes, chance.choice((300, 768, 2_048))


async def choices(at: Grounds, *, large: bool) -> AsyncIterator[Row]:
    """The gap to the best, and how long a choice takes (processor time)."""
    yield gaps_of("choice, real shapes", real())
    count = RANDOM if large else RANDOM // 10
    yield gaps_of("choice, random", [drawn(at.chance) for _ in range(count)])
    whole = [one for one in real() if one[2] == BUDGETS[-1]]
    seconds = []
    for closures, sizes, _ in whole:
        more = _to_256(closures)
        started = time.process_time()
        choose(more, sizes, budget_tokens=2_048)
        seconds.append(1_000 * (time.process_time() - started))
    yield Row(bench="choice, 256 closures", size=256, n=len(seconds), unit="ms",
              value=statistics.median(seconds), p95=_p95(seconds))  # fmt: skip


def gaps_of(name: str, instances: Sequence[Instance]) -> Row:
    gaps = []
    for closures, sizes, budget in instances:
        admitted = set(choose(closures, sizes, budget_tokens=budget).admitted)
        reached = sum(worth(one) for one in closures if one.closure_id in admitted)
        gaps.append(max(0.0, 100 * (1 - reached / exact(closures, sizes, budget))))
    size, note = max(len(one[0]) for one in instances), f"gap; worst {max(gaps):.2f} %"
    return Row(bench=name, size=size, n=len(gaps), unit="%", value=statistics.median(gaps), p95=_p95(gaps),
               note=note)  # fmt: skip


def _to_256(closures: Sequence[Closure]) -> list[Closure]:
    more = [
        Closure(closure_id=f"{one.closure_id}b", members=one.members, utility_ppm=one.utility_ppm,
                required=False)
        for one in closures[: 256 - len(closures)]
    ]  # fmt: skip
    return [*closures, *more]


def _p95(values: Sequence[float]) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, round(0.95 * len(ordered)))]
