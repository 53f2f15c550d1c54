"""Options on class counts; not in `options`, because they import code on embeddings."""

from __future__ import annotations

from typing import Final

import click

from ...common.cli.options import all_of
from ..mechanism.gaussian import DEFAULT_COUNT_WEIGHT
from ..publishing.parameters import ClassCounts

class_count_options: Final = all_of(
    click.option(
        "--class-counts", type=click.Choice([c.value for c in ClassCounts]),
        default=ClassCounts.NOISY.value, show_default=True,
        help="Release the class counts with noise, or declare all classes equally frequent. "
        "Choosing 'uniform' by looking at the counts would give them away.",
    ),
    click.option(
        "--count-weight", type=float, metavar="WEIGHT", default=DEFAULT_COUNT_WEIGHT,
        show_default=True,
        help="Weight of the class counts: a larger one makes them more exact and all else noisier.",
    ),
)  # fmt: skip
"""Add --class-counts and --count-weight; the command gets `class_counts`, `count_weight`."""
