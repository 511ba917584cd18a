"""Projectors that die, and that read more than the one before."""

from __future__ import annotations

from contracts.claims import ProjectedClaim
from contracts.events import ClaimDraft, Stance
from tests.ledger.scenario_logs import PlainProjector


class Dies(PlainProjector):
    """Fails on every third event that it is given, and not on the one after."""

    def __init__(self) -> None:
        self.given = 0

    def project(self, event):
        self.given += 1
        if self.given % 3 == 0:
            raise ConnectionError("it was killed")
        return super().project(event)


class Newer(PlainProjector):
    """Reads one claim more out of each event."""

    version = "plain-2"

    def project(self, event):
        found = list(super().project(event))
        draft = ClaimDraft.model_validate({"entity": "box", "relation": "seen", "value": "yes"})
        return [*found, ProjectedClaim(ordinal=9, draft=draft, stance=Stance.ASSERT, spans=())]
