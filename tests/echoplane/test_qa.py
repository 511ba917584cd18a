"""
A run of questions, arms and budgets from frozen contexts to labels, by the commands that a user types.

Reader and judge are a local stand-in: it says what the test tells it to, so the figures are of the
arithmetic and say nothing about any model.
"""

import json

import pytest

from audit import agreement
from contracts.qa import QaCell, QaGold, QaResponse
from echoplane._cli import execute
from tests.echoplane.stand_in_model import MODEL, completion, stand_in

WEIGHTS = ("--stale", "1", "--conflict", "0.5", "--false-abstention", "0.25", "--kilotokens", "0.1")
QUESTIONS = {
    "h0q0": "Where does Ann live?",
    "h0q1": "What does Bob do?",
    "h0q2": "Where does Ruben live?",
    "h0q3": "What is Ann's blood type?",
}
GOLD = [
    QaGold(question="h0q0", answer="Ghent", stale=["Lyon"], rivals=[]),
    QaGold(question="h0q1", answer="a baker", stale=[], rivals=[]),
    QaGold(question="h0q2", answer="Leuven says one, Bruges another", stale=[], rivals=["Leuven", "Bruges"]),
    QaGold(question="h0q3", answer=None, stale=[], rivals=[]),
]
SAID = {
    ("h0q0", "ours"): "Ghent, no longer Lyon [e1]",
    ("h0q0", "window"): "She lives in Lyon. [e1]",
    ("h0q1", "ours"): "INSUFFICIENT_EVIDENCE",
    ("h0q1", "window"): "A baker [e1]",
    ("h0q2", "ours"): "INSUFFICIENT_EVIDENCE",
    ("h0q2", "window"): "Leuven [e7]",
    ("h0q3", "ours"): "INSUFFICIENT_EVIDENCE",
    ("h0q3", "window"): completion(None),
}


def cells():
    """Name each cell in its line, so that the stand-in knows what it is asked."""
    return [
        QaCell(
            question=question, arm=arm, budget=budget, text=text, tokens=budget // 2,
            lines=[f'[e1] 2024-01-01T00:00:00Z "x" user: "{question} {arm}"'],
        )
        for budget in (400, 800)
        for question, text in QUESTIONS.items()
        for arm in ("ours", "window")
    ]  # fmt: skip


def reads(_system, user):
    question, _, arm = user.partition('user: "')[2].partition('"')[0].partition(" ")
    return SAID[question, arm]


def judges(_system, user):
    texts = dict(zip(("question", "reference", "response"), user.split("\n")[1::2], strict=False))
    right = json.loads(texts["reference"]).lower() in json.loads(texts["response"]).lower()
    return "CORRECT" if right else "incorrect."


def write(path, records):
    path.write_text("".join(record.model_dump_json() + "\n" for record in records), encoding="utf-8")
    return path


def run(capsys, *arguments):
    code = execute([str(argument) for argument in arguments])
    said = capsys.readouterr()
    return code, [json.loads(line) for line in said.out.splitlines() if line.startswith("{")], said


@pytest.fixture
def served(monkeypatch, tmp_path):
    """A reader and a judge that are set, and the files of a run."""
    with stand_in(reads) as (reader, read), stand_in(judges) as (judge, judged):
        for name, value in (
            ("READER_URL", reader), ("READER_MODEL", MODEL), ("JUDGE_URL", judge), ("JUDGE_MODEL", MODEL),
            ("DATA_DIR", str(tmp_path / "data")),
        ):  # fmt: skip
            monkeypatch.setenv(f"ECHOPLANE_{name}", value)
        write(tmp_path / "contexts.jsonl", cells())
        write(tmp_path / "gold.jsonl", GOLD)
        yield read, judged


