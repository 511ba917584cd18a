"""`ask --explain`: which routes brought a candidate, with rank and score."""

from __future__ import annotations

from contracts.context_wire import CandidateAnswer, HitAnswer, RouteAnswer
from contracts.wire import AskAnswer
from echoplane._cli_ask import print_candidates


def test_each_candidate_is_shown_with_the_routes_that_brought_it(capsys):
    answer = AskAnswer.model_construct(
        routes=[
            RouteAnswer(route="dense", state="late", generation="1:7", count=40, duration_us=1_500),
            RouteAnswer(route="graph", state="off", generation="1:7", count=0, duration_us=0),
        ],
        candidates=[
            CandidateAnswer(
                unit="ev2",
                events=["ev2"],
                score_ppm=523_400,
                hits=[
                    HitAnswer(route="dense", rank=3, score_ppm=910_000),
                    HitAnswer(route="reply", rank=1, score_ppm=1_000_000),
                ],
            )
        ],
    )

    print_candidates(answer)

    late, off, found = capsys.readouterr().out.splitlines()
    assert late.split() == ["route", "dense", "late", "40", "units", "1.5", "ms", "at", "1:7"]
    assert off.split()[1:4] == ["graph", "off", "0"]
    assert found.split() == ["1", "ev2", "0.5234", "dense", "3", "(0.910),", "reply", "1", "(1.000)"]
