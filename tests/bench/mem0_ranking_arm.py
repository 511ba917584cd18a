"""
mem0 with its local store, ranking turns: run with an interpreter of its own that has it and nothing of ours.

Reads one JSON object a line: `{"rank": {"turns": [[text, vector], …], "questions": [[text, vector], …]}}`;
answers with the places of turns for each question, best first. No language model is asked (`infer=False`).
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from mem0_local import local_memory

RANKED_MAX = 100


def main() -> None:
    memory, given = local_memory(Path(sys.argv[1]))
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
