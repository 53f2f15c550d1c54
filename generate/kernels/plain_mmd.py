"""The plain distance to a release: equation 6 of the DP-NTK paper."""

from __future__ import annotations

import torch
from torch import Tensor

from ...common.features.torchscript import PublicModule
from ...release.file.model import Release
from .factors import factors_of
from .registry import kernel_of


class PlainMMD:
    """|| mu_P - mu_Q ||_F^2, mu_Q = (1/n) sum_i phi(x_i) y_i^T of a batch (arXiv 2303.01687).

    Generated batches have equally many records of each class, so each column of mu_P is rescaled as
    if its class were as frequent as the others (Harder et al. 2021, DP-MERF, section 4.2); classes
    that were declared equal need no rescaling. Pairs of a record with itself are included, as in
    the paper, which adds the variance of mu_Q in expectation. `MeanEmbeddingDistance` leaves them
    out.

    Guarantee:
        Post-processing: reads the release alone. (docs/privacy/proofs.md, statement 10.)

    Args:
        release: holds mu_P with its noise.
        device: where records are.
        module: for "perceptual" features: computes them.
        dtype: of records.
        scale: factor on the distance. With c, the number of classes, the distance is the mean over
            classes of that of each mean feature, as in `WhitenedDistance`.

    Attributes:
        noise_variance: variance of the noise on an entry of each class's mean feature, float32
            (c,).
        noise_floor: expected contribution of the release's noise to the distance.
    """

    def __init__(
        self,
        release: Release,
        device: torch.device,
        module: PublicModule | None = None,
        *,
        dtype: torch.dtype = torch.float32,
        scale: float = 1.0,
    ) -> None:
        shares = torch.as_tensor(release.class_weights, device=device)
        self._share = 1 / len(shares)
        balance = (self._share / shares)[:, None].to(dtype)
        self._target = torch.as_tensor(release.embedding, device=device, dtype=dtype).T * balance
        self._kernel = kernel_of(release.feature_map, device, dtype, module)
        self._scale = scale
        self.in_pairs = False
        self.noise_variance = ((release.noise_per_coordinate / shares) ** 2).float()
        in_all = float((self.noise_variance * self._share**2).sum()) * self._target.shape[1]
        self.noise_floor = scale * in_all

    def update_weights(self, records: Tensor) -> None:
        """Do nothing: all directions have equal weight."""

    def __call__(self, records: Tensor) -> Tensor:
        """The distance of a batch.

        Args:
            records: (c, b, record size), values 0..1.

        Returns:
            A scalar.
        """
        distance = torch.zeros((), device=records.device, dtype=records.dtype)
        for part in factors_of(self._kernel.features(records)):
            mean = (part.left.mT @ part.right).flatten(1) * (self._share / records.shape[1])
            distance = distance + (self._target[:, part.place] - mean).square().sum()
        return self._scale * distance