def test_from_frozen_contexts_to_an_objective_of_five_terms(served, capsys, tmp_path):
    read, judged = served
    folder, gold = tmp_path / "run", tmp_path / "gold.jsonl"

    # Gold stays closed until what was said is sealed: it is not even looked for.
    code, _, said = run(capsys, "audit", "judge", folder, "--gold", tmp_path / "none", *WEIGHTS)
    assert code == 2
    assert "not sealed" in said.err
    code, [seal], _ = run(capsys, "audit", "read", tmp_path / "contexts.jsonl", "--out", folder, "--json")
    assert (code, seal["cells"], len(read)) == (0, 16, 16)
    code, rows, _ = run(capsys, "audit", "judge", folder, "--gold", gold, *WEIGHTS, "--json")

    # Four distinct answers of sixteen cells, two budgets alike: each was judged once.
    assert (code, len(judged)) == (0, 4)
    assert [(row["arm"], row["budget"], row["rows"]) for row in rows] == [
        ("ours", 400, 4), ("ours", 800, 4), ("window", 400, 4), ("window", 800, 4)
    ]  # fmt: skip
    ours, window = rows[0], rows[2]
    # Ghent (though Lyon is named), the conflict and the unanswerable are right; the baker was there.
    assert (ours["accuracy"], ours["stale"], ours["conflict"], ours["false_abstentions"]) == (
        0.75,
        0,
        0,
        0.25,
    )
    assert ours["value"] == pytest.approx(0.75 - 0.25 * 0.25 - 0.1 * 0.2)
    # Lyon is of the past, Leuven is half a conflict, and saying nothing is a failure, no abstention.
    assert (window["accuracy"], window["stale"], window["conflict"]) == (0.25, 0.25, 0.25)
    assert (window["failures"], window["ungrounded"], window["false_abstentions"]) == (1, 1, 0)
    assert window["value"] == pytest.approx(0.25 - 0.25 - 0.5 * 0.25 - 0.1 * 0.2)
    assert rows[3]["kilotokens"] == 0.4


def test_what_the_set_does_not_say_is_not_observable_and_never_zero(served, capsys, tmp_path):
    plain = [QaGold(question=one.question, answer=one.answer) for one in GOLD]
    gold = write(tmp_path / "plain.jsonl", plain)
    run(capsys, "audit", "read", tmp_path / "contexts.jsonl", "--out", tmp_path / "run")

    _, rows, said = run(capsys, "audit", "judge", tmp_path / "run", "--gold", gold, *WEIGHTS, "--json")

    assert {(row["stale"], row["conflict"], row["value"]) for row in rows} == {(None, None, None)}
    # A set that says that there are none is another thing.
    none = write(
        tmp_path / "none.jsonl", [one.model_copy(update={"stale": [], "rivals": []}) for one in plain]
    )
    _, rows, _ = run(capsys, "audit", "judge", tmp_path / "run", "--gold", none, *WEIGHTS, "--json")
    assert {(row["stale"], row["conflict"]) for row in rows} == {(0, 0)}
    _, _, said = run(capsys, "audit", "judge", tmp_path / "run", "--gold", gold, *WEIGHTS)
    assert "stale answers        not observable" in said.out


