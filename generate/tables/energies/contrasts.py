"""Contrasts of columns: indicators that split rows in two, standardised."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import torch
from torch import Tensor

from ....common.schema.encoding import Block

_LEAST_SHARE: Final = 0.1
"""Least share of rows on either side of a contrast."""
_STEP: Final = 1 / 512
"""Less than the distance of two numbers in a record of 256 levels."""
_MOST_CONTRASTS: Final = 64
"""At most this many contrasts, the most even ones."""


@dataclass(frozen=True)
class Contrast:
    """An indicator of a number above its median (or at its largest value), or of a category.

    Attributes:
        block: the column.
        place: where it looks in a record.
        border: it is 1 for rows with more than this there.
        share: share of these rows.
    """

    block: Block
    place: int
    border: float
    share: float

    @property
    def deviation(self) -> float:
        """Its standard deviation."""
        return math.sqrt(self.share * (1 - self.share))

    def sides(self, records: Tensor, random: np.random.Generator) -> tuple[Tensor, Tensor]:
        """Values of the column on either side for each of some rows, (n, block size) each.

        Args:
            records: (n, record size), some of them on each side.
            random: draws among them.
        """
        above = records[:, self.place] > self.border
        one, other = (
            records[side][random.integers(int(side.sum()), size=len(records)), self.block.place]
            for side in (~above, above)
        )
        return one, other


class Contrasts:
    """Standardised contrasts of the columns.

    Args:
        blocks: the columns.
        records: rows of which the most even contrasts are taken, (n, record size); their marginals
            stay as they are.
    """

    def __init__(self, blocks: Sequence[Block], records: Tensor) -> None:
        found = []
        for block in blocks:
            places, border = range(block.first, block.place.stop), 0.5
            if block.column.kind.numeric:
                places, values = places[:1], records[:, block.first]
                # Some values are to lie beyond it, even if most are the largest one.
                border = min(float(values.median()), float(values.max()) - _STEP)
            elif len(places) == 2:
                places = places[:1]  # says it all
            for place in places:
                share = float((records[:, place] > border).float().mean())
                if _LEAST_SHARE <= share <= 1 - _LEAST_SHARE:
                    found.append(Contrast(block, place, border, share))
        found.sort(key=lambda contrast: (abs(contrast.share - 0.5), contrast.place))
        self._each = found[:_MOST_CONTRASTS]
        self._places = torch.tensor([each.place for each in self._each], dtype=torch.int64)
        self._borders, self._shares, self._deviations = (
            torch.tensor([(each.border, each.share, each.deviation) for each in self._each])
            .view(-1, 3)
            .T
        )

    def __getitem__(self, number: int) -> Contrast:
        return self._each[number]

    def __call__(self, records: Tensor) -> Tensor:
        """Their values in rows (n, record size), of mean 0 and variance 1 in all, (n, m)."""
        above = (records.index_select(1, self._places) > self._borders).float()
        found: Tensor = (above - self._shares) / self._deviations
        return found

    def of(self, block: Block) -> list[int]:
        """Which of them are of a column."""
        return [number for number, each in enumerate(self._each) if each.block.first == block.first]

    def products(self, records: Tensor, triples: Tensor) -> Tensor:
        """The mean product of each of some triples, int64 (t, 3), in rows, (t,)."""
        values = self(records)
        return torch.stack([values[:, triple].prod(dim=1).mean() for triple in triples])

    def triples(self) -> Tensor:
        """All triples of three columns' contrasts, int64 (triples, 3)."""
        found = torch.combinations(torch.arange(len(self._each)), 3)
        one, two, three = torch.tensor([each.block.first for each in self._each])[found].T
        return found[(one != two) & (two != three) & (one != three)]
