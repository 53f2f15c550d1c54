"""How long each part of a feature is in a release: chosen once one is made, by how noisy it is.

An embedding holds the sums of its parts exactly, so nothing has to be decided before the records
are read. How much noise there will be, and by how many records it is divided, is known afterwards;
and which pairs of a table's columns are worth a measurement of their own, once the rest is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeGuard

import numpy as np
import torch
from numpy.typing import NDArray

from ...common.features.base import FeatureMap
from ...common.features.joint import JointFeatures, parts_of
from ...common.features.joint_image import JointImageFeatures
from ...common.features.marginals.cells import MarginalColumn, MarginalGroup
from ...common.features.marginals.map import GroupChoice, MarginalFeatures
from ...embed.exact.grid import Grid
from ...embed.sums.file import Embedding
from ..mechanism.gaussian import NoiseScale
from .merging import merged_cells

# A blur is the noise on a class's mean feature along any one direction (`blur_of`).
DIM: Final = 0.009
"""The largest blur at which a release of images holds features of a network; above it, it holds
pixels alone. It never holds both: generators learn the noise of one part beside what the other
says."""
CHOSEN: Final = 10
"""How many pairs of columns a release chooses, if there are as many."""
FAINT: Final = 0.002
"""The largest blur at which the part of chosen pairs has its usual length. Above it the part is
shorter, and there is none unless pairs of numbers in few cells show something."""
FAINTEST: Final = 0.0075
"""The largest blur at which there are pairs of columns, over the root of the number of classes."""
_LENGTH: Final = 0.3
"""Length of the part of chosen pairs up to `FAINT`; above it, at least, of the part of all pairs of
numbers in few cells, which then show more."""
_FAINT_LENGTH: Final = 0.1
"""Length of the part of chosen pairs above `FAINT`."""
_SHORT_LENGTH: Final = 0.15
"""Length, at least, of the part of all pairs of numbers up to `FAINT`."""
_MOST_LENGTH: Final = 0.6
"""Length, at most, of the part of all pairs of numbers, which is longer where numbers are many or
records few."""
_FOLDED: Final = 2
"""Numbers in so many parts are folded: a table of two only counts whether both are in the same
part. That shows how they go together through 0.7 of the noise that four cells would have."""
_MOST_PARTS: Final = 8
"""Into how many parts a number is cut at most, where all pairs of numbers are there."""
_FEW_PARTS: Final = 3
"""Into so many parts numbers are cut where noise allows no more and is not so strong as to fold."""
_ABOVE_NOISE: Final = 10.0
"""Numbers are cut into so many parts that a cell's share is at least so many times its noise, if
all cells of a pair are equally frequent."""
_FEW_ABOVE_NOISE: Final = 5.0
"""What `_ABOVE_NOISE` is for `_FEW_PARTS`: what so few cells say adds up over the cells of a
table."""
_FOLDED_ABOVE_NOISE: Final = 3.0
"""What `_ABOVE_NOISE` is for folded tables, for a quarter of all records."""
_FOLDED_CLEARLY: Final = 4.0
"""What `_FOLDED_ABOVE_NOISE` would have to be: the part of all pairs of numbers is made longer, up
to `_MOST_LENGTH`, until a quarter of all records is so many times its noise."""
_LENGTH_OVER_NOISE: Final = _FOLDED**2 * _FOLDED_CLEARLY
"""How long that part has to be for this, over the noise of `_noise_of_pairs`."""
_LEVELS_LENGTH: Final = 0.15
"""Length of the part of numbers by their levels."""
_STANDS_OUT: Final = 1 / 32
"""The largest noise on the share of a level in a class at which numbers are there by their levels;
above it no value would stand out."""


@dataclass(frozen=True)
class PairLengths:
    """How pairs of columns are there.

    Attributes:
        fine: length of the part of a feature that is of chosen pairs.
        coarse: length of the part that is of all pairs of numbers, in few cells.
        parts: into how many each of these numbers is cut, from 2 to 8; 0 if they are not there.
    """

    fine: float
    coarse: float
    parts: int


@dataclass(frozen=True, eq=False)
class Weighed:
    """What a release is made of.

    Attributes:
        feature_map: of the release.
        rows: which rows of the embedding's sums are released, int64 (n,).
        into: which row of the release each of these is added to, int64 (n,), in rising order; where
            cells are merged, one row is the sum of several.
        scale: of the noise on the rows of the release.
        pairs: how pairs of columns are there; None if there are none.
        by_level: length of the part of numbers by their levels; None if there is none.
    """

    feature_map: FeatureMap
    rows: NDArray[np.int64]
    into: NDArray[np.int64]
    scale: NoiseScale
    pairs: PairLengths | None = None
    by_level: float | None = None

    def noise(self) -> NDArray[np.int64]:
        """Standard deviation of the noise on each row of the release, int64 (d,)."""
        return self.scale.sigmas(self.dimension)

    @property
    def dimension(self) -> int:
        """Of the release, d."""
        return int(self.into[-1]) + 1

    @property
    def first_rows(self) -> NDArray[np.int64]:
        """Of each row of the release, the first of the embedding's that is in it, int64 (d,)."""
        return self.rows[self._starts]

    @property
    def _starts(self) -> NDArray[np.int64]:
        return np.searchsorted(self.into, np.arange(self.dimension))

    def sums(self, exact: NDArray[np.int64]) -> NDArray[np.int64]:
        """What is released, before there is noise on it.

        Args:
            exact: sums of an embedding, int64 (D, c).

        Returns:
            int64 (d, c).
        """
        added: NDArray[np.int64] = np.add.reduceat(exact[self.rows], self._starts, axis=0)
        return added

    def where(self, chosen: NDArray[np.bool_]) -> Weighed:
        """Some rows of the release, of the same map, with the noise that they have among all.

        Args:
            chosen: bool (d,).
        """
        numbers = np.cumsum(chosen) - 1
        kept = chosen[self.into]
        return replace(
            self,
            rows=self.rows[kept],
            into=numbers[self.into[kept]],
            scale=self.scale.of_rows(np.flatnonzero(chosen)),
        )


