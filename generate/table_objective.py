"""How far generated rows are from a release of a table."""

from __future__ import annotations

from typing import Final

import torch
from torch import Tensor

from ..common.joint import JointFeatures
from ..common.marginals import MarginalFeatures
from ..release.contents import Release
from .kernels import ExplicitFeatures
from .objective import MeanEmbeddingDistance, squared_distance
from .table_marginals import record_targets, released_marginals
from .table_pairs import PairDistance, released_pairs

MARGINALS_LOSS: Final = 30.0
"""Weight of the marginals' distance, and of that of pairs, beside that of the other features."""


class TableDistance:
    """Mean over classes of the squared distance of mean embeddings, estimated without bias.

    `MeanEmbeddingDistance`; where the release holds marginals, of columns and perhaps of pairs,
    their distances are added with a weight of their own, which is free to choose: the noise is in
    the release already.
    """

    def __init__(
        self, release: Release, device: torch.device, marginals_loss: float = MARGINALS_LOSS
    ) -> None:
        shares = torch.as_tensor(release.class_weights, device=device).float()
        feature_map, embedding, weight = release.feature_map, release.embedding, 1.0
        if isinstance(feature_map, JointFeatures):
            weight, feature_map = feature_map.main_weight, feature_map.main
            embedding = embedding[: feature_map.dimension]
        self._features: MeanEmbeddingDistance | None = None
        if not isinstance(feature_map, MarginalFeatures):
            self._features = MeanEmbeddingDistance(
                feature_map, embedding, weight * shares, release.noise_per_coordinate
            )
        self._places: Tensor | None = None
        if marginals := released_marginals(release):
            places, means = record_targets(marginals)
            self._places = torch.as_tensor(places, device=device)
            self._size = (marginals_loss / len(marginals)) ** 0.5
            self._means = torch.as_tensor(means, device=device) * self._size
        self._pairs: PairDistance | None = None
        if pairs := released_pairs(release):
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
