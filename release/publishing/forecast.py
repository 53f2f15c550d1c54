"""Forecast by simulation what a release of a table would reveal, before it is made.

Rows are simulated from the schema alone: a few common factors make columns dependent and
distinguish the classes. Their release is read in the simplest way, by correlations and by a linear
classifier from its products of columns and from the columns themselves. If it shows little of
simulated rows, it will show little of real ones. How well a generator does on real rows can only be
seen with real rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray

from ...common.features.joint import parts_of
from ...common.features.marginals.map import LARGE_ON_MEANS, MarginalFeatures
from ...common.features.moments import (
    CONSTANT,
    INDICATOR,
    LEAST_DEVIATION,
    STEPS,
    MomentFeatures,
)
from ...common.schema.encoding import NumericEncoding, blocks_of
from ...common.schema.table import TableSchema
from .plan import Plan

_RUNS: Final = 6
_MOST_ROWS: Final = 2_000
"""More rows would only mean less noise, by a known factor."""
_FACTORS: Final = 3
"""Number of common factors of simulated columns."""
_SHARED: Final = 0.6
"""Share of a simulated column's variance that is due to common factors."""
_OF_CLASS: Final = 0.85
"""Share of the variance of the class variable that is due to common factors."""
_SPREAD: Final = (0.06, 0.2)
"""Least and largest standard deviation of numbers, relative to the distance of their bounds."""
_SEED: Final = 0

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Estimate:
    """A mean over simulated tables, and the standard deviation between them."""

    mean: float
    deviation: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Estimate:
        """Mean and deviation of one value for each table."""
        return cls(float(np.mean(values)), float(np.std(values)))


@dataclass(frozen=True)
class Forecast:
    """What a release would reveal.

    Attributes:
        epsilon: of the release.
        correlation_error: mean absolute error of correlations between two columns (see
            `Forecasts.between`); None for images.
        accuracy: accuracy of a linear classifier of the label; None for a single class.
        of: features that a release of images would hold, "pixels", "network features" or "both";
            None for tables.
        mean_error: standard deviation of what noise adds to the mean of a number over all classes,
            in parts of the distance of its bounds; None for images.
    """

    epsilon: float
    correlation_error: Estimate | None
    accuracy: Estimate | None
    of: str | None = None
    mean_error: float | None = None


@dataclass(frozen=True)
class Forecasts:
    """What releases with several epsilons would reveal.

    Attributes:
        at: one forecast for each epsilon.
        correlation: mean absolute correlation of simulated columns, the error of assuming none;
            None for images.
        without_noise: accuracy from the same release without noise; None without classes.
        by_chance: accuracy of guessing.
        between: what the correlations are between: "numbers", or "columns" if there are fewer than
            two numbers; None for images.
    """

    at: tuple[Forecast, ...]
    correlation: float | None
    without_noise: float | None
    by_chance: float
    between: str | None = None

    def mostly_noise(self, forecast: Forecast) -> bool:
        """Whether it shows neither half the dependence nor half the class differences."""
        return not (self.shows_pairs(forecast) or self.shows_classes(forecast))

    def shows_pairs(self, forecast: Forecast) -> bool:
        """Whether it shows half of the dependence between columns."""
        error = forecast.correlation_error
        return error is not None and error.mean <= (self.correlation or 0.0) / 2

    def shows_columns(self, forecast: Forecast) -> bool:
        """Whether noise hides no more than the deviation that numbers typically have."""
        return forecast.mean_error is None or forecast.mean_error <= LARGE_ON_MEANS

    def shows_classes(self, forecast: Forecast) -> bool:
        """Whether it shows half of the difference between classes."""
        if forecast.accuracy is None or self.without_noise is None:
            return False
        learnt = forecast.accuracy.mean - self.by_chance
        return learnt >= (self.without_noise - self.by_chance) / 2


def forecast(schema: TableSchema, plans: Sequence[Plan]) -> Forecasts | None:
    """Forecast releases of a table by simulation.

    Guarantee:
        Reads no record and spends nothing: everything follows from the schema, the plans, and a
        fixed seed. (The noise is simulated, and is not that of a release.)

    Args:
        schema: of the table.
        plans: of releases with different epsilons, from as many rows each.

    Returns:
        None if such releases hold no products of columns.
    """
    parts = parts_of(plans[0].feature_map) if plans else None
    if parts is None or parts.moments is None:
        return None
    random = np.random.default_rng(_SEED)
    rows = min(plans[0].records, _MOST_ROWS)
    assert parts.marginals is not None
    tables = [
        _Simulation.of(schema, parts.moments, parts.marginals, rows, random) for _ in range(_RUNS)
    ]
    found = []
    for plan in plans:
        noise = _Noise.of(plan)
        # The same draws for each epsilon, so that only epsilon differs.
        seen = [table.seen(noise, np.random.default_rng(n)) for n, table in enumerate(tables)]
        accuracies = [accuracy for _, accuracy in seen if accuracy is not None]
        found.append(
            Forecast(
                plan.parameters.epsilon,
                Estimate.of([error for error, _ in seen]),
                Estimate.of(accuracies) if accuracies else None,
                mean_error=noise.of_means / math.sqrt(len(schema.classes)),
            )
        )
    exact = [accuracy for table in tables if (accuracy := table.seen(_Noise())[1]) is not None]
    return Forecasts(
        at=tuple(found),
        correlation=float(np.mean([table.correlation for table in tables])),
        without_noise=float(np.mean(exact)) if exact else None,
        by_chance=1 / len(schema.classes),
        between="numbers" if all(table.only_numbers for table in tables) else "columns",
    )


