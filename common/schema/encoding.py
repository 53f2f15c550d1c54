"""Encoding a table's rows as records: integers 0..255 that a feature map can take.

Every column has its place in the record:

========== ====================================================================================
numeric    the value on its scale between its bounds; soft bins; whether it is missing
ordinal    the rank; one value for each category
others     one value for each category (that of missing values last)
========== ====================================================================================

Columns that a schema lists in `by_rank` are encoded as numbers, their ranks.

A value between two knots of the soft bins belongs to both, in proportion to their nearness: a
triangular basis. The encoding is a function of the schema and the row alone. Numbers are looked up
among thresholds that follow from the schema, and all later steps are in integers, so a row has the
same bytes wherever it stands in any table (docs/privacy/proofs.md, statement 3a).
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal, localcontext
from functools import cached_property, lru_cache
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from .columns.codes import UNLISTED
from .columns.column import Column
from .columns.kinds import ColumnKind, Missing, Transform
from .columns.ranks import numbers_of
from .table import LEVELS, TableSchema

Scalar = TypeVar("Scalar", np.float32, np.float64)

_DIGITS: Final = 40
"""Digits of logarithms; zeros after the decimal point in the larger bound add to them."""


def to_scale(values: NDArray[np.float64], transform: Transform) -> NDArray[np.float64]:
    """Convert values to the scale of a transform."""
    match transform:
        case Transform.NONE:
            return values
        case Transform.LOG1P | Transform.SIGNED_LOG:
            return np.sign(values) * np.log1p(np.abs(values))


def from_scale(values: NDArray[np.float64], transform: Transform) -> NDArray[np.float64]:
    """The inverse of `to_scale`."""
    match transform:
        case Transform.NONE:
            return values
        case Transform.LOG1P | Transform.SIGNED_LOG:
            return np.sign(values) * np.expm1(np.abs(values))


@lru_cache(maxsize=1024)
def _logarithmic_midpoints(lower: float, upper: float, places: int) -> tuple[float, ...]:
    """Values halfway between neighbours of equally spaced points on a logarithmic scale.

    NumPy's logarithms may differ by a unit in the last place between processors, which could move a
    row into another cell. Those of `decimal` are rounded correctly, by its specification, but are
    slow.
    """
    least, most = Decimal(lower), Decimal(upper)
    with localcontext() as context:
        context.prec = _DIGITS - min(0, max(abs(least), abs(most)).adjusted())
        low, high = ((1 + abs(x)).ln().copy_sign(x) for x in (least, most))
        step = (high - low) / (2 * places)
        middles = (low + step * (2 * place + 1) for place in range(places))
        return tuple(float((abs(x).exp() - 1).copy_sign(x)) for x in middles)


@dataclass(frozen=True)
class NumericEncoding:
    """The encoding of a numeric column as integers.

    Attributes:
        column: the column.
        knots: number of soft bins, at least 2.
    """

    column: Column
    knots: int

    @property
    def places(self) -> int:
        """Values are rounded to `places` + 1 points: 255 steps from each knot to the next.

        Integers and listed values with one knot each are not rounded.
        """
        return LEVELS * (self.knots - 1)

    def at(self, share: NDArray[np.float64]) -> NDArray[np.float64]:
        """The values at fractions 0..1 of the way from bound to bound, on the column's scale.

        Listed values are at equal distances on it.
        """
        if listed := self.column.values:
            return np.interp(share * (len(listed) - 1), np.arange(len(listed)), listed)
        lower, upper = self.bounds
        low, high = to_scale(np.array([lower, upper]), self.column.transform)
        values = from_scale(low + share * (high - low), self.column.transform)
        clipped: NDArray[np.float64] = np.clip(values, lower, upper)
        return clipped

    def share(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """The inverse of `at`; 0 if the bounds coincide on the scale."""
        if listed := self.column.values:
            return np.interp(values, listed, np.arange(len(listed)) / (len(listed) - 1))
        low, high = to_scale(np.array(self.bounds), self.column.transform)
        above: NDArray[np.float64] = to_scale(values, self.column.transform) - low
        return above / (high - low) if low < high else np.zeros_like(above)

    def bins(self, share: NDArray[Scalar]) -> NDArray[Scalar]:
        """The weights (n, knots) with which values at fractions 0..1 (n,) belong to each knot."""
        place, knot = share * (self.knots - 1), np.arange(self.knots, dtype=share.dtype)
        belongs: NDArray[Scalar] = np.clip(1 - np.abs(place[:, None] - knot), 0, 1)
        return belongs

    @property
    def bounds(self) -> tuple[float, float]:
        """The smallest and the largest value."""
        lower, upper = self.column.bounds
        return float(lower), float(upper)

    @cached_property
    def _thresholds(self) -> NDArray[np.float64]:
        """The midpoints between neighbouring points from bound to bound, float64 (places,)."""
        if self.column.transform is Transform.NONE:  # only sums and products, which IEEE 754 fixes
            return self.at((np.arange(self.places) + 0.5) / self.places)
        return np.clip(_logarithmic_midpoints(*self.bounds, self.places), *self.bounds)

    def _place(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """The nearest of the `places` + 1 points to each value, int64."""
        if self.column.values:
            last = len(self.column.values) - 1
            return (2 * self.places * self.column.ranks(values) + last) // (2 * last)
        return np.searchsorted(self._thresholds, values, side="right").astype(np.int64)

    def encode(self, values: NDArray[np.float64], missing: NDArray[np.bool_]) -> NDArray[np.uint8]:
        """Encode a column.

        Args:
            values: float64 (b,), finite where they are not missing; values beyond a bound count as
                the bound.
            missing: bool (b,).

        Returns:
            uint8 (b, width): the value, the bins (which add up to 255), and, if the schema has it,
            whether it is missing, in which case all others are 0.
        """
        place = self._place(np.where(missing, 0.0, values))
        count, rows = len(values), np.arange(len(values))
        indicator = self.column.missing is Missing.INDICATOR
        encoded = np.zeros((count, 1 + self.knots + indicator), dtype=np.uint8)
        gaps = self.knots - 1
        encoded[:, 0] = (2 * place + gaps) // (2 * gaps)
        knot, beyond = np.divmod(place, LEVELS)
        encoded[rows, 1 + knot] = LEVELS - beyond
        between = np.flatnonzero(beyond)
        encoded[between, 2 + knot[between]] = beyond[between]
        encoded[missing] = 0
        if indicator:
            encoded[missing, -1] = LEVELS
        return encoded


@dataclass(frozen=True)
class CategoryEncoding:
    """The encoding of a column of categories as integers.

    Attributes:
        column: its description.
    """

    column: Column

    def encode(self, codes: NDArray[np.int64]) -> NDArray[np.uint8]:
        """Encode a column.

        Args:
            codes: int64 (b,), indices into the column's categories, `MISSING` if the schema has a
                category for that, or `UNLISTED`.

        Returns:
            uint8 (b, width): the rank of an ordinal value; 255 for its category and 0 for the
            others; 0 for all if it is in none.
        """
        ranked = self.column.kind is ColumnKind.ORDINAL
        encoded = np.zeros((len(codes), ranked + self.column.choices), dtype=np.uint8)
        place = np.where(codes < 0, self.column.choices - 1, codes)
        encoded[np.arange(len(codes)), ranked + place] = LEVELS
        if ranked:
            last = max(1, len(self.column.categories) - 1)
            encoded[:, 0] = np.where(codes < 0, 0, codes * LEVELS // last)
        encoded[codes == UNLISTED] = 0
        return encoded


Encoding = NumericEncoding | CategoryEncoding


@dataclass(frozen=True)
class Block:
    """The place of a column in a record.

    Attributes:
        column: its description; of categories that are encoded by rank, that of their ranks.
        place: the place of its values in a record.
        encoding: how they are made.
        by_rank: whether its values are codes of categories that are encoded by rank.
    """

    column: Column
    place: slice
    encoding: Encoding
    by_rank: bool = False

    def encode(self, values: NDArray[Any]) -> NDArray[np.uint8]:
        """Encode the column's values: numbers (NaN where missing), or codes of categories."""
        match self.encoding:
            case NumericEncoding():
                numbers = numbers_of(values) if self.by_rank else values
                encoded = self.encoding.encode(numbers, np.isnan(numbers))
                if self.by_rank:
                    encoded[values == UNLISTED] = 0
                return encoded
            case CategoryEncoding():
                return self.encoding.encode(values)

    @property
    def missing_place(self) -> bool:
        """Whether the last of a numeric column's values marks it as missing."""
        return self.column.missing is Missing.INDICATOR

    @property
    def shares(self) -> slice:
        """The values that add up to 255: bins or categories, and the mark of a missing value.

        One-way marginals are read from them.
        """
        ranked = self.column.kind is ColumnKind.ORDINAL
        return slice(
            self.place.start + (ranked or isinstance(self.encoding, NumericEncoding)),
            self.place.stop,
        )

    @property
    def first(self) -> int:
        """The place of its number, or of its first category."""
        found: int = (self.place if self.column.kind.numeric else self.shares).start
        return found

    @property
    def starts(self) -> tuple[int, int]:
        """Where a marginal of several columns may start to read it: at its number, or its bins."""
        return self.first, self.shares.start


def blocks_of(schema: TableSchema) -> tuple[Block, ...]:
    """The place of each column but the label in a record, in the order of the columns."""
    found, start = [], 0
    for stated, column in zip(schema.features, schema.encoded, strict=True):
        encoding: Encoding = (
            NumericEncoding(column, schema.knots(column))
            if column.kind.numeric
            else CategoryEncoding(column)
        )
        stop = start + schema.width(column)
        found.append(Block(column, slice(start, stop), encoding, column is not stated))
        start = stop
    return tuple(found)