def weighed(embedding: Embedding, scale: NoiseScale, records: int) -> Weighed:
    """What a release of an embedding is made of; see `weigh`.

    Guarantee:
        A function of the number of records that it is given, of the noise and of what is public.
    """
    schema, grid = embedding.schema, embedding.grid
    classes = len(schema.classes)
    blur = blur_of(scale, grid, classes, records)
    return weigh(embedding.feature_map, scale, blur, classes)


def blur_of(scale: NoiseScale, grid: Grid, classes: int, records: int) -> float:
    """Noise of a class's mean feature along any one direction, if classes are equally frequent.

    Args:
        scale: of the noise on sums.
        grid: of these.
        classes: how many there are.
        records: how many there are: their public number, or by counts that have their noise.
    """
    return scale.sigma * grid.unit * classes / records


def weigh(feature_map: FeatureMap, scale: NoiseScale, blur: float, classes: int) -> Weighed:
    """The map of a release, and the noise on an embedding's sums that makes it one of this map.

    Of a map that leaves open which pairs of columns it has, the first ones stand for those that are
    chosen later, by `with_pairs`, as if values were evenly frequent: what the noise is on each row
    does not depend on that.

    Guarantee:
        The squares of the factors times those of the parts' lengths add up to 1, up to roundings of
        2^-53. (docs/privacy/proofs.md, statement 22.)

    Args:
        feature_map: of the embedding.
        scale: of the noise on the map's features, whatever its parts weigh.
        blur: see `blur_of`.
        classes: how many there are.

    Raises:
        BudgetError: a part would need more noise than 64 bits hold.
    """
    if is_undecided(feature_map):
        marginals = feature_map.marginals
        pairs = lengths_of_pairs(marginals, blur, classes)
        if pairs is None:
            return with_pairs(feature_map, scale, None)
        count = min(CHOSEN, len(marginals.groups))
        evenly = np.ones(marginals.dimension, dtype=np.int64)
        fine = fine_pairs(pairs, range(count), merged_cells(marginals, evenly))
        coarse = None
        if pairs.parts:
            coarse = coarse_pairs(pairs, marginals, merged_cells(marginals, evenly, pairs.parts))
        by_level = length_of_levels(marginals, blur)
        found = with_pairs(feature_map, scale, fine, coarse, by_level)
        return replace(found, pairs=pairs, by_level=by_level)
    every = np.arange(feature_map.dimension)
    if not isinstance(feature_map, JointImageFeatures) or feature_map.weight is not None:
        return Weighed(feature_map, every, every, scale)
    of_main, of_pixels = feature_map.weights_of_parts
    border = feature_map.main.dimension
    # Beside a network whose features may be opposite the noise is for more than pixels need.
    dim = blur > DIM and feature_map.main.nonnegative
    part, rows, weight = (
        (feature_map.pixels, every[border:], of_pixels)
        if dim
        else (feature_map.main, every[:border], of_main)
    )
    factors = np.full(len(rows), 1 / weight)
    found = Weighed(part, rows, np.arange(len(rows)), replace(scale, factors=factors))
    found.noise()
    return found


