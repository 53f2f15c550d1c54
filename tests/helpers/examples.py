"""Examples that hypothesis draws, the same ones in every run."""

from __future__ import annotations

from hypothesis import HealthCheck, Phase, settings


def examples(number: int) -> settings:
    """Settings for a number of examples; none is kept or made smaller."""
    return settings(
        max_examples=number,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
