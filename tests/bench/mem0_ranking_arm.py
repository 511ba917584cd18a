"""
mem0 with its local store, ranking turns: run with an interpreter of its own that has it and nothing of ours.

Reads one JSON object a line: `{"rank": {"turns": [[text, vector], …], "questions": [[text, vector], …]}}`;
answers with the places of turns for each question, best first. No language model is asked (`infer=False`).
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from mem0 import Memory

RANKED_MAX = 100


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
                "collection_name": "turns",
            },
        },
        "history_db_path": str(folder / "history.db"),
    })  # fmt: skip
    memory.embedding_model = given = Given()
    for number, line in enumerate(sys.stdin):
        asked = json.loads(line)["rank"]
        given.vectors = dict(asked["turns"]) | dict(asked["questions"])
        user = f"h{number}"
        for place, (text, _) in enumerate(asked["turns"]):
            if text.strip():
                memory.add(text, user_id=user, metadata={"place": place}, infer=False)
        ranked = [
            [
                found["metadata"]["place"]
                for found in memory.search(text, filters={"user_id": user}, top_k=RANKED_MAX)["results"]
            ]
            for text, _ in asked["questions"]
        ]
        print(json.dumps(ranked), flush=True)


main()
