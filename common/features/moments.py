"""Second moments of a table's numbers: how they go together.

Tangent features know of every pair of columns, and of no pair much. Two numbers that go together
show in the mean of one product, so products have a part of the feature of their own
(`dpntk.common.features.joint`): with it inner products are those of the polynomial kernel of degree
two.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ..errors import SchemaError
from ..schema.encoding import blocks_of
from ..schema.table import LEVELS, TableSchema

STEPS: Final = 31
"""Numbers are rounded to whole numbers -31..31, all of them odd, so that products are exact."""
TO_STEPS: Final = 8
"""So many of the 256 levels of a number become one."""
_MOST_NUMBERS: Final = 1 << 12


@dataclass(frozen=True)
class MomentFeatures:
    """z z^T / (31^2 k), z being 31 and the record's k - 1 numbers, whole ones -31..31 of a scale.

    Attributes:
        numbers: of each, its place in a record and that of the value that says that it is missing,
            -1 if there is none. A missing number is 0.
        record_size: number of values in a record.
        levels: records hold integers 0..levels.

    Guarantee:
        norm_bound: the norm of z z^T is |z|^2, at most 31^2 k. nonnegative: <z z^T, y y^T> is
        <z, y>^2. (docs/privacy/proofs.md, statements 1 and 2.)

    Raises:
        SchemaError: a record has no such places.
    """

    numbers: tuple[tuple[int, int], ...]
    record_size: int
    levels: int = LEVELS

    def __post_init__(self) -> None:
        wrong = SchemaError("feature map: products of numbers that a record does not have")
        places = [place for place, _ in self.numbers]
        if not 2 <= len(places) <= _MOST_NUMBERS or self.levels != LEVELS:
            raise wrong
        if places != sorted(set(places)):
            raise wrong
        for place, missing in self.numbers:
            if not (0 <= place < self.record_size and -1 <= missing < self.record_size):
                raise wrong

    @classmethod
    def of(cls, schema: TableSchema) -> MomentFeatures | None:
        """The products of all numeric columns of a table; None if there are not two."""
        numbers = tuple(
            (block.place.start, block.place.stop - 1 if block.missing_place else -1)
            for block in blocks_of(schema)
            if block.column.kind.numeric
        )
        return cls(numbers, schema.record_size) if len(numbers) > 1 else None

    @property
    def dimension(self) -> int:
        """All products, those of a number with itself too, and each of two numbers twice: k^2."""
        return self.factors**2

    @property
    def factors(self) -> int:
        """k: the numbers and one constant, so that the numbers themselves are among products."""
        return 1 + len(self.numbers)

    @property
    def entry(self) -> float:
        """What a product of two z is multiplied by."""
        return 1 / (STEPS**2 * self.factors)

    @property
    def norm_bound(self) -> float:
        """1: see the class docstring."""
        return 1.0

    @property
    def nonnegative(self) -> bool:
        """Always: see the class docstring."""
        return True

    def steps(self, records: NDArray[np.uint8]) -> NDArray[np.int64]:
        """Z of each record: 31, and odd whole numbers -31..31 or 0, int64 (b, k)."""
        places = [place for place, _ in self.numbers]
        found: NDArray[np.int64] = np.full((len(records), self.factors), STEPS, dtype=np.int64)
        found[:, 1:] = records[:, places].astype(np.int64) // TO_STEPS * 2 - STEPS
        for number, (_, missing) in enumerate(self.numbers):
            if missing >= 0:
                found[records[:, missing] > 0, 1 + number] = 0
        return found

    def spec(self) -> dict[str, Any]:
        """All that there is to it, as plain JSON."""
        return {
            "features": "moments",
            "inputs": self.record_size,
            "levels": self.levels,
            "numbers": [list(number) for number in self.numbers],
        }

    @classmethod
    def from_spec(cls, spec: Mapping[str, Any]) -> MomentFeatures:
        """Rebuild a map from `spec()`.

        Raises:
            SchemaError: it does not describe such a map.
        """
        wrong = SchemaError("feature map: not products that this dpntk knows")
        rows, inputs, levels = spec.get("numbers"), spec.get("inputs"), spec.get("levels")
        if not isinstance(rows, list) or type(inputs) is not int or type(levels) is not int:
            raise wrong
        if not all(
            isinstance(row, list) and len(row) == 2 and all(type(n) is int for n in row)
            for row in rows
        ):
            raise wrong
        rebuilt = cls(tuple((row[0], row[1]) for row in rows), inputs, levels)
        if rebuilt.spec() != dict(spec):
            raise wrong
        return rebuilt
