"""An audit: what an observer who knows all but one record can infer from the real mechanism.

The mechanism runs many times on two neighbouring data sets, and the best possible observer guesses
which one it was. The accuracy of the guesses bounds epsilon from below. This is the only part of
the package that reaches into the sensitive stage, because it has to feed the mechanism. It writes
nothing, and enters nothing into a ledger. Its report depends on noise that is thrown away; and
under add-remove also on a noisy number of records, which determines the parts of a release and
which no ledger counts. So the report is for the owner of the records.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from ...common.adjacency import Adjacency
from ...common.display.console import Advance, progress
from ...common.display.representations import RedactedRepr
from ...common.errors import SchemaError
from ...common.features.torchscript import PublicModule, module_for
from ...common.schema.privacy_unit import rows_per_unit
from ...common.schema.table import TableSchema
from ...embed.sums.accumulate import ClassSums
from ...embed.sums.file import Embedding, load_embedding
from ...release.mechanism.gaussian import NoiseScale, add_noise, noisy_counts
from ...release.publishing.layout import ReleaseLayout, layout_of_embedding
from ...release.publishing.measurement import known_records
from ...release.publishing.parameters import PrivacyParameters, noise_for
from .defaults import DEFAULT_CONFIDENCE, DEFAULT_RUNS
from .lower_bounds import Scores, epsilon_clopper_pearson, epsilon_from_gdp

_NOISE_RUNS: Final = 200
"""Number of runs on a single number for each run on a pair of data sets."""
_FALSE_ALARM: Final = 1e-6
"""Probability that each of the two tests of the noise rejects correct noise."""
_DRAWS_AT_ONCE: Final = 1 << 21
_CANARY_PIXELS: Final = 3
_CANARY_SHARE: Final = 64
"""A canary has few lit pixels, with at most a 64th of the levels, so that it changes few
coordinates and many runs are possible."""

SCOPE: Final = (
    "An audit can refute a guarantee, never prove one: the proofs are in docs/privacy/proofs.md. "
    "It sees noise that is too small, of the wrong shape or shared between coordinates, a "
    "sensitivity that the tried records exceed, and wrong accounting. It does not see records that "
    "were not tried, how records are read, noise that somebody else can predict, the ledger, the "
    "release file, or what time and memory give away."
)


@dataclass(frozen=True)
class Finding:
    """A lower bound on epsilon.

    Attributes:
        method: how it was found.
        runs: number of runs on each of the two data sets.
        epsilon: the bound.
    """

    method: str
    runs: int
    epsilon: float


@dataclass(frozen=True)
class NoiseTest:
    """The noise of one full release, tested from inside.

    Attributes:
        coordinates: number of coordinates.
        second_moment: mean square of the noise over sigma^2.
        allowed: interval of the second moment of correct noise.
        correlation: the largest correlation between the noise of two classes, in absolute value.
        largest_correlation: bound that independent noise does not exceed.
    """

    coordinates: int
    second_moment: float
    allowed: tuple[float, float]
    correlation: float
    largest_correlation: float

    @property
    def passed(self) -> bool:
        """Whether the noise passes both tests."""
        low, high = self.allowed
        return low <= self.second_moment <= high and self.correlation <= self.largest_correlation


@dataclass(frozen=True)
class Audit:
    """The claim and the findings.

    Attributes:
        claimed: epsilon of the guarantee.
        delta: the delta of all epsilons.
        confidence: confidence of each lower bound.
        pair: the two data sets, in words.
        distance: of the pair, relative to the sensitivity that the noise is calibrated to.
        findings: lower bounds.
        noise: the test of the noise from inside.
    """

    claimed: float
    delta: float
    confidence: float
    pair: str
    distance: float
    findings: tuple[Finding, ...]
    noise: NoiseTest

    @property
    def contradictions(self) -> list[str]:
        """Findings that refute the guarantee, in words; empty if there are none."""
        found = [
            f"{finding.method}: epsilon is at least {finding.epsilon:.4g}"
            for finding in self.findings
            if finding.epsilon > self.claimed
        ]
        if self.distance > 1:
            found.append(f"the pair is {self.distance:.6g} times the sensitivity apart")
        if not self.noise.passed:
            found.append("the noise does not have the variance or the independence it should have")
        return found


@dataclass(frozen=True, eq=False, repr=False)
class _Pair(RedactedRepr):
    """Two neighbouring data sets, in the coordinates where they differ. SENSITIVE.

    Attributes:
        name: of the pair, in words.
        rows: rows of the sums in which the two differ, int64 (r,).
        sums: int64 (2, r, k), the sums of both data sets in these coordinates.
        counts: int64 (2, k), their class counts.
    """

    name: str
    rows: NDArray[np.int64]
    sums: NDArray[np.int64]
    counts: NDArray[np.int64]

    def direction(self, scale: NoiseScale) -> NDArray[np.float64]:
        """The change from the first to the second in units of the noise, float64 (r k + k,)."""
        sigmas = scale.of_rows(self.rows).sigmas(len(self.rows))
        sums = (self.sums[1] - self.sums[0]) / sigmas[:, None]
        counts = (self.counts[1] - self.counts[0]) * (scale.count_weight / scale.sigma)
        return np.concatenate([sums.ravel(), counts])

    def distance(self, scale: NoiseScale) -> float:
        """Distance between the two, in standard deviations of the noise."""
        return float(np.linalg.norm(self.direction(scale)))


def audit(
    path: Path,
    *,
    epsilon: float,
    delta: float | None = None,
    adjacency: Adjacency,
    runs: int = DEFAULT_RUNS,
    canaries: int = 0,
    confidence: float = DEFAULT_CONFIDENCE,
    module: Path | None = None,
) -> Audit:
    """Audit the mechanism as it would release an embedding.

    The observer projects the output on the difference of the two data sets, which is optimal
    (Neyman and Pearson's test for normal noise). Only the coordinates in which the two differ are
    drawn: the others get the same noise on the same sums in both.

    Args:
        path: the embedding, for its feature map, grid and sums.
        epsilon: of the guarantee to be audited.
        delta: of the guarantee; that of a release if None.
        adjacency: of the guarantee.
        runs: number of runs on each of the two data sets.
        canaries: 0 for a pair that is far apart by construction, in an otherwise empty data set;
            otherwise the number of random pairs of canaries to put into the embedding's own sums,
            of which the farthest pair is used.
        confidence: of each lower bound.
        module: for "perceptual" features: the file that they were made with.

    Raises:
        EmbeddingError: there is no complete embedding.
        ModuleError: the module is missing, is another one, or failed.
        BudgetError: the parameters do not suit this embedding.
    """
    embedding = load_embedding(path)
    parameters = PrivacyParameters(epsilon, delta, adjacency)
    uniform, delta = noise_for(embedding, parameters), parameters.delta_for(embedding.records)
    counts = noisy_counts(embedding.counts, uniform)
    records = known_records(embedding, counts, uniform, adjacency)
    released = layout_of_embedding(embedding, uniform, records)
    scale = released.scale
    opened = module_for(embedding.feature_map, module)
    pair = _farthest(_pairs(embedding, released, opened, adjacency, canaries), scale)
    size = len(pair.direction(scale))
    ends, no_counts = np.array([[[0]], [[scale.sensitivity]]]), np.zeros((2, 0), dtype=np.int64)
    extreme = _Pair("one number", np.zeros(1, dtype=np.int64), ends, no_counts)
    noise_runs = runs * _NOISE_RUNS
    sums = released.sums(embedding.sums)
    draws = 2 * (runs * size + noise_runs) + sums.size
    with progress("auditing", draws, "draws") as advance:
        scores = _scores(pair, scale, runs, advance)
        noise_scores = _scores(extreme, uniform, noise_runs, advance)
        noise = _test_noise(sums, embedding.counts, scale)
    return Audit(
        claimed=epsilon,
        delta=delta,
        confidence=confidence,
        pair=pair.name,
        distance=pair.distance(scale) * scale.sigma / scale.sensitivity,
        findings=(
            Finding(
                "the pair, by the Gaussian trade-off curve",
                runs,
                epsilon_from_gdp(*scores, delta, confidence),
            ),
            Finding(
                "the pair, by counting", runs, epsilon_clopper_pearson(*scores, delta, confidence)
            ),
            Finding(
                "a single number at the sensitivity, by counting",
                noise_runs,
                epsilon_clopper_pearson(*noise_scores, delta, confidence),
            ),
        ),
        noise=noise,
    )


def _pairs(
    embedding: Embedding,
    released: ReleaseLayout,
    module: PublicModule | None,
    adjacency: Adjacency,
    canaries: int,
) -> Iterator[_Pair]:
    """Neighbouring data sets: far apart by construction, or with random canaries."""
    inputs, classes = embedding.schema.record_size, len(embedding.schema.classes)
    levels, pair = embedding.schema.levels, partial(_pair, embedding, released, module)
    if not canaries:
        dark = np.zeros(inputs, dtype=np.uint8)
        of_table = isinstance(embedding.schema, TableSchema)
        called = "a row of lowest values" if of_table else "a dark image"
        if (unit := embedding.schema.privacy_unit) is not None and unit.rows > 1:
            called = f"{unit.rows:,} rows of lowest values"
        if adjacency is Adjacency.ADD_REMOVE:
            yield pair(f"nothing and {called}", None, (dark, 0), alone=True)
        elif classes > 1:
            name = f"{called} in the first and in the second class"
            yield pair(name, (dark, 0), (dark, 1), alone=True)
        else:
            point = dark.copy()
            point[0] = levels
            name = f"{called} and one of a highest value" if of_table else f"{called} and a point"
            yield pair(name, (dark, 0), (point, 0), alone=True)
    random = np.random.default_rng()
    for _ in range(canaries):
        images = np.zeros((2, inputs), dtype=np.uint8)
        for image in images:
            lit = random.choice(inputs, min(inputs, _CANARY_PIXELS), replace=False)
            image[lit] = random.integers(1, max(1, levels // _CANARY_SHARE) + 1, len(lit))
        labels = random.permutation(classes)[[0, min(1, classes - 1)]].tolist()
        first = None if adjacency is Adjacency.ADD_REMOVE else (images[0], labels[0])
        name = f"the embedding with one of {canaries} canaries or another"
        yield pair(name, first, (images[1], labels[1]), alone=False)


def _pair(
    embedding: Embedding,
    released: ReleaseLayout,
    module: PublicModule | None,
    name: str,
    first: tuple[NDArray[np.uint8], int] | None,
    second: tuple[NDArray[np.uint8], int],
    *,
    alone: bool,
) -> _Pair:
    """The released sums of two data sets that differ in one record (image, label), or None.

    If rows are protected together, the record occurs as often as a unit may have rows.
    """
    rows_of_one = rows_per_unit(embedding.schema.privacy_unit)
    sums, counts = [], []
    for record in (first, second):
        made = ClassSums(
            embedding.feature_map, len(embedding.schema.classes), embedding.grid, module=module
        )
        if record is not None:
            made.add(record[0][None], np.array([record[1]]))
        sums.append(rows_of_one * released.sums(made.sums))
        counts.append(rows_of_one * made.counts)
    changed = sums[0] != sums[1]
    columns = np.flatnonzero(changed.any(axis=0) | (counts[0] != counts[1]))
    rows = np.flatnonzero(changed.any(axis=1))
    part = np.ix_(rows, columns)
    around = released.sums(embedding.sums)[part]
    base = np.zeros_like(around) if alone else around
    base_counts = np.zeros_like(columns) if alone else embedding.counts[columns]
    return _Pair(
        name,
        rows,
        base + np.stack([each[part] for each in sums]),
        base_counts + np.stack([each[columns] for each in counts]),
    )


def _farthest(pairs: Iterator[_Pair], scale: NoiseScale) -> _Pair:
    found = max(pairs, key=lambda pair: pair.distance(scale), default=None)
    if found is None or not found.distance(scale):
        raise SchemaError("the feature map tells no two records apart: there is nothing to audit")
    return found


def _scores(pair: _Pair, scale: NoiseScale, runs: int, advance: Advance) -> tuple[Scores, Scores]:
    """Scores of the mechanism's outputs on both data sets, `runs` of each."""
    direction = pair.direction(scale)
    direction /= np.linalg.norm(direction)
    sigmas = scale.of_rows(pair.rows).sigmas(len(pair.rows))[:, None]
    at_once = max(1, _DRAWS_AT_ONCE // len(direction))
    both = []
    for sums, counts in zip(pair.sums, pair.counts, strict=True):
        scores = np.empty(runs)
        for start in range(0, runs, at_once):
            size = min(at_once, runs - start)
            # Every coordinate has independent noise, so stacked runs are independent runs.
            of_each = scale.of_rows(np.tile(pair.rows, size))
            noisy = add_noise(np.tile(sums, (size, 1)), np.tile(counts, size), of_each)
            change = (noisy.sums.reshape(size, *sums.shape) - pair.sums[0]) / sigmas
            values = change.reshape(size, -1) @ direction[: sums.size]
            if noisy.counts is not None:
                known = pair.counts[0] * scale.count_weight
                more = (noisy.counts.reshape(size, -1) - known) / scale.sigma
                values += more @ direction[sums.size :]
            scores[start : start + size] = values
            advance(size * len(direction), "")
        both.append(scores)
    return both[0], both[1]


def _test_noise(sums: NDArray[np.int64], counts: NDArray[np.int64], scale: NoiseScale) -> NoiseTest:
    """Second moment and correlations of the noise of one full release."""
    noisy = add_noise(sums, counts, scale)
    noise = (noisy.sums - sums) / scale.sigmas(len(sums))[:, None]
    size, classes = noise.size, noise.shape[1]
    low, high = stats.chi2.ppf([_FALSE_ALARM / 2, 1 - _FALSE_ALARM / 2], size) / size
    moments = noise.T @ noise
    deviation = np.sqrt(np.diag(moments))
    correlations = np.abs(moments / np.outer(deviation, deviation) - np.eye(classes))
    pairs = max(1, classes * (classes - 1) // 2)
    unlikely = float(stats.norm.isf(_FALSE_ALARM / (2 * pairs)))
    return NoiseTest(
        coordinates=size,
        second_moment=float(np.trace(moments)) / size,
        allowed=(float(low), float(high)),
        correlation=float(correlations.max()),
        largest_correlation=unlikely / math.sqrt(len(noise)),
    )
