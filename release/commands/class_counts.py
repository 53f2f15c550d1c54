"""Options on class counts; apart from `options`, for they reach what works on embeddings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import click

from ..mechanism.gaussian import DEFAULT_COUNT_WEIGHT
from ..publishing.parameters import ClassCounts

_OPTIONS: Final = (
    click.option(
        "--class-counts", type=click.Choice([c.value for c in ClassCounts]),
        default=ClassCounts.NOISY.value, show_default=True,
        help="Release the class counts with noise, or declare all classes equally frequent. "
        "Choosing 'uniform' by looking at the counts would give them away.",
    ),
    click.option(
        "--count-weight", type=float, metavar="WEIGHT", default=DEFAULT_COUNT_WEIGHT,
        show_default=True,
        help="Weight of the class counts: more makes them more exact and the rest noisier.",
    ),
)  # fmt: skip


def class_count_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add --class-counts and --count-weight; the command gets `class_counts`, `count_weight`."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command
