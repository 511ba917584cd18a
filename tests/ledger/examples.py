"""How many random logs a property is tried on: few in the suite, `PROOF` times as many under `make prove`."""

from __future__ import annotations

from typing import Final

from hypothesis import HealthCheck, settings

PROOF: Final = 34
"""Under the profile `long`, which draws other logs each time; the usual one draws the same ones again."""


def examples(few: int, *, many: int | None = None, **more: int) -> settings:
    """Return settings for a property on random logs: `few` in the suite, `many` under `make prove`."""
    is_long = settings.get_current_profile_name() == "long"
    return settings(
        max_examples=(few * PROOF if many is None else many) if is_long else few,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        **more,
    )
