"""Evidence about a class's columns from its mean tangent feature.

It consists of the residual r = mu - E phi - J (p - q) of the released mean, linearised around rows
of independent columns with shares q, and of its covariance V. J is the change of the mean feature
when a column's value is set; V is the variance due to noise and to dependence between columns. See
`estimation`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import torch
from torch import Tensor

from ....common.features.joint import parts_of
from ....common.features.ntk.map import TangentFeatures
from ....common.schema.table import TableSchema
from ....release.file.model import Release
from ...kernels.mean_embedding import MeanEmbedding
from ..energies.goal import strength
from ..energies.relu_features import ReluFeatures
from ..marginals.matching import independent_rows
from .cells import Columns, Shares

_ROWS: Final = 2_000
"""Number of independent rows that estimate a mean feature."""
_CHANGED: Final = 100
"""Number of these rows in which a value is set, to estimate J."""
_REWEIGHED: Final = 600
"""Number of these rows whose reweighting models dependence between columns."""
_MOST_NUMBERS: Final = 1 << 27


@dataclass(frozen=True, eq=False)
class Evidence:
    """A Gaussian likelihood of the shares of choices, given the mean tangent feature of a class.

    Its negative logarithm is <x, curvature x> / 2 - <slope, x> up to a constant, where x is the
    deviation from the shares of the rows (`negative_log_likelihood`).

    Attributes:
        curvature: symmetric, float64 (choices, choices); or (classes, choices, choices) for several
            classes.
        slope: (choices,), or (classes, choices).
    """

    curvature: Tensor
    slope: Tensor

    @classmethod
    def uninformative(cls, columns: Columns) -> Evidence:
        """Evidence that says nothing."""
        count = columns.choice_count
        zero = torch.zeros(count, count, dtype=torch.float64)
        return cls(zero, zero[0])

    @classmethod
    def stacked(cls, several: Sequence[Evidence]) -> Evidence:
        """Stack the evidence of several classes."""
        curvatures, slopes = [one.curvature for one in several], [one.slope for one in several]
        return cls(torch.stack(curvatures), torch.stack(slopes))

    def negative_log_likelihood(self, off: Tensor) -> Tensor:
        """The negative log likelihood of shares, summed over classes.

        Args:
            off: their deviation from the shares of the rows, shaped like `slope`.
        """
        towards = torch.einsum("...i,...ij->...j", off, self.curvature) / 2 - self.slope
        return (towards * off).sum()


@dataclass(frozen=True, eq=False)
class EvidenceSource:
    """The released mean features of all classes, as a source of evidence about columns.

    Attributes:
        mean: the released means.
        tangents: the tangent features, a part of those of the release.
        split: number of entries of a mean feature that belong to them.
        weight: their weight in the feature map.
        columns: of the table.
        schema: of the table.
        random: draws independent rows.
    """

    mean: MeanEmbedding
    tangents: ReluFeatures
    split: int
    weight: float
    columns: Columns
    schema: TableSchema
    random: np.random.Generator

    @classmethod
    def of(
        cls,
        release: Release,
        mean: MeanEmbedding,
        columns: Columns,
        random: np.random.Generator,
    ) -> EvidenceSource:
        """Read a release that has tangent features of one hidden layer of ReLU units."""
        parts = parts_of(release.feature_map)
        assert isinstance(parts.main, TangentFeatures)
        assert isinstance(release.schema, TableSchema)
        tangents = ReluFeatures(parts.main)
        return cls(mean, tangents, parts.split, parts.main_weight, columns, release.schema, random)

    def of_class(self, label: int, shares: Shares) -> Evidence:
        """The evidence of a class's mean feature, linearised around independent columns.

        Args:
            label: the class.
            shares: q, the shares of the rows' cells, (cells,).
        """
        goal = torch.from_numpy(self.mean.values[: self.split, label] / np.float32(self.weight))
        noise = float(self.mean.noise[label]) / self.weight
        known = self.columns.known(shares[None])
        rows = torch.from_numpy(independent_rows(_ROWS, 0, known, self.schema, self.random))
        left = goal - self.tangents.mean(rows)
        moves = self._moves(rows[:_CHANGED])
        at = torch.from_numpy(shares @ self.columns.overlap).float()
        start = 0
        for choices in self.columns.choices:  # relative to the column's mean
            place = slice(start, start + len(choices))
            moves[place] -= at[place] @ moves[place]
            start = place.stop
        some = rows[: max(2, min(_REWEIGHED, _MOST_NUMBERS // len(goal)))]
        others = self.tangents.features(some)
        others -= torch.from_numpy(self.columns.hits(some.numpy())) @ moves
        others -= others.mean(dim=0)
        variance = float(others.square().sum(dim=1).mean())
        curvature, slope = (moves @ moves.T).double(), (moves @ left).double()
        found = strength(float(left.square().sum()), variance, noise, len(goal))
        if found * variance > 0:
            among, towards = (others @ others.T).double(), (moves @ others.T).double()
            among += noise**2 * len(some) / found * torch.eye(len(some), dtype=torch.float64)
            hidden = torch.linalg.solve(among, towards.T)
            curvature -= towards @ hidden
            slope -= hidden.T @ (others @ left).double()
        return Evidence(curvature / noise**2, slope / noise**2)

    def _moves(self, rows: Tensor) -> Tensor:
        """The mean feature of rows with a column set to each choice in turn, (choices, d)."""
        found = []
        for marginal, choices in zip(self.columns.marginals, self.columns.choices, strict=True):
            changed = rows.clone()
            for choice in torch.from_numpy(choices):
                changed[:, marginal.block.place] = choice
                found.append(self.tangents.mean(changed))
        return torch.stack(found)
