"""The robot's own questions, in their own words. Printed, and kept nowhere."""

from __future__ import annotations

import json
from pathlib import Path

from tests.acceptance.planes import RunningPlane

ANSWERABLE = (
    "explain-4", "req-at-time-1", "req-at-time-3", "action-detail-2", "action-detail-3", "action-detail-5",
    "objects-1", "objects-2", "events-4", "problems-1", "problems-2",
)  # fmt: skip
"""By the ends of their ids, the questions that the published part of the log can answer."""


def ask_robot(plane: RunningPlane, folder: Path) -> None:
    """Import the log and ask the eleven questions: each as of the time at which it was put."""
    with plane.http() as client:
        if client.get("/v1/armar7").status_code != 200:
            print(
                plane.run("import", "armar7", str(folder / "events.jsonl.gz"), "--tenant", "armar7").strip()
            )
        rows = json.loads((folder / "qa.json").read_text(encoding="utf-8"))
        for row in rows:
            if not row["id"].endswith(ANSWERABLE):
                continue
            asked = {"question": row["q"]}
            if "q_time" in row:
                asked["valid_at"] = row["q_time"].replace(" ", "T") + "Z"
            body = client.post("/v1/armar7/ask", json=asked, timeout=300).json()
            lines = body["context"]["lines"]
            print(f"{row['id']}: {row['q']}\n  {body['status']} {body['answer']} ({body['reason']}), "
                  f"{len(lines)} lines, cites {body['cites'][:8]}\n  expected: {row['a']}")  # fmt: skip
