"""Who comes back to what was before says so in one text, and is believed."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from contracts.trails import Question
from contracts.views import ViewRequest

AT = ViewRequest(
    valid_at=datetime(2026, 1, 15, 12, tzinfo=UTC), known_at=None, generation=None, min_commit=None
)
ASKED = Question(text="?", budget_tokens=4_096, disclose_conflicts=False)
TOLD = {
    "Ann": "I moved to Rome in 2018. I moved to Oslo in 2020. I moved to Rome in 2022.",
    "Bea": "I started at Acme in 2018. I started at Bolt in 2020. I started at Acme in 2022.",
    "Cem": "I like tea. I no longer like tea. I like tea.",
    "Dee": "I work at Acme since 2010. I quit my job at Acme in 2015. I work at Acme since 2020.",
    "Eve": "The mug is on the table. I put the mug on the shelf. I put the mug on the table.",
    "Fay": "I visited Bonn in May 2019. I visited Kiel in May 2020. I visited Bonn in May 2021.",
    "Gus": "I like jazz. I really like jazz. I like jazz.",
}
ANSWERS = {
    "Where does Ann live?": "Rome",
    "Where does Bea work?": "Acme",
    "Does Cem like tea?": True,
    "Where does Dee work?": "Acme",
    "Where is the mug?": "table",
    "How often did Fay visit Bonn?": 2,
}


async def test_what_is_said_again_after_something_else_is_news(plane, remember, turn):
    await remember(
        "home",
        *(turn(text, who=who, at="2024-05-01T10:00:00Z") for who, text in TOLD.items()),
    )

    answers = {}
    for text in ANSWERS:
        answer = (await plane.path.ask("home", replace(ASKED, text=text), AT, wait_ms=0)).answer
        answers[text] = answer.value if answer.status == "answered" else answer

    assert answers == ANSWERS