@dataclass(frozen=True)
class _Noise:
    """Standard deviations of the noise in a class's mean; 0 without noise.

    Attributes:
        of_products: on a product of two factors.
        of_cells: on the share of a column's cell.
        of_numbers: on a correlation of two numbers, read from pairs in few cells; infinite without
            such pairs.
        of_means: on the mean of a number, read from its cells, in parts of the distance of bounds.
    """

    of_products: float = 0.0
    of_cells: float = 0.0
    of_numbers: float = math.inf
    of_means: float = 0.0

    @classmethod
    def of(cls, plan: Plan) -> _Noise:
        """Of a release that is planned."""
        parts = parts_of(plan.feature_map)
        assert parts.marginals is not None
        of_products = plan.blur / parts.moment_weight / math.sqrt(2)  # each appears twice
        of_marginals = plan.blur / parts.weight
        return cls(
            of_products,
            of_marginals / parts.marginals.entry,
            parts.marginals.noise_on_correlations(of_marginals),
            parts.marginals.noise_on_means(of_marginals),
        )


@dataclass(frozen=True, eq=False)
class _Simulation:
    """Statistics of a simulated table, weighted as products in releases are, and test rows.

    Attributes:
        correlations: between all factors (k, k).
        pairs: which of these are of two columns, bool (k, k).
        only_numbers: whether correlations of numbers are reported, and not also those of categories
            because there are fewer than two numbers.
        numbers: factors whose correlations are reported, bool (k,).
        means: means of the factors in each class, in standard deviations, (c, k).
        unit: error of a correlation per unit of noise on a product, (k, k).
        of_means: the same for the means, (k,).
        by_cells: error of the means per unit of noise on a cell's share, (k,).
        rows: standardised factors of test rows (n, k).
        labels: classes of the test rows (n,).
    """

    correlations: Floats
    pairs: NDArray[np.bool_]
    only_numbers: bool
    numbers: NDArray[np.bool_]
    means: Floats
    unit: Floats
    of_means: Floats
    by_cells: Floats
    rows: Floats
    labels: NDArray[np.int64]

    @classmethod
    def of(
        cls,
        schema: TableSchema,
        moments: MomentFeatures,
        marginals: MarginalFeatures,
        rows: int,
        random: np.random.Generator,
    ) -> _Simulation:
        records, labels = _simulated_rows(schema, 2 * rows, random)
        z = moments.steps(torch.from_numpy(records)).numpy().astype(np.float64)
        seen, kept = z[:rows], z[rows:]
        weight = 1 / np.square(seen).sum(axis=1)
        share = weight / weight.sum()
        mean = share @ seen
        centred = seen - mean
        covariance = (centred * share[:, None]).T @ centred
        least = LEAST_DEVIATION * moments.times.numpy()
        scale = np.sqrt(np.diag(covariance)).clip(least)
        varies = np.diag(covariance) > least**2
        numeric = np.zeros(len(mean), dtype=np.bool_)
        numeric[1 : 1 + len(moments.numbers)] = True
        numeric &= varies
        only_numbers = bool(numeric.sum() > 1)
        column = moments.column.numpy()
        classes = range(len(schema.classes))
        of_class = [labels[:rows] == label for label in classes]
        means = [
            share[one] @ (centred[one] / scale) / share[one].sum() if one.any() else 0 * mean
            for one in of_class
        ]
        return cls(
            correlations=covariance / np.outer(scale, scale),
            pairs=np.outer(varies, varies) & (column[:, None] != column),
            only_numbers=only_numbers,
            numbers=numeric if only_numbers else varies,
            means=np.array(means),
            unit=1 / (weight.mean() * np.outer(scale, scale)),
            of_means=np.where(varies, 1 / (weight.mean() * CONSTANT * scale), 0.0),
            by_cells=np.where(varies, _sums_over_cells(moments, marginals) / scale, 0.0),
            rows=(kept - mean) / scale,
            labels=labels[rows:],
        )

    @property
    def correlation(self) -> float:
        """Mean absolute correlation of two columns."""
        return self._mean(self.correlations)

    def _mean(self, errors: Floats) -> float:
        shown = self.pairs & np.outer(self.numbers, self.numbers)
        return float(np.abs(errors[shown]).mean()) if shown.any() else 0.0

    def seen(
        self, noise: _Noise, random: np.random.Generator | None = None
    ) -> tuple[float, float | None]:
        """Error of the correlations, and accuracy of the classifier, with noise.

        Correlations are read from products and, those of numbers, also from pairs in few cells;
        means of the classes from products and columns. Each is weighted by its precision.

        Args:
            noise: of the release.
            random: of the simulation; has no effect without noise.
        """
        random = random or np.random.default_rng(_SEED)
        classes, size = self.means.shape
        of_numbers = np.outer(self.numbers, self.numbers)
        deviation = np.where(self.pairs, noise.of_products * self.unit, 0.0)
        if math.isfinite(noise.of_numbers):
            both = _of_both(deviation, np.full_like(deviation, noise.of_numbers))
            deviation = np.where(of_numbers, both, deviation)
        deviation /= np.sqrt(classes)  # averaging over classes reduces the noise
        drawn = np.triu(random.standard_normal((size, size)), 1)
        noisy = (self.correlations + (drawn + drawn.T) * deviation).clip(-1, 1)
        believed = np.ones_like(noisy)
        for kind in (of_numbers, ~of_numbers):
            believed *= _shrinkage_factors(noisy, deviation, self.pairs & kind)
        noisy *= believed
        error = self._mean(noisy - self.correlations)
        if classes < 2:
            return error, None
        of_both = _of_both(noise.of_products * self.of_means, noise.of_cells * self.by_cells)
        blurred = np.broadcast_to(of_both, self.means.shape)
        means = self.means + random.standard_normal(self.means.shape) * blurred
        means *= _shrinkage_factors(means, blurred, self.of_means > 0)
        # Linear discriminant analysis. Clipping excludes directions without variance, and those
        # whose variance is less than what noise alone would show: the largest eigenvalue of a
        # symmetric matrix of such noise (Wigner's semicircle).
        values, axes = np.linalg.eigh(noisy)
        edge = 2 * math.sqrt(float((believed * np.square(deviation)).sum(axis=1).max()))
        directions = (axes / values.clip(max(0.1, edge))) @ axes.T @ means.T
        scores = self.rows @ directions - (means.T * directions).sum(axis=0) / 2
        return error, float((scores.argmax(axis=1) == self.labels).mean())


