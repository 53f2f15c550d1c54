"""The lengths of the parts of a table's feature that count pairs of columns and levels.

They follow from the blur (`blur_of`) and from public facts. With less noise, more parts are worth
having, with finer cells.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, TypeGuard

from ...common.features.base import FeatureMap
from ...common.features.joint import JointFeatures
from ...common.features.marginals.map import MarginalFeatures
from ...embed.exact.grid import Grid
from ..mechanism.gaussian import NoiseScale

USUAL_LENGTH_BLUR: Final = 0.002
"""The largest blur at which the part of the chosen pairs has its usual length. Above it the part is
shorter, and is left out if coarse pairs of numbers would show nothing."""
LARGEST_PAIRS_BLUR: Final = 0.0075
"""The largest blur, over the root of the number of classes, at which pairs are measured at all."""
_LENGTH: Final = 0.3
"""Length of the part of the chosen pairs up to `USUAL_LENGTH_BLUR`."""
_NOISY_LENGTH: Final = 0.1
"""Length of the part of the chosen pairs above it, where coarse pairs show more."""
_SHORT_LENGTH: Final = 0.15
"""Least length of the part of coarse pairs, of all pairs of numbers."""
_LONG_LENGTH: Final = 0.45
"""The part of coarse pairs grows up to this length, until the noise on a cell's share is
`_TARGET_NOISE`."""
_TARGET_NOISE: Final = 0.01
_TARGET_NOISE_WITHOUT_CLASSES: Final = 0.004
"""The same without a label: nothing but dependence is left to be shown."""
_MOST_LENGTH: Final = 0.6
"""It grows up to this length if folded tables would otherwise be lost in noise
(`_FOLDED_WELL_ABOVE_NOISE`)."""
FOLDED: Final = 2
"""Tables of numbers cut into this many parts are folded: they only count whether both numbers are
in the same part. This shows the dependence with 0.7 times the noise that four cells would have."""
_MOST_PARTS: Final = 8
"""Largest number of parts that a column of numbers is cut into."""
_FEW_PARTS: Final = 3
"""Least number of parts, unless so much noise requires folding."""
_ABOVE_NOISE: Final = 10.0
"""Columns of numbers are cut into as many parts as keep a cell's share at least this many times its
noise, for equally frequent cells."""
_FEW_ABOVE_NOISE: Final = 4.0
"""The same for `_FEW_PARTS`: the evidence adds up over the cells of a table."""
_FOLDED_ABOVE_NOISE: Final = 3.0
"""The same for folded tables, where the share is a quarter of all records."""
_FOLDED_WELL_ABOVE_NOISE: Final = 4.0
"""The part of coarse pairs grows, up to `_MOST_LENGTH`, until a quarter of all records is this many
times its noise: clearly enough for folded tables."""
_LENGTH_OVER_NOISE: Final = FOLDED**2 * _FOLDED_WELL_ABOVE_NOISE
"""Length of the part that achieves this, over the noise of `_noise_of_pairs`."""
_LEVELS_LENGTH: Final = 0.15
"""Length of the part that counts the levels of numbers."""
_LARGEST_LEVEL_NOISE: Final = 1 / 32
"""Levels are counted up to this noise on a level's share in a class; above it no value would stand
out."""


@dataclass(frozen=True)
class PairLengths:
    """How pairs of columns are measured.

    Attributes:
        fine: length of the part that counts the chosen pairs.
        coarse: length of the part that counts coarse pairs, of all numbers in few cells.
        parts: number of parts of each of these columns, from 2 to 8; 0 without coarse pairs.
    """

    fine: float
    coarse: float
    parts: int


def blur_of(scale: NoiseScale, grid: Grid, classes: int, records: int) -> float:
    """The blur: noise of a class's mean feature along any one direction.

    Classes are taken to be equally frequent.

    Args:
        scale: of the noise on the sums.
        grid: of the sums.
        classes: number of classes.
        records: number of records: the public one, or an estimate from noisy counts.
    """
    return scale.sigma * grid.unit * classes / records


def is_undecided(feature_map: FeatureMap) -> TypeGuard[JointFeatures]:
    """Whether an embedding leaves the choice of pairs of columns to the release."""
    return isinstance(feature_map, JointFeatures) and feature_map.marginals.undecided


def lengths_of_pairs(marginals: MarginalFeatures, blur: float, classes: int) -> PairLengths | None:
    """How pairs of columns are measured at a given blur.

    With less noise, columns of numbers are cut into more parts: these show more of the dependence,
    but have more noise in total. With more noise, the part of these pairs is made longer.

    Args:
        marginals: of an embedding's map, which leaves pairs undecided.
        blur: see `blur_of`.
        classes: number of classes.

    Returns:
        None if pairs would show nothing but noise, and none are named.
    """
    if not marginals.groups:
        return None
    named = _length_of_named(marginals)
    if blur > _largest_pairs_blur(classes):
        return PairLengths(named, 0.0, 0) if named else None
    fine = named or (_LENGTH if blur <= USUAL_LENGTH_BLUR else _NOISY_LENGTH)
    noise = _noise_of_pairs(marginals, blur, classes)
    target = _TARGET_NOISE if classes > 1 else _TARGET_NOISE_WITHOUT_CLASSES
    clear, told = (
        min(noise / target, _LONG_LENGTH),
        min(_LENGTH_OVER_NOISE * noise, _MOST_LENGTH),
    )
    coarse = max(_SHORT_LENGTH, clear, told)
    parts = _parts_of_numbers(noise / coarse) if marginals.pairs_of_numbers else 0
    return PairLengths(fine, coarse, parts) if parts or named or blur <= USUAL_LENGTH_BLUR else None


def _length_of_named(marginals: MarginalFeatures) -> float:
    """The length of the part of named pairs and triples, whatever the noise; 0 if there are none.

    Each of them is about as long as a column would be if there were nothing else.
    """
    several = len(marginals.named)
    return min(math.sqrt(several / (len(marginals.columns) + several)), _MOST_LENGTH)


def decisive_blurs(feature_map: FeatureMap, classes: int) -> list[float]:
    """The blurs at which parts of a release reach their greatest and least lengths.

    Args:
        feature_map: of the embedding.
        classes: number of classes.
    """
    found = [0.0, USUAL_LENGTH_BLUR, math.nextafter(USUAL_LENGTH_BLUR, math.inf), math.inf]
    if not is_undecided(feature_map):
        return found
    marginals = feature_map.marginals
    if marginals.pairs_of_numbers:
        # Up to this blur the part of coarse pairs only grows.
        of_blur = _noise_of_pairs(marginals, 1.0, classes)
        found.append(min(_MOST_LENGTH / _LENGTH_OVER_NOISE / of_blur, _largest_pairs_blur(classes)))
    if marginals.by_level:
        # Above this blur other parts also get the length of the levels.
        found.append(_largest_levels_blur(marginals))
    return found


def _largest_pairs_blur(classes: int) -> float:
    """The largest blur at which pairs of columns are measured."""
    return LARGEST_PAIRS_BLUR * math.sqrt(classes)


def _noise_of_pairs(marginals: MarginalFeatures, blur: float, classes: int) -> float:
    """Noise on a cell's share of a pair of numbers, times the length of the pairs' part.

    This is the noise over all classes together, which show most of what each class does.
    """
    return blur / math.sqrt(classes) * math.sqrt(len(marginals.pairs_of_numbers))


def _parts_of_numbers(noise: float) -> int:
    """The number of parts of columns of numbers, given the noise on a cell's share of a pair.

    Returns:
        0 if even halves would show nothing but noise.
    """
    if not noise:
        return _MOST_PARTS
    many, few = (
        math.floor(1 / math.sqrt(least * noise)) for least in (_ABOVE_NOISE, _FEW_ABOVE_NOISE)
    )
    parts = min(max(many, min(few, _FEW_PARTS)), _MOST_PARTS)
    if parts >= _FEW_PARTS:
        return parts
    return FOLDED if FOLDED**2 * _FOLDED_ABOVE_NOISE * noise <= 1 else 0


def length_of_levels(marginals: MarginalFeatures, blur: float) -> float | None:
    """The length of the part that counts the levels of numbers.

    Args:
        marginals: of an embedding's map, which leaves pairs undecided.
        blur: see `blur_of`.

    Returns:
        None if no value would stand out from the noise, or no number has more levels than cells.
    """
    counted = marginals.by_level and blur <= _largest_levels_blur(marginals)
    return _LEVELS_LENGTH if counted else None


def _largest_levels_blur(marginals: MarginalFeatures) -> float:
    """The largest blur at which levels of numbers are counted, if there are such columns."""
    return _LARGEST_LEVEL_NOISE * _LEVELS_LENGTH / math.sqrt(len(marginals.by_level))
