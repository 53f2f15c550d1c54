"""The objective of training on images."""

from __future__ import annotations

from typing import Protocol

from torch import Tensor


class ImageDistance(Protocol):
    """A distance between generated images and a release."""

    noise_variance: Tensor
    """Variance of the noise on an entry of each class's mean feature, (c,)."""
    in_pairs: bool
    """Whether codes may be antithetic: the second half of a class's records then has the first
    half's codes times -1. Whatever is linear in a code cancels in their mean, so a batch estimates
    the mean better."""

    @property
    def noise_floor(self) -> float:
        """Expected contribution of the release's noise to the distance."""
        ...

    def update_weights(self, records: Tensor) -> None:
        """Choose directions and weights from generated records, if the distance has any."""
        ...

    def __call__(self, records: Tensor) -> Tensor:
        """The distance of a batch (c, b, record size), a scalar."""
        ...
