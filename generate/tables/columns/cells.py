"""The cells of all columns of a table, and the choices that encode them in a record."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.linalg import block_diag
from torch import Tensor

from ....common.schema.encoding import NumericEncoding
from ..marginals.released import ColumnMarginal

_SEEN: Final = 0.1
"""Initial shares are at least this many standard deviations of the noise."""

Shares = NDArray[np.float64]


class Columns:
    """The cells of all columns, and the choices of a record: its soft bins or categories.

    Args:
        marginals: of all columns.

    Attributes:
        marginals: the same.
        sizes: number of cells of each.
        choice_count: number of choices of all columns.
    """

    def __init__(self, marginals: tuple[ColumnMarginal, ...]) -> None:
        self.marginals = marginals
        self.sizes = [int(marginal.shares.shape[1]) for marginal in marginals]
        blocks = [marginal.block.shares for marginal in marginals]
        self.choice_count = sum(block.stop - block.start for block in blocks)

    # Both have the square of a column's categories in number, so they are made only if needed.

    @cached_property
    def choices(self) -> list[NDArray[np.float32]]:
        """Each column's part of a record for each of its choices, (choices, values)."""
        return [_choices(marginal) for marginal in self.marginals]

    @cached_property
    def overlap(self) -> Shares:
        """The degree to which each cell belongs to each choice, (cells, choices)."""
        found: Shares = block_diag(*map(_overlap, self.marginals))
        return found

    def known(self, shares: Shares) -> tuple[ColumnMarginal, ...]:
        """Marginals with the given shares (classes, cells of all columns), taken as exact."""
        parts = np.split(shares, np.cumsum(self.sizes)[:-1], axis=1)
        nothing = np.zeros(len(shares))
        return tuple(
            replace(marginal, shares=part, noise=nothing)
            for marginal, part in zip(self.marginals, parts, strict=True)
        )

    def possible(self) -> NDArray[np.bool_]:
        """Which cells may be occupied, bool (cells,).

        Between wide bounds, most cells of a number are empty. The marginals alone decide which ones
        likely are, unless the noise exceeds a uniform share, or all would be: a rare class may have
        numbers where all others lack them, though noise hides each single one of its cells.
        """
        found = []
        for marginal in self.marginals:
            seen = np.any(marginal.posterior_mean > 0, axis=0)
            seen |= marginal.hides_even_share
            if isinstance(marginal.block.encoding, NumericEncoding):
                seen[: marginal.points] |= not seen[: marginal.points].any()
            found.append(seen)
        return np.concatenate(found)

    def logits(self, weights: NDArray[np.float64], shares: Shares) -> Tensor:
        """The logits u and d of shares (classes, cells), floored relative to the noise."""
        noise = min(float(marginal.noise.min()) for marginal in self.marginals)
        common = np.log(np.maximum(weights @ shares, noise * _SEEN))
        own = np.log(np.maximum(shares, noise * _SEEN)) - common
        return torch.from_numpy(np.concatenate([common[None], own]))

    def hits(self, rows: NDArray[np.float32]) -> NDArray[np.float32]:
        """The degree to which each row belongs to each choice, (n, choices)."""
        return np.concatenate(
            [rows[:, marginal.block.shares] for marginal in self.marginals], axis=1
        )


def _choices(marginal: ColumnMarginal) -> NDArray[np.float32]:
    """The column's part of a record for each choice, (choices, values)."""
    block = marginal.block
    count = block.shares.stop - block.shares.start
    before = block.shares.start - block.place.start
    found = np.concatenate([np.zeros((count, before)), np.eye(count)], axis=1)
    if before:  # the number itself or the rank comes first
        numeric = isinstance(block.encoding, NumericEncoding)
        points = count - block.missing_place if numeric else len(block.column.categories)
        found[:points, 0] = np.arange(points) / max(1, points - 1)
    return found.astype(np.float32)


def _overlap(marginal: ColumnMarginal) -> Shares:
    """The degree to which each cell belongs to each choice, (cells, choices)."""
    identity = replace(marginal, shares=np.eye(marginal.shares.shape[1]))
    return identity.in_record()