def is_undecided(feature_map: FeatureMap) -> TypeGuard[JointFeatures]:
    """Whether a release is to choose among pairs of columns that an embedding holds."""
    return isinstance(feature_map, JointFeatures) and feature_map.marginals.undecided


def lengths_of_pairs(marginals: MarginalFeatures, blur: float, classes: int) -> PairLengths | None:
    """How pairs of columns are there.

    Numbers are cut into the more parts the less noise there is: more is seen of how two go
    together, and there is more noise in all. Where there is so much noise that halves say little,
    the part of such pairs is longer.

    Args:
        marginals: of an embedding's map, which leaves pairs undecided.
        blur: see `blur_of`.
        classes: how many there are.

    Returns:
        None if noise leaves nothing to be seen.
    """
    if not marginals.groups or blur > _faintest(classes):
        return None
    fine, coarse = (_LENGTH, _SHORT_LENGTH) if blur <= FAINT else (_FAINT_LENGTH, _LENGTH)
    noise = _noise_of_pairs(marginals, blur, classes)
    coarse = max(coarse, min(_LENGTH_OVER_NOISE * noise, _MOST_LENGTH))
    parts = _parts_of_numbers(noise / coarse) if marginals.pairs_of_numbers else 0
    return PairLengths(fine, coarse, parts) if parts or blur <= FAINT else None


def decisive_blurs(feature_map: FeatureMap, classes: int) -> list[float]:
    """Blurs at which parts of a release are as long, and as short, as they can be at any.

    Args:
        feature_map: of the embedding.
        classes: how many there are.
    """
    found = [0.0, FAINT, math.nextafter(FAINT, math.inf), math.inf]
    if is_undecided(feature_map) and feature_map.marginals.pairs_of_numbers:
        # Up to there the part of all pairs of numbers only grows.
        of_blur = _noise_of_pairs(feature_map.marginals, 1.0, classes)
        found.append(min(_MOST_LENGTH / _LENGTH_OVER_NOISE / of_blur, _faintest(classes)))
    return found


def _faintest(classes: int) -> float:
    """The blur beyond which there are no pairs of columns."""
    return FAINTEST * math.sqrt(classes)


def _noise_of_pairs(marginals: MarginalFeatures, blur: float, classes: int) -> float:
    """Noise on the share of a cell of a pair of numbers, times the length of the pairs' part.

    It is that of all classes together, since what is seen of these says most of each.
    """
    return blur / math.sqrt(classes) * math.sqrt(len(marginals.pairs_of_numbers))


def _parts_of_numbers(noise: float) -> int:
    """Into how many parts numbers are cut where a share of a cell of two has so much noise.

    Returns:
        0 if noise leaves nothing to be seen.
    """
    if not noise:
        return _MOST_PARTS
    many, few = (
        math.floor(1 / math.sqrt(least * noise)) for least in (_ABOVE_NOISE, _FEW_ABOVE_NOISE)
    )
    parts = min(max(many, min(few, _FEW_PARTS)), _MOST_PARTS)
    if parts >= _FEW_PARTS:
        return parts
    return _FOLDED if _FOLDED**2 * _FOLDED_ABOVE_NOISE * noise <= 1 else 0


