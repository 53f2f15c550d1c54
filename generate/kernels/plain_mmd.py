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

    There are as many generated records of each class, so that each column of mu_P is multiplied by
    what makes its class as frequent as all others (Harder et al. 2021, DP-MERF, section 4.2);
    nothing is, if the classes were declared to be. Pairs of a record with itself are left in, as
    printed: in expectation that adds the variance of mu_Q. `MeanEmbeddingDistance` leaves them out.

    Guarantee:
        Post-processing: reads the release alone. (docs/privacy/proofs.md, statement 10.)

    Args:
        release: mu_P with its noise.
        device: where records are.
        module: of "perceptual" features: what computes them.
        dtype: of records.
        scale: what the distance is multiplied by. With c, the number of classes, it is the mean
            over classes of the distance of each one's own mean feature, as of `WhitenedDistance`.

    Attributes:
        noise_variance: of an entry of each class's own mean feature, float32 (c,).
        noise_floor: what the release's noise alone adds to the distance, in expectation.
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

    def look_at(self, records: Tensor) -> None:
        """Nothing is chosen by generated records: all directions weigh alike."""

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
