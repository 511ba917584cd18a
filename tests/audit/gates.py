"""A gate over the small made set, and what runs it."""

from __future__ import annotations

import json

from audit import (
    GatePlace,
    GateRegister,
    check_gate,
    code_now,
    data_digests,
    gold_lines,
    register_gate,
    run_gate,
)
from contracts.artifacts import NOT_OBSERVABLE, ModelDigest
from contracts.gates import Gate
from tests.audit.bundles import ENVIRONMENT, Ticking, prediction_of, rank_of, run_of

MODEL = ModelDigest(name="small", sha256="a" * 64, prompt_sha256=None)


class Runner:
    """Ranks as `bundles.rank_of` says; a test turns it into one that cheats."""

    def __init__(self, beam):
        self.beam, self.model, self.rank, self.left_out = beam, MODEL, rank_of, set()
        self.gold_reads, self.hidden = 0, set()

    def values(self, number, arm):
        return {"query_ms": 10 + number}

    def models(self):
        return (self.model,)

    async def predict(self, gate, data, recorder):
        for line in gold_lines(self.beam.data_set, data):
            for arm in gate.run.arms:
                number = int(line.question.partition("q")[2])
                prediction = prediction_of(line, arm, rank=self.rank(number, arm))
                if line.question in self.hidden:
                    nothing = {"ranked": (), "sessions": (), "scores": (), "failure": NOT_OBSERVABLE}
                    prediction = prediction.model_copy(update=nothing)
                if prediction.key not in recorder.done and line.question not in self.left_out:
                    recorder.predict(prediction, self.values(number, arm))
        return {}

    def gold(self, gate, data):
        self.gold_reads += 1
        return gold_lines(self.beam.data_set, data)


class Gates:
    """A folder of gates with a source tree of its own, whose code a test may change."""

    def __init__(self, root, beam):
        self.beam, self.root = beam, root
        self.clock = Ticking()
        (root / "code").mkdir(parents=True)
        (root / "code" / "ranker.py").write_text("WEIGHT = 1\n")
        self.runner, self.models, self.arms = Runner(beam), (MODEL,), ("ours", "bm25")

    @property
    def place(self):
        """Read anew each time, as each command does."""
        return GatePlace(
            register=GateRegister(self.root / "gates"),
            out=self.root / "artifacts",
            root=self.root,
            clock=self.clock,
            environment=ENVIRONMENT,
        )

    def file(self, name):
        return self.root / "gates" / f"{name}.json"

    def write(self, name="small", *, at_least=0.5, **changes):
        """Write a gate's file, and return the gate."""
        place = self.place
        run = run_of(
            name=name,
            data_set="beam",
            data=data_digests(self.beam.path),
            code=code_now(place, ("code",)),
            models=self.models,
            arms=self.arms,
            level=changes.pop("level", "visible development"),
        )
        given = {
            "form": "echoplane/gate/1",
            "name": name,
            "question": "Does it find what is there?",
            "runner": "retrieval",
            "run": run.model_dump(mode="json"),
            "denominators": {"questions": 12, "with_gold": 12},
            "conditions": [
                {
                    "formula": {"name": "hit@10", "of": "share", "arm": "ours", "column": "hit@10"},
                    "at_least": at_least,
                    "at_most": None,
                },
                {
                    "formula": {"name": "questions", "of": "count", "arm": "ours"},
                    "at_least": 12,
                    "at_most": None,
                },
            ],
            "stopping": {"skips": [], "reserved": []},
            "comparison": None,
        }
        text = json.dumps({**given, **changes})
        self.file(name).parent.mkdir(exist_ok=True)
        self.file(name).write_text(text)
        return Gate.model_validate_json(text)

    def registered(self, name="small", **changes):
        gate = self.write(name, **changes)
        register_gate(self.place, gate)
        return gate


async def run(gates, name="small"):
    return await run_gate(gates.place, name, gates.runner, data=gates.beam.path)


def checked(gates, name="small"):
    return check_gate(gates.place.register, name, out=gates.place.out).problems
