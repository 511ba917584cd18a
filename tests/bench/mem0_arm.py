"""
mem0 with its local store: run with an interpreter of its own that has it and nothing of ours.

Reads one JSON object a line: `{"add": [[text, vector], …]}`, `{"search": [[text, vector], …]}`; answers
with the seconds of all, or of each. No language model is asked, vectors are given, nothing is sent.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from mem0 import Memory

USER = "u"


class Given:
    """An embedding model that is told its vectors."""

    def __init__(self) -> None:
        self.vectors: dict[str, list[float]] = {}

    def embed(self, text: str, *_: object, **__: object) -> list[float]:
        return self.vectors[text]

    def embed_batch(self, texts: list[str], *_: object, **__: object) -> list[list[float]]:
        return [self.vectors[text] for text in texts]


def main() -> None:
    folder = Path(sys.argv[1])
    memory = Memory.from_config({
        "vector_store": {
            "provider": "qdrant",
            "config": {
                "path": str(folder / "qdrant"), "on_disk": True, "embedding_model_dims": 384,
                "collection_name": "units",
            },
        },
        "history_db_path": str(folder / "history.db"),
    })  # fmt: skip
    given = Given()
    memory.embedding_model = given
    for line in sys.stdin:
        [(name, pairs)] = json.loads(line).items()
        given.vectors = dict(pairs)
        seconds = []
        for text, _ in pairs:
            started = time.perf_counter()
            if name == "add":
                memory.add(text, user_id=USER, infer=False)
            else:
                memory.search(text, filters={"user_id": USER}, top_k=10)
            seconds.append(time.perf_counter() - started)
        print(json.dumps(sum(seconds) if name == "add" else seconds), flush=True)


main()
