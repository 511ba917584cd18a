from __future__ import annotations

import json

import pytest

from audit import DATA_SETS, BundleRecorder, data_digests, gold_lines
from tests.audit.bundles import ENVIRONMENT, FORMULAS, Ticking, predict, run_of
from tests.audit.gates import Gates


class SmallBeam:
    """A made chat in BEAM's form: forty messages, twelve questions, each with gold at its own number."""

    data_set = DATA_SETS["beam"]

    def __init__(self, path):
        self.path = path
        self._questions = path / "1" / "probing_questions.json"
        self._questions.parent.mkdir(parents=True)
        turns = [
            {"role": "user" if n % 2 == 0 else "assistant", "id": n, "content": f"Message {n}."}
            for n in range(40)
        ]
        turns[0]["time_anchor"] = "March-15-2024"
        chat = [{"batch_number": 1, "time_anchor": None, "turns": [turns]}]
        (path / "1" / "chat.json").write_text(json.dumps(chat))
        self._write([[n] for n in range(12)])

    def _write(self, gold):
        kinds = ("information_extraction", "summarization")
        asked = {
            kind: [
                {"question": f"Which is {n}?", "source_chat_ids": ids}
                for n, ids in enumerate(gold)
                if n // 6 == place
            ]
            for place, kind in enumerate(kinds)
        }
        self._questions.write_text(json.dumps(asked))

    def turn_gold(self):
        self._write([[n + 1] for n in range(12)])

    def gold(self):
        return gold_lines(self.data_set, self.path)

    def bundle(self, out):
        run = run_of(data_set="beam", data=data_digests(self.path))
        with BundleRecorder.open(out, run=run, clock=Ticking(), environment=ENVIRONMENT) as recorder:
            predict(recorder, gold=self.gold())
            recorder.seal()
            recorder.score(self.gold())
            return recorder.finish(FORMULAS, {})


@pytest.fixture
def small_beam(tmp_path):
    return SmallBeam(tmp_path / "beam")


@pytest.fixture
def gates(tmp_path, small_beam):
    return Gates(tmp_path / "repository", small_beam)
