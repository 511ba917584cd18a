"""
Fit the weights of the routes, and hold them against those set by hand: `make fit FIT="--locomo PATH …"`.

Every figure of fitted weights is of questions that they were not fitted on: of another history than
any of these (`history left out`), and of another set (`set left out`). The file that is written says
what it was fitted on. It is not read by the plane: weights set by hand are what runs.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from audit._statistics import Sums, bootstrap
from discovery import load_minilm
from discovery._routes import ROUTES
from echoplane._evaluation_arms import VectorCache
from tests.fit.examples import READERS, Example, examples
from tests.fit.learner import PENALTY, Numbers, fit

TOP = 10
SEED = 1
FOLDER = Path(__file__).resolve().parents[2] / "artifacts" / "fit"
LICENCE = "Fitted on sets that are licensed for research alone, or not at all: not for any other use."

Scorer = Callable[[Example], Numbers]


def main() -> None:
    parser = argparse.ArgumentParser(prog="make fit", description=__doc__)
    for name in READERS:
        parser.add_argument(f"--{name}", type=Path, metavar="PATH", help="the files as published")
    parser.add_argument("--vectors", type=Path, help="a folder that keeps vectors and the model's graph")
    parser.add_argument("--out", type=Path, default=FOLDER / "weights.json")
    given = vars(parser.parse_args())
    paths = {name: given[name] for name in READERS if given[name] is not None}
    if not paths:
        parser.error("name at least one set")
    with tempfile.TemporaryDirectory() as temporary:
        folder = given["vectors"] or Path(temporary)
        model = load_minilm(folder)
        embed = VectorCache(folder, model_digest=model.model_digest, embed=model.embed)
        found = [pair for name, path in paths.items() for pair in examples(name, path, embed)]
    known = [example for example, _ in found]
    weights = fit(known)
    figures = {name: _compared(known, name) for name in paths}
    digests = {example.history: digest for example, digest in found}
    given["out"].parent.mkdir(parents=True, exist_ok=True)
    given["out"].write_text(json.dumps(_file(weights, digests, figures, model.model_digest), indent=1) + "\n")
    for name, rows in figures.items():
        print(f"{name}: {sum(example.data_set == name for example in known)} questions")
        for row, values in rows.items():
            print(f"  {row:<18}" + "  ".join(f"{key} {value}" for key, value in values.items()))
    print(f"weights in {given['out']}")


def _compared(known: Sequence[Example], data_set: str) -> dict[str, dict[str, str]]:
    """Return the figures of a set by hand, and fitted without each history and without the set."""
    own = [example for example in known if example.data_set == data_set]
    hand = [_outcome(example, example.by_hand) for example in own]
    rows = {"by hand": _figures(hand, None)}
    histories = {example.history for example in own}
    if len({example.history for example in known}) > 1:
        fitted = {
            history: fit([example for example in known if example.history != history])
            for history in sorted(histories)
        }
        outcomes = [_outcome(example, example.features @ fitted[example.history]) for example in own]
        rows["history left out"] = _figures(outcomes, hand)
    others = [example for example in known if example.data_set != data_set]
    if others:
        weights = fit(others)
        rows["set left out"] = _figures(
            [_outcome(example, example.features @ weights) for example in own], hand
        )
    return rows


def _outcome(example: Example, scores: Numbers) -> tuple[float, float, float, float]:
    """Return whether any gold is among the first ten, how much, of how much, and one over its first rank."""
    # Rows come in the order of the weights set by hand, so that ties fall to it.
    gold = example.gold[np.argsort(-scores, kind="stable")]
    first = np.flatnonzero(gold)
    rank = 1 / (1 + int(first[0])) if len(first) else 0.0
    return float(gold[:TOP].any()), float(gold[:TOP].sum()), float(example.gold_count), rank


def _figures(
    outcomes: Sequence[tuple[float, float, float, float]],
    against: Sequence[tuple[float, float, float, float]] | None,
) -> dict[str, str]:
    shown = {}
    for name, above, below in (("Hit@10", 0, None), ("recall@10", 1, 2), ("MRR", 3, None)):
        ours = _sums(outcomes, above, below)
        text = f"{100 * sum(ours.numerators) / sum(ours.denominators):.1f}"
        if against is not None:
            theirs = _sums(against, above, below)
            interval = bootstrap(ours, theirs, seed=SEED)
            if interval is not None:
                text += f" [{100 * interval.low:+.1f} {100 * interval.high:+.1f}]"
        shown[name] = text
    return shown


def _sums(outcomes: Sequence[tuple[float, ...]], above: int, below: int | None) -> Sums:
    return Sums(
        numerators=[outcome[above] for outcome in outcomes],
        denominators=[1.0 if below is None else outcome[below] for outcome in outcomes],
    )


def _file(
    weights: Numbers,
    digests: dict[str, str],
    figures: dict[str, dict[str, dict[str, str]]],
    model_digest: str,
) -> dict[str, object]:
    half = len(ROUTES)
    return {
        "licence": LICENCE,
        "fitted_on": digests,
        "model": model_digest,
        "penalty": PENALTY,
        "weights": {
            route: {
                "always": round(float(weights[place]), 4),
                "times_shortness": round(float(weights[half + place]), 4),
            }
            for place, route in enumerate(ROUTES)
        },
        "figures": figures,
    }


if __name__ == "__main__":
    main()