def length_of_levels(marginals: MarginalFeatures, blur: float) -> float | None:
    """How long the part of numbers by their levels is.

    Args:
        marginals: of an embedding's map, which leaves pairs undecided.
        blur: see `blur_of`.

    Returns:
        None if noise leaves no value to be seen, or no number has more levels than cells.
    """
    noise = blur * math.sqrt(len(marginals.by_level)) / _LEVELS_LENGTH
    return _LEVELS_LENGTH if marginals.by_level and noise <= _STANDS_OUT else None


def fine_pairs(
    pairs: PairLengths,
    numbers: Sequence[int],
    merging: Mapping[MarginalColumn, MarginalColumn],
) -> GroupChoice:
    """Pairs that are chosen, by their numbers in the order of an embedding's map."""
    return GroupChoice(numbers, pairs.fine, merging)


def coarse_pairs(
    pairs: PairLengths,
    marginals: MarginalFeatures,
    merging: Mapping[MarginalColumn, MarginalColumn],
) -> GroupChoice:
    """All pairs of numbers, in few cells."""
    folded = pairs.parts == _FOLDED
    return GroupChoice(marginals.pairs_of_numbers, pairs.coarse, merging, folded)


def with_pairs(
    feature_map: JointFeatures,
    scale: NoiseScale,
    fine: GroupChoice | None,
    coarse: GroupChoice | None = None,
    by_level: float | None = None,
) -> Weighed:
    """What a release is made of that has some of the pairs that an embedding holds.

    Args:
        feature_map: of the embedding.
        scale: of the noise on the map's features, whatever its parts weigh.
        fine: the chosen pairs; None if there are none, nor any others.
        coarse: pairs that are there in few cells, too.
        by_level: length of the part of numbers by their levels; None leaves them out.

    Raises:
        BudgetError: a part would need more noise than 64 bits hold.
    """
    released = feature_map.choosing(fine, coarse, by_level)
    before, after = parts_of(feature_map), parts_of(released)
    marginals, left = feature_map.marginals, released.marginals
    columns, border = len(marginals.columns), len(marginals.columns) + len(marginals.by_level)
    several = [number for choice in (coarse, fine) if choice for number in choice.numbers]
    kept = range(border if by_level is not None else columns)
    numbers = [*kept, *(border + number for number in several)]
    rows, factors = [np.arange(before.split)], [after.main_weight / before.main_weight]
    into = [rows[0]]
    for number, table, new in zip(numbers, left.tables, left.entries, strict=True):
        place, entry = marginals.places[number], marginals.entries[number]
        cells = np.arange(place.stop - place.start)
        rows.append(before.marginal_place.start + place.start + cells)
        group = marginals.tables[number]
        if isinstance(group, MarginalGroup) and isinstance(table, MarginalGroup):
            cells = _merged(group, table)
        into.append(cells)
        factors.append(after.weight * new / (before.weight * entry))
    rows.append(np.arange(before.moment_place.start, before.moment_place.stop))
    into.append(np.arange(len(rows[-1])))
    factors.append(after.moment_weight / before.moment_weight)
    sizes = [before.split, *(table.dimension for table in left.tables), len(rows[-1])]
    starts = np.cumsum([0, *sizes[:-1]])
    order = [np.argsort(cells, kind="stable") for cells in into]
    found = Weighed(
        released,
        np.concatenate([each[sorted_] for each, sorted_ in zip(rows, order, strict=True)]),
        np.concatenate(
            [start + cells[by] for start, cells, by in zip(starts, into, order, strict=True)]
        ),
        replace(scale, factors=np.repeat(factors, sizes)),
    )
    found.noise()
    return found


def _merged(before: MarginalGroup, after: MarginalGroup) -> NDArray[np.int64]:
    """Which cell of a group with merged cells each cell of the group is in."""
    sides = zip(before.sides, after.sides, strict=True)
    cells = torch.meshgrid(
        *(merged.merge(torch.arange(side.dimension)) for side, merged in sides), indexing="ij"
    )
    found: NDArray[np.int64] = after.cell_among(dict(zip(after.sides, cells, strict=True))).numpy()
    return found.flatten()
