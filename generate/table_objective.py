"""How far generated rows are from a release of a table."""

from __future__ import annotations

import torch
from torch import Tensor

from ..common.feature_map import FeatureMap
from ..common.joint import JointFeatures
from ..common.marginals import MarginalFeatures
from ..common.table_schema import LEVELS, TableSchema
from ..release.contents import Release
from .kernels import Features, kernel_of
from .table_marginals import SmoothMarginals

MARGINALS_LOSS = 10.0
"""Weight of the marginals' distance beside that of the network's features."""


class _Part:
    """Squared distance of class-wise means under one map, each class by its released share.

    As `objective.MeanEmbeddingDistance`, without bias: pairs of a record with itself are left out.
    """

    def __init__(self, columns: Tensor, noise: Tensor) -> None:
        self.target = columns.contiguous()
        self._norm = columns.double().square().sum(dim=1).float()
        self.floor = noise.square() * columns.shape[1]

    def __call__(self, features: Features) -> Tensor:
        towards = features.inner(self.target).mean(dim=1)
        gram = features.gram()
        size = gram.shape[1]
        own = gram.diagonal(dim1=1, dim2=2).sum(dim=1)
        among = (gram.sum(dim=(1, 2)) - own) / (size * (size - 1))
        return self._norm - 2 * towards + among
