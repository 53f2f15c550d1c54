"""Second moments of a table's columns, which show the dependence of every pair.

Tangent features carry a little information on every pair of columns. The dependence of two columns
shows in the mean product of their numbers, or of the indicators of their categories, so products
have their own part of the feature (`dpntk.common.features.joint`). Each record's products are
divided by their norm: numbers are rarely at their bounds, and any norm that a record leaves unused
would be lost in the noise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Final, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..errors import SchemaError
from ..numerics.exact import first_largest
from ..schema.encoding import blocks_of
from ..schema.table import LEVELS, TableSchema

STEPS: Final = 31
"""Numbers are rounded to odd integers -31..31, so that products are exact."""
TO_STEPS: Final = 8
"""The number of the 256 levels that become one step."""
CONSTANT: Final = 15
"""The constant beside a record's numbers. Without it, only their ratios would count."""
INDICATOR: Final = 20
"""The value for a record's category; other categories have 0."""
LEAST_DEVIATION: Final = 0.5
"""Numbers with a smaller deviation, in steps, and very rare categories count as constant."""
_USUAL_DEVIATION: Final = 9.0
"""Usual deviation of a number, in steps: 15 % of the range. Indicators have about the same."""
MOST_CATEGORIES: Final = 1 << 8
"""Columns with more categories are excluded."""
FEW_CATEGORIES: Final = 32
"""Columns with more categories are included only as far as there is room (`MOST_WITH_MANY`)."""
MOST_WITH_MANY: Final = 1 << 8
"""The most factors with them. The time that products take grows with the square of this number."""
MOST_FACTORS: Final = 1 << 10
"""If there are more factors than this, categories are excluded, and then numbers as well."""
MOST_TIMES: Final = 5
"""The largest factor of a target with which sums of products stay exact (`embed/exact`)."""
_TIMES: Final = 3
"""The default factor of a target. With more, everything else would be lost in the noise, and a
prediction needs that, too (docs/ablations.md)."""

Matrix = TypeVar("Matrix", Tensor, NDArray[np.float64])


