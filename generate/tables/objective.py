"""How far generated rows are from a release of a table."""

from __future__ import annotations

from typing import Final

import torch
from torch import Tensor

from ...common.features.base import FeatureMap
from ...common.features.joint import parts_of
from ...common.schema.table import TableSchema
from ..kernels.base import ExplicitFeatures
from ..kernels.mean_embedding import MeanEmbedding
from ..kernels.mmd import MeanEmbeddingDistance, squared_distance
from .marginals import marginals_of, record_targets
from .pairs import PairDistance, pairs_of

MARGINALS_LOSS: Final = 30.0
"""Weight of the marginals' distance, and of that of pairs, beside that of the other features."""


class TableDistance:
    """Mean over classes of the squared distance of mean embeddings, estimated without bias.

    `MeanEmbeddingDistance`; where the release holds marginals, of columns and perhaps of pairs,
    their distances are added with a weight of their own, which is free to choose: the noise is in
    the release already.

    Args:
        mean: what the generator is to come close to.
        feature_map: of the release.
        schema: likewise.
        device: where to compute.
        marginals_loss: the marginals' weight.
    """

    def __init__(
        self,
        mean: MeanEmbedding,
        feature_map: FeatureMap,
        schema: TableSchema,
        device: torch.device,
        marginals_loss: float = MARGINALS_LOSS,
    ) -> None:
        parts = parts_of(feature_map)
        main, weight = parts.main, parts.main_weight
        self._features: MeanEmbeddingDistance | None = None
        if main is not None:
            target = torch.as_tensor(mean.values[: parts.split].T, device=device)
            noise = torch.as_tensor(mean.noise, device=device).float()
            self._features = MeanEmbeddingDistance(main, target / weight, noise / weight)
        self._places: Tensor | None = None
        if marginals := marginals_of(mean, feature_map, schema):
            places, means = record_targets(marginals)
            self._places = torch.as_tensor(places, device=device)
            self._size = (marginals_loss / len(marginals)) ** 0.5
            self._means = torch.as_tensor(means, device=device) * self._size
        self._pairs: PairDistance | None = None
        if pairs := pairs_of(mean, feature_map):
            self._pairs = PairDistance(pairs, device, marginals_loss)

    @property
    def noise_floor(self) -> float:
        """What the release's noise alone adds to the distance without the marginals."""
        return 0.0 if self._features is None else self._features.noise_floor

    def __call__(self, records: Tensor) -> tuple[Tensor, Tensor]:
        """The distance of a batch.

        Args:
            records: (c, b, record size), values 0..1, b >= 2 of each class.

        Returns:
            Two scalars: the distance to be made small, and its part without the marginals.
        """
        features = torch.zeros((), device=records.device)
        if self._features is not None:
            features = self._features(records)
        if self._places is None:
            return features, features.detach()
        marginals = ExplicitFeatures(records[..., self._places] * self._size)
        norm = self._means.square().sum(dim=1)
        distance = features + squared_distance(marginals, self._means, norm)
        if self._pairs is not None:
            distance = distance + self._pairs(records)
        return distance, features.detach()
