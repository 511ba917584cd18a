"""
What mem0 ranks for the questions of a public set, as a file that `echoplane eval --ranking mem0=FILE` reads.

    python -m tests.bench.mem0_ranking SET PATH FILE --vectors DIR

It needs the environment that `make bench` makes, and says so where it is not there. Vectors are those of the
plane's own model; no language model is asked and no gold is read.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from pathlib import Path

from audit import DATA_SETS, said
from discovery import load_minilm
from echoplane._evaluation_arms import VectorCache
from tests.bench.arms import arm
from tests.bench.discovery_benches import QUIET


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("set", choices=sorted(DATA_SETS))
    parser.add_argument("path", type=Path)
    parser.add_argument("file", type=Path)
    parser.add_argument("--vectors", type=Path, required=True)
    given = parser.parse_args()
    lines = asyncio.run(rank(given.set, given.path, given.vectors))
    if lines is None:
        print("mem0: not available; `make bench` makes the environment that it runs in")
        return
    given.file.write_text("".join(f"{line}\n" for line in lines))
    print(f"mem0: {len(lines)} questions ranked in {given.file}")


async def rank(name: str, path: Path, vectors: Path) -> list[str] | None:
    """Return the lines of the file; None where mem0 is not installed."""
    model = load_minilm(vectors)
    embed = VectorCache(vectors, model_digest=model.model_digest, embed=model.embed)
    async with arm("mem0_ranking_arm.py", "store", environment=QUIET) as other:
        if other is None:
            return None
        lines = []
        for number, history in enumerate(DATA_SETS[name].read(path)):
            turns = said(history)
            questions = [question.text for question in history.questions]
            ranked = await other.ask(
                "rank",
                {
                    key: [[text, row.tolist()] for text, row in zip(texts, embed(texts), strict=True)]
                    for key, texts in (("turns", turns), ("questions", questions))
                },
            )
            lines += [
                json.dumps({"history": number, "question": question, "ranked": found})
                for question, found in enumerate(ranked)
            ]
    return lines


if __name__ == "__main__":
    main()
