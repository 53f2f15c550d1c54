"""Options that several commands share, and types of options that click does not have."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import click

SEED: Final = click.IntRange(0, 2**32 - 1)
"""What every library takes for one."""
_MOST: Final = 2**31 - 1


def count_from(least: int) -> click.IntRange:
    """How many of something: a number that libraries take, of records, steps or threads."""
    return click.IntRange(least, _MOST)


@dataclass
class ErrorLine:
    """What the line may say that a failing command ends with; the object of click's context.

    Attributes:
        values: whether it may quote what the records hold.
    """

    values: bool = True


def _without_values(ctx: click.Context, parameter: click.Parameter, wanted: bool) -> None:
    line = ctx.find_object(ErrorLine)
    if wanted and line is not None:
        line.values = False


quiet_values_option: Final = click.option(
    "--quiet-values", is_flag=True, is_eager=True, expose_value=False, callback=_without_values,
    help="Leave what the records hold out of error messages, for logs.",
)  # fmt: skip
"""For all commands that read records."""


class FiniteRange(click.FloatRange):
    """Numbers in a range: no NaN, which click lets through every range, and no infinity."""

    def convert(
        self,
        value: Any,  # noqa: ANN401 - as click has it
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> float:
        """The number that `value` says."""
        number: float = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number.", param, ctx)
        return number
