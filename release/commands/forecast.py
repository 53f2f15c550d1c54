"""The part of `dpntk plan` that forecasts utility, not noise."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from typing import Any, Final

from ...common.display.console import TextTable, out, show
from ...common.errors import BudgetError
from ...common.features.base import FeatureMap
from ...common.schema import Schema
from ...common.schema.image import ImageSchema
from ...embed.exact.grid import Grid
from ..publishing.forecast import Estimate, Forecast, Forecasts, forecast
from ..publishing.image_forecast import forecast_of_images
from ..publishing.plan import Plan, plan

_TIMES: Final = (0.1, 0.3, 1.0, 3.0, 10.0)
"""The factors on epsilon, for a curve that helps to choose it."""
_PAIRS: Final = "how columns go together"


def forecasts_around(
    planned: Plan, schema: Schema, feature_map: FeatureMap, grid: Grid
) -> Forecasts | None:
    """Forecasts for a release, and for others with less and more epsilon, if possible.

    Args:
        planned: the release.
        schema: the records' schema.
        feature_map: the feature map of their embedding.
        grid: the grid of their embedding.
    """
    plans = []
    for times in _TIMES:
        epsilon = float(f"{planned.parameters.epsilon * times:.2g}") if times != 1 else None
        with contextlib.suppress(BudgetError):  # epsilon may be out of range
            other = replace(planned.parameters, epsilon=epsilon or planned.parameters.epsilon)
            unit, records = planned.unit, planned.records
            plans.append(plan(feature_map, grid, planned.classes, records, other, unit))
    if isinstance(schema, ImageSchema):
        return forecast_of_images(schema, plans)
    return forecast(schema, plans)


def forecast_document(forecasts: Forecasts | None) -> dict[str, Any] | None:
    """The figures of forecasts, for programs."""
    if forecasts is None:
        return None
    return {
        **asdict(forecasts),
        "at": [
            {**asdict(each), "mostly_noise": forecasts.mostly_noise(each)} for each in forecasts.at
        ],
    }


def show_forecast(forecasts: Forecasts, epsilon: float) -> None:
    """Print the figures, and a warning of what the release would mostly hide by noise.

    Args:
        forecasts: the forecasts for several epsilons.
        epsilon: the release's epsilon.
    """
    of_images = forecasts.correlation is None
    made_up = "digits" if of_images else "made-up rows of this schema"
    table = TextTable(f"what such releases would show of {made_up}")
    table.add_column("epsilon", right=True, wrap=False)
    if of_images:
        table.add_column("release of")
    else:
        table.add_column(f"error of {forecasts.between}' correlations", right=True)
    if forecasts.without_noise is not None:
        what = "nearest class mean" if of_images else "a linear classifier"
        table.add_column(f"accuracy of {what}", right=True)
    for each in forecasts.at:
        figures = filter(None, (each.correlation_error, each.accuracy))
        of = [each.of] if each.of else []
        table.add_row(f"{each.epsilon:g}", *of, *map(_shown, figures))
    show(table)
    out.print(_in_words(forecasts))
    (here,) = [each for each in forecasts.at if each.epsilon == epsilon]
    lost = {what: shows for what, shows in _to_be_seen(forecasts).items() if not shows(here)}
    if lost:
        fewer = (
            "or fewer classes"
            if of_images
            else "fewer columns, or pairs of columns that are chosen beforehand (--pairs)"
        )
        out.print(
            f"{'Mostly' if forecasts.mostly_noise(here) else 'Partly'} noise: with epsilon "
            f"{epsilon:g} the release would show less than half of {' and of '.join(lost)}. What "
            f"helps: more records, {_larger(forecasts, lost)}, {fewer}."
        )


def _to_be_seen(forecasts: Forecasts) -> dict[str, Callable[[Forecast], bool]]:
    """What such releases can show, and how to tell whether a forecast shows half of it."""
    seen: dict[str, Callable[[Forecast], bool]] = {}
    if forecasts.correlation is not None:
        seen["single columns"] = forecasts.shows_columns
        seen[_PAIRS] = forecasts.shows_pairs
    if forecasts.without_noise is not None:
        seen["what tells classes apart"] = forecasts.shows_classes
    return seen


def _larger(forecasts: Forecasts, lost: Mapping[str, Callable[[Forecast], bool]]) -> str:
    """Advice to use a larger epsilon, with one that would do if the forecasts have one."""
    for each in forecasts.at:  # in ascending order of epsilon
        if found := [what for what, shows in lost.items() if shows(each)]:
            what = f" for {' and '.join(found)}" if len(lost) > 1 else ""
            return f"a larger epsilon ({each.epsilon:g} would do{what})"
    return "a larger epsilon"


def _in_words(forecasts: Forecasts) -> str:
    """What to compare the figures with, and what they do not say."""
    accuracy = (
        f"accuracy is {forecasts.without_noise:.2f} without noise, and {forecasts.by_chance:.2f} "
        "by chance"
        if forecasts.without_noise is not None
        else ""
    )
    if forecasts.correlation is None:
        return (
            f"The {accuracy}. Mean and standard deviation over several simulated releases of "
            "scikit-learn's handwritten digits, by pixels or, if a release is of network features, "
            "by these if they tell more; a generator learns more than means. Other images may be "
            "easier or harder, and much harder if classes differ in texture instead of shape."
        )
    return (
        f"Whoever takes all these correlations to be 0 is off by {forecasts.correlation:.3f}"
        f"{accuracy and f'; the {accuracy}'}. Mean and standard deviation over several simulated "
        "tables; real rows may be easier or harder."
    )


def _shown(figure: Estimate) -> str:
    return f"{figure.mean:.3f} ± {figure.deviation:.3f}"