@dataclass(frozen=True)
class MomentFeatures:
    """z z^T / |z|^2, where z holds a constant, a record's numbers, and indicators of categories.

    One of the numbers may be a target: it is several times larger in z, and so are its products
    with everything else, while the norm stays the same.

    Attributes:
        numbers: for each number, its place in a record, and the place of the value that marks it as
            missing, -1 if it cannot be missing. A missing number is 0.
        categories: for each column of categories, the place of its first category in a record, and
            the number of categories.
        record_size: number of values in a record.
        levels: records hold integers 0..levels.
        target: the place of a number, and its factor, an integer from 2 to 5; None if there is no
            target.

    Guarantee:
        norm_bound: the norm of z z^T is |z|^2, which is not 0. nonnegative: <z z^T, y y^T> is <z,
        y>^2. Both hold for any z, and so for any target. (docs/privacy/proofs.md, statements 1 and
        2.)

    Raises:
        SchemaError: a record has no such places.
    """

    numbers: tuple[tuple[int, int], ...]
    categories: tuple[tuple[int, int], ...]
    record_size: int
    levels: int = LEVELS
    target: tuple[int, int] | None = None
    norm_bound: ClassVar[float] = 1.0
    nonnegative: ClassVar[bool] = True

    def __post_init__(self) -> None:
        wrong = SchemaError("feature map: products of columns that a record does not have")
        if self.levels != LEVELS or len(self.numbers) + len(self.categories) < 2:
            raise wrong
        for places in ([n for n, _ in self.numbers], [first for first, _ in self.categories]):
            if places != sorted(set(places)):
                raise wrong
        for place, missing in self.numbers:
            if not (0 <= place < self.record_size and -1 <= missing < self.record_size):
                raise wrong
        for first, count in self.categories:
            if not (first >= 0 and 2 <= count <= MOST_CATEGORIES):
                raise wrong
            if first + count > self.record_size:
                raise wrong
        if self.factors > MOST_FACTORS:
            raise wrong
        if self.target is not None:
            place, times = self.target
            if place not in dict(self.numbers) or not 2 <= times <= MOST_TIMES:
                raise SchemaError("feature map: a target of products that it cannot have")

    @classmethod
    def of(cls, schema: TableSchema, *, with_many: bool = True) -> MomentFeatures | None:
        """The map of all columns but the label; None if there are fewer than two, or too many.

        Args:
            schema: of the table.
            with_many: whether columns with more than `FEW_CATEGORIES` are included, those with the
                fewest first. Older embeddings and releases do not have them.
        """
        numbers: list[tuple[int, int]] = []
        few: list[tuple[int, int]] = []
        many: list[tuple[int, int]] = []
        for block in blocks_of(schema):
            if block.column.kind.numeric:
                missing = block.place.stop - 1 if block.missing_place else -1
                numbers.append((block.place.start, missing))
            elif 2 <= (count := block.shares.stop - block.shares.start) <= MOST_CATEGORIES:
                (few if count <= FEW_CATEGORIES else many).append((block.shares.start, count))
        factors = 1 + len(numbers) + sum(count for _, count in few)
        if factors > MOST_FACTORS:
            few, many = [], []
        categories = few
        for first, count in sorted(many if with_many else [], key=lambda column: column[1]):
            if factors + count <= MOST_WITH_MANY:
                factors, categories = factors + count, [*categories, (first, count)]
        if not 2 <= len(numbers) + len(categories) < MOST_FACTORS:
            return None
        return cls(tuple(numbers), tuple(sorted(categories)), schema.record_size)

    @property
    def dimension(self) -> int:
        """k^2: all products, including squares, and the product of each two factors twice."""
        return self.factors**2

    @cached_property
    def factors(self) -> int:
        """k: the number of entries of z, which are the constant, the numbers and the categories."""
        return 1 + len(self.numbers) + sum(count for _, count in self.categories)

    @cached_property
    def places(self) -> dict[int, slice]:
        """The place of each column in z, by its place in a record."""
        found, start = {}, 1
        for place, _ in self.numbers:
            found[place] = slice(start, start + 1)
            start += 1
        for place, count in self.categories:
            found[place] = slice(start, start + count)
            start += count
        return found

    @property
    def columns(self) -> int:
        """The number of columns."""
        return len(self.numbers) + len(self.categories)

    @cached_property
    def column(self) -> Tensor:
        """The column of each entry of z, numbers first; 0 for the constant. int64 (k,)."""
        found = torch.zeros(self.factors, dtype=torch.int64)
        for number, place in enumerate(self.places.values(), 1):
            found[place] = number
        return found

    @cached_property
    def times(self) -> Tensor:
        """The factor of each entry of z, int64 (k,): 1, except for the target."""
        found = torch.ones(self.factors, dtype=torch.int64)
        if self.target is not None:
            place, times = self.target
            found[self.places[place]] = times
        return found

    @cached_property
    def possible(self) -> Tensor:
        """A projection Q onto the space of possible z, float64 (k, k).

        Up to constant factors, the indicators of a column have the same sum as those of any other,
        and as the constant. So Q P Q removes pure noise from noisy products P: for two columns with
        two categories each, three quarters of it.
        """
        never = torch.zeros(self.factors, len(self.categories), dtype=torch.float64)
        never[0] = -INDICATOR / CONSTANT
        for column, (first, _) in enumerate(self.categories):
            never[self.places[first], column] = 1.0
        basis, _ = torch.linalg.qr(never)
        found: Tensor = torch.eye(self.factors, dtype=torch.float64) - basis @ basis.T
        return found

    def aiming_at(self, place: int) -> MomentFeatures:
        """The same products with a number as the target.

        Args:
            place: the number's place in a record.

        Raises:
            SchemaError: there is no such number.
        """
        return replace(self, target=(place, _TIMES))

    def target_in(self, schema: TableSchema) -> str | None:
        """The name of the target, if any.

        Args:
            schema: of the table.
        """
        if self.target is None:
            return None
        names = {block.place.start: block.column.name for block in blocks_of(schema)}
        return names.get(self.target[0])

    def noise_on_correlations(self, noise: float) -> float:
        """The approximate error of correlations from noise on products, for usual deviations.

        Correlations with a target have a smaller error.

        Args:
            noise: standard deviation of the noise on a product.
        """
        return noise * self._usual_square / _USUAL_DEVIATION**2

    @property
    def _usual_square(self) -> float:
        """The |z|^2 of a record whose numbers have the usual deviation."""
        square = CONSTANT**2 + _USUAL_DEVIATION**2 * (len(self.numbers) + self._longer)
        return square + INDICATOR**2 * len(self.categories)

    @property
    def _longer(self) -> int:
        """The number of further numbers whose squares the target's square amounts to."""
        return 0 if self.target is None else self.target[1] ** 2 - 1

    @property
    def largest_square(self) -> int:
        """The largest |z|^2 of any record."""
        numbers = len(self.numbers) + self._longer
        return CONSTANT**2 + STEPS**2 * numbers + INDICATOR**2 * len(self.categories)

    def steps(self, records: Tensor) -> Tensor:
        """The vector z of each record, in integers.

        Args:
            records: integers 0..levels, of any type, (b, record size).

        Returns:
            int64 (b, k).
        """
        whole = records.to(torch.int64)
        found = [torch.full_like(whole[:, :1], CONSTANT)]
        for place, missing in self.numbers:
            number = whole[:, place, None] // TO_STEPS * 2 - STEPS
            if missing >= 0:
                number = torch.where(whole[:, missing, None] > 0, 0, number)
            found.append(number)
        for first, count in self.categories:
            # The first largest value, so that any record has one category in each column.
            chosen = first_largest(whole[:, first : first + count])
            among = torch.arange(count, device=whole.device)
            found.append((chosen[:, None] == among) * INDICATOR)
        factors = torch.cat(found, dim=1)
        if self.target is not None:
            place, times = self.target
            factors[:, self.places[place]] *= times
        return factors

    def spec(self) -> dict[str, Any]:
        """The whole map, as plain JSON."""
        return {
            "features": "moments",
            "inputs": self.record_size,
            "levels": self.levels,
            "numbers": [list(number) for number in self.numbers],
            "categories": [list(column) for column in self.categories],
            **({} if self.target is None else {"target": list(self.target)}),
        }

    @classmethod
    def from_spec(cls, spec: Mapping[str, Any]) -> MomentFeatures:
        """Rebuild a map from `spec()`.

        Raises:
            SchemaError: it does not describe such a map.
        """
        wrong = SchemaError("feature map: not products that this dpntk knows")
        inputs, levels = spec.get("inputs"), spec.get("levels")
        if type(inputs) is not int or type(levels) is not int:
            raise wrong
        parts = []
        for name in ("numbers", "categories"):
            rows = spec.get(name)
            if not isinstance(rows, list) or not all(map(_is_pair, rows)):
                raise wrong
            parts.append(tuple((row[0], row[1]) for row in rows))
        target = spec.get("target")
        if target is not None and not _is_pair(target):
            raise wrong
        aim = None if target is None else (target[0], target[1])
        rebuilt = cls(parts[0], parts[1], inputs, levels, aim)
        if rebuilt.spec() != dict(spec):
            raise wrong
        return rebuilt


def noise_variances(covariance: Matrix) -> Matrix:
    """The variances of the entries of A E A^T, where E is the noise on products.

    E is symmetric, with variance 1 off its diagonal and 2 on it. With K = A A^T, the variance of
    entry (i, j) is K_ii K_jj + K_ij^2.

    Args:
        covariance: K, float64 (k, k).

    Returns:
        Float64 (k, k).
    """
    own = covariance.diagonal()
    return own[:, None] * own + covariance * covariance


def _is_pair(value: object) -> bool:
    """Whether a JSON value is a list of two integers."""
    return isinstance(value, list) and len(value) == 2 and all(type(n) is int for n in value)
