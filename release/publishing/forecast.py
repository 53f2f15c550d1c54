"""What could be learnt of a table from a release that has not been made, by simulation.

Rows are made up from the schema alone: a few common factors make columns go together, and tell the
classes apart. The release that such rows would have is read in the plainest way, by correlations
and by a linear classifier from its products of columns. If it shows little of made-up rows, it will
show little of real ones. How well a generator does with real rows, only those can tell.
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
from ...common.features.moments import CONSTANT, LEAST_DEVIATION, MomentFeatures
from ...common.schema.encoding import NumericEncoding, blocks_of
from ...common.schema.table import TableSchema
from .plan import Plan

_RUNS: Final = 6
_MOST_ROWS: Final = 2_000
"""More rows would only mean less noise, and how much less is known."""
_FACTORS: Final = 3
"""How many factors made-up columns have in common."""
_SHARED: Final = 0.6
"""Share of a made-up column's variance that is due to common factors."""
_OF_CLASS: Final = 0.85
"""Share of what tells classes apart that is due to common factors."""
_SPREAD: Final = (0.06, 0.2)
"""Least and largest standard deviation of numbers, the distance of their bounds being 1."""
_SEED: Final = 0

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Figure:
    """A mean over made-up tables, and the standard deviation from one of them to the next."""

    mean: float
    deviation: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Figure:
        """Mean and deviation of one value for each table."""
        return cls(float(np.mean(values)), float(np.std(values)))


@dataclass(frozen=True)
class Forecast:
    """What a release would show.

    Attributes:
        epsilon: of the release.
        correlation_error: mean absolute error of correlations between two columns; None of images.
        accuracy: of a linear classifier of the label; None if there are not two classes.
        of: what a release of images would be of, "pixels", "network features" or "both"; None of
            tables.
    """

    epsilon: float
    correlation_error: Figure | None
    accuracy: Figure | None
    of: str | None = None


@dataclass(frozen=True)
class Forecasts:
    """What releases with several epsilons would show.

    Attributes:
        at: one for each epsilon.
        correlation: mean absolute correlation of made-up columns: the error of whoever knows none;
            None of images.
        without_noise: accuracy from the same release without noise; None without classes.
        by_chance: that of whoever guesses.
    """

    at: tuple[Forecast, ...]
    correlation: float | None
    without_noise: float | None
    by_chance: float

    def mostly_noise(self, forecast: Forecast) -> bool:
        """Whether a release shows less than half of all that there is to see."""
        return not (self.shows_pairs(forecast) or self.shows_classes(forecast))

    def shows_pairs(self, forecast: Forecast) -> bool:
        """Whether it shows half of how columns go together."""
        error = forecast.correlation_error
        return error is not None and error.mean <= (self.correlation or 0.0) / 2

    def shows_classes(self, forecast: Forecast) -> bool:
        """Whether it shows half of what tells classes apart."""
        if forecast.accuracy is None or self.without_noise is None:
            return False
        learnt = forecast.accuracy.mean - self.by_chance
        return learnt >= (self.without_noise - self.by_chance) / 2


def forecast(schema: TableSchema, plans: Sequence[Plan]) -> Forecasts | None:
    """Simulate releases of made-up rows.

    Guarantee:
        Reads no record and spends nothing: all follows from the schema, the plans, and a fixed
        seed. (The noise is a simulation's, and no release's.)

    Args:
        schema: of the table.
        plans: of releases with different epsilons, from as many rows each.

    Returns:
        None if there are no products of columns in such releases, by which to tell.
    """
    parts = parts_of(plans[0].feature_map) if plans else None
    if parts is None or parts.moments is None:
        return None
    random = np.random.default_rng(_SEED)
    rows = min(plans[0].records, _MOST_ROWS)
    tables = [_MadeUp.of(schema, parts.moments, rows, random) for _ in range(_RUNS)]
    found = []
    for plan in plans:
        noise = plan.blur / parts.moment_weight / np.sqrt(2)  # each product is there twice
        # The same draws for each epsilon, so that they differ by it alone.
        seen = [table.seen(noise, np.random.default_rng(n)) for n, table in enumerate(tables)]
        accuracies = [accuracy for _, accuracy in seen if accuracy is not None]
        found.append(
            Forecast(
                plan.parameters.epsilon,
                Figure.of([error for error, _ in seen]),
                Figure.of(accuracies) if accuracies else None,
            )
        )
    exact = [accuracy for table in tables if (accuracy := table.seen(0.0)[1]) is not None]
    return Forecasts(
        at=tuple(found),
        correlation=float(np.mean([table.correlation for table in tables])),
        without_noise=float(np.mean(exact)) if exact else None,
        by_chance=1 / len(schema.classes),
    )


