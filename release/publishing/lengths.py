"""How long the parts of a table's feature are that count pairs of columns and levels of numbers.

They follow from the blur (`blur_of`) and from what is public. The less noise there is, the more
parts are worth having, and the finer their cells.
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

FAINT: Final = 0.002
"""The largest blur at which the part of the chosen pairs has its usual length. Above it the part is
shorter, and is left out altogether if pairs of numbers in few cells would show nothing."""
FAINTEST: Final = 0.0075
"""The largest blur, over the root of the number of classes, at which pairs are measured at all."""
_LENGTH: Final = 0.3
"""Length of the part of the chosen pairs up to `FAINT`."""
_FAINT_LENGTH: Final = 0.1
"""Length of the part of the chosen pairs above `FAINT`: pairs of numbers in few cells show more."""
_SHORT_LENGTH: Final = 0.15
"""Least length of the part of all pairs of numbers."""
_LONG_LENGTH: Final = 0.45
"""Up to this length the part of all pairs of numbers grows for their sake: until the noise on the
share of a cell is `_CLEAR`."""
_CLEAR: Final = 0.01
_MOST_LENGTH: Final = 0.6
"""Up to this length it grows for halves to be told from noise at all (`_FOLDED_CLEARLY`)."""
FOLDED: Final = 2
"""Columns of numbers that are cut into this many parts are folded: a table of two only counts
whether both are in the same part. How the two go together shows through 0.7 times the noise that
four cells would have."""
_MOST_PARTS: Final = 8
"""Into how many parts a column of numbers is cut at most."""
_FEW_PARTS: Final = 3
"""Into how many parts it is cut at least, unless there is so much noise that it is folded."""
_ABOVE_NOISE: Final = 10.0
"""Columns of numbers are cut into as many parts as leave the share of a cell at least this many
times its noise, if all cells of a pair are equally frequent."""
_FEW_ABOVE_NOISE: Final = 4.0
"""The same for `_FEW_PARTS`: what so few cells say adds up over the cells of a table."""
_FOLDED_ABOVE_NOISE: Final = 3.0
"""The same for folded tables, where the share is a quarter of all records."""
_FOLDED_CLEARLY: Final = 4.0
"""The part of all pairs of numbers is made longer, up to `_MOST_LENGTH`, until a quarter of all
records is this many times its noise: clearly enough for folded tables."""
_LENGTH_OVER_NOISE: Final = FOLDED**2 * _FOLDED_CLEARLY
"""How long the part has to be for that, over the noise of `_noise_of_pairs`."""
_LEVELS_LENGTH: Final = 0.15
"""Length of the part that counts the levels of numbers."""
_STANDS_OUT: Final = 1 / 32
"""The largest noise on the share of a level in a class at which levels are counted; above it no
value would stand out."""


@dataclass(frozen=True)
class PairLengths:
    """How pairs of columns are measured.

    Attributes:
        fine: length of the part of a feature that counts the chosen pairs.
        coarse: length of the part that counts all pairs of numbers, in few cells.
        parts: into how many parts each column of these numbers is cut, from 2 to 8; 0 if pairs of
            numbers are not counted.
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
        classes: how many there are.
        records: how many there are: their public number, or what noisy counts say.
    """
    return scale.sigma * grid.unit * classes / records


def is_undecided(feature_map: FeatureMap) -> TypeGuard[JointFeatures]:
    """Whether a release is to choose among pairs of columns that an embedding holds."""
    return isinstance(feature_map, JointFeatures) and feature_map.marginals.undecided


def lengths_of_pairs(marginals: MarginalFeatures, blur: float, classes: int) -> PairLengths | None:
    """How pairs of columns are measured at a blur.

    The less noise there is, the more parts columns of numbers are cut into: more parts show more of
    how two columns go together, and have more noise in all. The more noise there is, the longer the
    part of such pairs is made.

    Args:
        marginals: of an embedding's map, which leaves pairs undecided.
        blur: see `blur_of`.
        classes: how many there are.

    Returns:
        None if pairs would show nothing but noise.
    """
    if not marginals.groups or blur > _faintest(classes):
        return None
    fine = _LENGTH if blur <= FAINT else _FAINT_LENGTH
    noise = _noise_of_pairs(marginals, blur, classes)
    clear, told = min(noise / _CLEAR, _LONG_LENGTH), min(_LENGTH_OVER_NOISE * noise, _MOST_LENGTH)
    coarse = max(_SHORT_LENGTH, clear, told)
    parts = _parts_of_numbers(noise / coarse) if marginals.pairs_of_numbers else 0
    return PairLengths(fine, coarse, parts) if parts or blur <= FAINT else None


def decisive_blurs(feature_map: FeatureMap, classes: int) -> list[float]:
    """The blurs at which each part of a release is as long, or as short, as it can be at any blur.

    Args:
        feature_map: of the embedding.
        classes: how many there are.
    """
    found = [0.0, FAINT, math.nextafter(FAINT, math.inf), math.inf]
    if not is_undecided(feature_map):
        return found
    marginals = feature_map.marginals
    if marginals.pairs_of_numbers:
        # Up to this blur the part of all pairs of numbers only grows.
        of_blur = _noise_of_pairs(marginals, 1.0, classes)
        found.append(min(_MOST_LENGTH / _LENGTH_OVER_NOISE / of_blur, _faintest(classes)))
    if marginals.by_level:
        # From here on other parts have what levels leave them.
        found.append(_faintest_of_levels(marginals))
    return found


def _faintest(classes: int) -> float:
    """The largest blur at which pairs of columns are measured."""
    return FAINTEST * math.sqrt(classes)


def _noise_of_pairs(marginals: MarginalFeatures, blur: float, classes: int) -> float:
    """Noise on the share of a cell of a pair of numbers, times the length of the pairs' part.

    Classes are taken together: what all of them show says most of what each does.
    """
    return blur / math.sqrt(classes) * math.sqrt(len(marginals.pairs_of_numbers))


def _parts_of_numbers(noise: float) -> int:
    """Into how many parts columns of numbers are cut, by the noise on the share of a cell of two.

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
    """How long the part is that counts the levels of numbers.

    Args:
        marginals: of an embedding's map, which leaves pairs undecided.
        blur: see `blur_of`.

    Returns:
        None if no value would stand out from the noise, or no number has more levels than cells.
    """
    counted = marginals.by_level and blur <= _faintest_of_levels(marginals)
    return _LEVELS_LENGTH if counted else None


def _faintest_of_levels(marginals: MarginalFeatures) -> float:
    """The largest blur at which levels of numbers are counted, if there are such columns."""
    return _STANDS_OUT * _LEVELS_LENGTH / math.sqrt(len(marginals.by_level))
