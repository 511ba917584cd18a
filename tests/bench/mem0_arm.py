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

from mem0_local import local_memory

USER = "u"


def main() -> None:
    memory, given = local_memory(Path(sys.argv[1]))
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
