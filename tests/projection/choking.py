"""A projector with an event that it cannot project: what a poison event looks like."""

from __future__ import annotations

from projection import RuleProjector


class Choking(RuleProjector):
    """Cannot project one text."""

    def project(self, event):
        if event.draft.text == "poison":
            raise ValueError("cannot")
        return super().project(event)
