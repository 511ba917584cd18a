"""
Issue 2, accepted when 2 and 1: public logs are imported without one projection failure and can be asked.

The answers are printed, good or bad; they are not judged here. And the demonstration meets every
expectation that stands beside its questions.
"""

from __future__ import annotations

import json

import pytest

from tests.acceptance.planes import SHARED_DATA, own_plane

CONVERSATION = SHARED_DATA / "locomo/locomo5.json.gz"
ROBOT = SHARED_DATA / "robot/armar7/events.jsonl.gz"
ASKED = {
    "talk": (
        "Where does Caroline live?", "What does Melanie like?", "How many pets does Melanie have?",
        "When did Caroline go to the support group?", "What is Caroline's job?", "Is Melanie married?",
        "What did Melanie paint?", "Which languages does Caroline speak?", "Where did Caroline move from?",
        "Tell me about Melanie's children.",
    ),
    "robot": (
        "What did the robot do first?", "How often did the robot grasp something?",
        "Where is the robot?", "What failed?", "Which skills were executed?", "What did the robot see?",
        "When did the robot last move?", "What did the person ask for?", "Is the robot holding anything?",
        "Summarize what happened.",
    ),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.skipif(
    not (CONVERSATION.exists() and ROBOT.exists()), reason=f"no public data sets in {SHARED_DATA}"
)
def test_public_logs_are_imported_without_a_projection_failure_and_can_be_asked():
    imports = {
        "talk": ("import", "locomo", str(CONVERSATION), "--conversation", "conv-26", "--tenant", "talk"),
        "robot": ("import", "armar7", str(ROBOT), "--tenant", "robot"),
    }
    with own_plane() as plane:
        for tenant, command in imports.items():
            [imported] = plane.say(*command)
            print(f"\n{tenant}: {imported['events']} events, {imported['projection_failures']} failures")
            assert imported["projection_failures"] == 0
            assert imported["folded"] == imported["commit"] > 0
            with plane.http() as client:
                for question in ASKED[tenant]:
                    asked = client.post(f"/v1/{tenant}/ask", json={"question": question})
                    assert asked.status_code == 200, asked.text
                    answer = asked.json()
                    first = answer["context"]["lines"][:1]
                    print(
                        f"  {question}\n    {answer['status']}: {answer['answer']} {answer['reason'] or ''}"
                    )
                    print(f"    {first[0]['text'][:90] if first else 'no evidence'}")
                    replayed = client.post(f"/v1/{tenant}/contexts/{answer['context']['hash']}/replay")
                    assert replayed.json()["verdict"] == "identical"


def test_the_demonstration_meets_its_expectations(tmp_path):
    with own_plane() as plane:
        # A data folder of its own: the demonstration starts and stops a plane itself.
        lines = plane.run("demo", "--data-dir", str(plane.root / "demo"), "--json").splitlines()

    assert len([line for line in lines if json.loads(line)["status"]]) == 8
