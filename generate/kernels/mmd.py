"""The squared distance between generated and released class-conditional mean embeddings."""

from __future__ import annotations

from torch import Tensor

from ...common.features.base import FeatureMap
from .base import Features
from .registry import kernel_of


class MeanEmbeddingDistance:
    """mean over classes c of || mu_c - E phi(x | c) ||^2, estimated without bias.

    mu_c is the noisy mean feature of class c. For a batch of b records of a class, ||mean phi||^2
    exceeds ||E phi||^2 in expectation by the variance over b, which would pull the generator
    towards identical records. Leaving out the pairs of a record with itself removes this bias
    (Gretton et al. 2012, "A Kernel Two-Sample Test", lemma 6).

    Args:
        feature_map: phi.
        target: mu, float32 (c, d).
        noise: standard deviation of the noise on each entry of a row of `target`, float32 (c,).

    Attributes:
        target: as above.
        noise_floor: expected contribution of the release's noise to the distance.
    """

    def __init__(self, feature_map: FeatureMap, target: Tensor, noise: Tensor) -> None:
        self.target = target.contiguous()
        self._target_norm = target.double().square().sum(dim=1).float()
        self._kernel = kernel_of(feature_map, target.device)
        self.noise_floor = float(noise.square().mean()) * target.shape[1]

    def __call__(self, records: Tensor) -> Tensor:
        """The distance of a batch.

        Args:
            records: (c, b, record size), values 0..1, b >= 2 of each class.

        Returns:
            A scalar, whose expectation is the distance of the generator that made the batch.
        """
        return squared_distance(self._kernel.features(records), self.target, self._target_norm)


def squared_distance(features: Features, target: Tensor, norm: Tensor) -> Tensor:
    """Mean over classes c of || target_c - E phi(x | c) ||^2, estimated without bias.

    Args:
        features: of b >= 2 records of each of c classes.
        target: (c, d).
        norm: squared norms of the targets, (c,).

    Returns:
        A scalar. It can be negative for a batch; its expectation is not.
    """
    return distance_from(features.inner(target), features.gram(), norm)


def distance_from(towards: Tensor, gram: Tensor, norm: Tensor) -> Tensor:
    """The same from inner products.

    Args:
        towards: inner products of records with their class's target, (c, b).
        gram: inner products of a class's records with each other, (c, b, b).
        norm: squared norms of the targets, (c,).
    """
    size = gram.shape[1]
    own = gram.diagonal(dim1=1, dim2=2).sum(dim=1)
    among = (gram.sum(dim=(1, 2)) - own) / (size * (size - 1))
    return (norm - 2 * towards.mean(dim=1) + among).mean()
