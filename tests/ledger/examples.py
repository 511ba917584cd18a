"""How many random logs a property is tried on: few in the suite, `PROOF` times as many under `make prove`."""

from __future__ import annotations

from typing import Final

from hypothesis import HealthCheck, settings

PROOF: Final = 20
"""Under the profile `long`, which draws other logs each time; the usual one draws the same ones again."""


def examples(few: int, **more: int) -> settings:
    """Return settings for a property on random logs, `few` of them in the suite."""
    many = settings.get_current_profile_name() == "long"
    return settings(
        max_examples=few * PROOF if many else few,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        **more,
    )