def _of_both(one: Floats, other: Floats) -> Floats:
    """Standard deviations of means of two estimates each, weighted by their precision."""
    together = np.hypot(one, other)
    return np.divide(one * other, together, out=np.zeros_like(together), where=together > 0)


def _sums_over_cells(moments: MomentFeatures, marginals: MarginalFeatures) -> Floats:
    """Error of each factor's mean per unit of noise on the cells of its column, float64 (k,)."""
    cells = np.array([column.cells for column in marginals.columns if column.cells])
    of_numbers = 2 * STEPS * np.sqrt(cells / 12)  # values that are evenly spread over the bounds
    found = np.full(moments.factors, float(INDICATOR))
    found[0] = 0.0  # the constant
    found[1 : 1 + len(of_numbers)] = of_numbers
    of_target: Floats = moments.times.numpy().astype(np.float64)
    return found * of_target


def _shrinkage_factors(noisy: Floats, noise: Floats, where: NDArray[np.bool_]) -> Floats:
    """By what to multiply noisy numbers, according to their noise (James and Stein).

    It is 1 outside `where`. What is left of the noise has this share of its variance.
    """
    where = np.broadcast_to(where, noisy.shape)
    if not where.any():
        return np.ones_like(noisy)
    signal = max(float((np.square(noisy) - np.square(noise))[where].mean()), 1e-12)
    return np.where(where, signal / (signal + np.square(noise)), 1.0)


def _simulated_rows(
    schema: TableSchema, rows: int, random: np.random.Generator
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Encoded rows of a simulated table, and their classes.

    Classes are equally frequent; categories that are listed earlier are more frequent.
    """
    blocks = blocks_of(schema)
    common = random.standard_normal((rows, _FACTORS))
    own = random.standard_normal((rows, len(blocks) + 1))
    loadings = random.standard_normal((_FACTORS, len(blocks) + 1))
    loadings /= np.linalg.norm(loadings, axis=0)
    shared = np.full(len(blocks) + 1, _SHARED)
    shared[-1] = _OF_CLASS
    latent = common @ loadings * np.sqrt(shared) + own * np.sqrt(1 - shared)
    least, most = map(math.log, _SPREAD)
    spreads = np.exp(random.uniform(least, most, len(blocks)))
    records = np.zeros((rows, schema.record_size), dtype=np.uint8)
    for block, values, spread in zip(blocks, latent.T, spreads, strict=False):
        if isinstance(block.encoding, NumericEncoding):
            numbers = block.encoding.at((0.5 + spread * values).clip(0, 1))
            records[:, block.place] = block.encode(numbers)
        else:
            frequency = 1 / np.arange(1, block.column.choices + 1)
            records[:, block.place] = block.encode(_cut(values, frequency))
    return records, _cut(latent[:, -1], np.ones(len(schema.classes)))


def _cut(values: Floats, frequency: Floats) -> NDArray[np.int64]:
    """Cut numbers into consecutive ranges of these relative frequencies, from below."""
    borders = np.quantile(values, np.cumsum(frequency)[:-1] / frequency.sum())
    cut: NDArray[np.int64] = np.searchsorted(borders, values).astype(np.int64)
    return cut