@dataclass(frozen=True, eq=False)
class _MadeUp:
    """Statistics of a made-up table, weighted as products in releases are, and rows to test on.

    Attributes:
        correlations: between all factors (k, k).
        pairs: which of these are of two columns, bool (k, k).
        numbers: whose correlations are spoken of: the numbers', or if there are not two the
            categories' as well, bool (k,).
        means: of the factors in each class, in standard deviations, (c, k).
        unit: what noise of 1 on a product is as an error of a correlation, (k, k).
        of_means: likewise of the means, (k,).
        rows: standardised factors of other rows (n, k).
        labels: their classes (n,).
    """

    correlations: Floats
    pairs: NDArray[np.bool_]
    numbers: NDArray[np.bool_]
    means: Floats
    unit: Floats
    of_means: Floats
    rows: Floats
    labels: NDArray[np.int64]

    @classmethod
    def of(
        cls, schema: TableSchema, moments: MomentFeatures, rows: int, random: np.random.Generator
    ) -> _MadeUp:
        records, labels = _made_up_rows(schema, 2 * rows, random)
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
        column = np.repeat(
            np.arange(1 + moments.columns),
            [1] + [1] * len(moments.numbers) + [count for _, count in moments.categories],
        )
        classes = range(len(schema.classes))
        of_class = [labels[:rows] == label for label in classes]
        means = [
            share[one] @ (centred[one] / scale) / share[one].sum() if one.any() else 0 * mean
            for one in of_class
        ]
        return cls(
            correlations=covariance / np.outer(scale, scale),
            pairs=np.outer(varies, varies) & (column[:, None] != column),
            numbers=numeric & varies if (numeric & varies).sum() > 1 else varies,
            means=np.array(means),
            unit=1 / (weight.mean() * np.outer(scale, scale)),
            of_means=np.where(varies, 1 / (weight.mean() * CONSTANT * scale), 0.0),
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
        self, noise: float, random: np.random.Generator | None = None
    ) -> tuple[float, float | None]:
        """Error of the correlations, and accuracy of the classifier, with noise on products.

        Args:
            noise: standard deviation of that on a product in a class's mean.
            random: of the simulation; of no use without noise.
        """
        random = random or np.random.default_rng(_SEED)
        classes, size = self.means.shape
        # Over all classes, noise is averaged.
        deviation = np.where(self.pairs, noise * self.unit, 0.0) / np.sqrt(classes)
        drawn = np.triu(random.standard_normal((size, size)), 1)
        noisy = (self.correlations + (drawn + drawn.T) * deviation).clip(-1, 1)
        of_numbers = np.outer(self.numbers, self.numbers)
        for kind in (of_numbers, ~of_numbers):
            noisy = _james_stein(noisy, deviation, self.pairs & kind)
        error = self._mean(noisy - self.correlations)
        if classes < 2:
            return error, None
        blurred = np.broadcast_to(noise * self.of_means, self.means.shape)
        means = self.means + random.standard_normal(self.means.shape) * blurred
        means = _james_stein(means, blurred, self.of_means > 0)
        # Linear discriminant analysis; the ridge keeps directions without variance out.
        values, axes = np.linalg.eigh(noisy)
        directions = (axes / values.clip(0.1)) @ axes.T @ means.T
        scores = self.rows @ directions - (means.T * directions).sum(axis=0) / 2
        return error, float((scores.argmax(axis=1) == self.labels).mean())


def _james_stein(noisy: Floats, noise: Floats, where: NDArray[np.bool_]) -> Floats:
    """Noisy numbers, shrunk by as much as their noise asks for (James and Stein)."""
    where = np.broadcast_to(where, noisy.shape)
    if not where.any():
        return noisy
    signal = max(float((np.square(noisy) - np.square(noise))[where].mean()), 1e-12)
    return np.where(where, noisy * signal / (signal + np.square(noise)), noisy)


def _made_up_rows(
    schema: TableSchema, rows: int, random: np.random.Generator
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Encoded rows of a made-up table, and their classes.

    Classes are equally frequent; of categories those that are named first are the more frequent.
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
    """Numbers cut into consecutive ranges of these relative frequencies, from below."""
    borders = np.quantile(values, np.cumsum(frequency)[:-1] / frequency.sum())
    cut: NDArray[np.int64] = np.searchsorted(borders, values).astype(np.int64)
    return cut