def test_a_run_that_was_cut_off_goes_on_and_one_that_was_changed_does_not(served, capsys, tmp_path):
    read, _ = served
    folder, contexts = tmp_path / "run", tmp_path / "contexts.jsonl"
    run(capsys, "audit", "read", contexts, "--out", folder)
    whole = (folder / "responses.jsonl").read_bytes()
    (folder / "seal.json").unlink()
    (folder / "responses.jsonl").write_bytes(whole[: whole.index(b"\n", len(whole) // 2) - 7])
    read.clear()

    code, _, _ = run(capsys, "audit", "read", contexts, "--out", folder)

    assert (code, (folder / "responses.jsonl").read_bytes()) == (0, whole)
    assert 0 < len(read) <= 9
    assert (folder / "cut-off.jsonl").exists()
    (folder / "responses.jsonl").write_bytes(whole.replace(b"Lyon", b"Ghent"))
    code, _, said = run(capsys, "audit", "judge", folder, "--gold", tmp_path / "gold.jsonl", *WEIGHTS)
    assert (code, "changed after it was sealed" in said.err) == (2, True)


def test_a_judge_that_says_no_verdict_scores_zero_and_is_counted(served, capsys, tmp_path, monkeypatch):
    run(capsys, "audit", "read", tmp_path / "contexts.jsonl", "--out", tmp_path / "run")

    with stand_in(lambda *_: "It is CORRECT, I think") as (url, _):
        monkeypatch.setenv("ECHOPLANE_JUDGE_URL", url)
        _, rows, _ = run(
            capsys, "audit", "judge", tmp_path / "run", "--gold", tmp_path / "gold.jsonl", *WEIGHTS, "--json"
        )

    assert [(row["judge_failures"], row["correct"]) for row in rows] == [(1, 2), (1, 2), (3, 0), (3, 0)]


def test_a_packet_is_blind_and_its_labels_come_back_as_agreement(served, capsys, tmp_path):
    folder, gold, packet = tmp_path / "run", tmp_path / "gold.jsonl", tmp_path / "packet.jsonl"
    run(capsys, "audit", "read", tmp_path / "contexts.jsonl", "--out", folder)
    run(capsys, "audit", "judge", folder, "--gold", gold, *WEIGHTS)

    code, _, _ = run(
        capsys, "audit", "packet", folder, "--gold", gold, "--out", packet, "--budget", 400, "--questions", 3
    )

    items = [json.loads(line) for line in packet.read_text(encoding="utf-8").splitlines()]
    assert (code, len(items)) == (0, 4)
    assert {key for item in items for key in item} == {"item", "question", "reference", "response", "correct"}
    assert not any(
        word in packet.read_text(encoding="utf-8") for word in ("ours", "window", "incorrect", "h0q")
    )
    keys = [json.loads(line) for line in (folder / "packet-key.jsonl").read_text("utf-8").splitlines()]
    assert {budget for key in keys for _, budget in key["cells"]} == {400}
    assert [key["question"] for key in keys] != sorted(key["question"] for key in keys)
    unlabelled, _, _ = run(capsys, "audit", "agree", folder, "--labels", packet)
    assert unlabelled == 2
    for name, wrong in (("one", "none"), ("two", "She")):
        labelled = [
            item
            | {
                "correct": (item["response"] in {"Ghent, no longer Lyon", "A baker"})
                != (wrong in item["response"])
            }
            for item in items
        ]
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(one) + "\n" for one in labelled))
    code, found, _ = run(
        capsys, "audit", "agree", folder,
        "--labels", tmp_path / "one.jsonl", "--labels", tmp_path / "two.jsonl", "--json",
    )  # fmt: skip
    by_pair = {(one["one"], one["other"]): one for one in found}
    assert by_pair["one", "judge"]["raw"] == by_pair["one", "judge"]["kappa"] == 1
    assert (by_pair["one", "two"]["raw"], by_pair["one", "two"]["kappa"]) == (0.75, 0.5)


def test_kappa_is_cohens():
    """The worked example of the usual textbooks: 20, 5, 10 and 15 of 50 give 0.4."""
    pairs = [(True, True)] * 20 + [(True, False)] * 5 + [(False, True)] * 10 + [(False, False)] * 15

    found = agreement("a", "b", [(f"q{n}", one, other) for n, (one, other) in enumerate(pairs)])

    assert found.raw == 0.7
    assert found.kappa == pytest.approx(0.4)
    assert found.kappa_low < 0.4 < found.kappa_high
    assert agreement("a", "b", [("q", True, True)]).kappa is None


def test_every_cell_is_kept_in_the_order_of_the_cells(served, capsys, tmp_path):
    run(capsys, "audit", "read", tmp_path / "contexts.jsonl", "--out", tmp_path / "run")

    lines = (tmp_path / "run" / "responses.jsonl").read_text(encoding="utf-8").splitlines()
    responses = [QaResponse.model_validate_json(line) for line in lines]
    assert [response.key for response in responses] == [cell.key for cell in cells()]
    assert {response.status.value for response in responses} == {"answered", "abstained", "failed"}
