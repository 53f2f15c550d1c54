"""A distance to a release with adversarially weighted frequencies: PEARL."""

from __future__ import annotations

from typing import Final

import torch
from torch import Tensor

from ...common.features.rff import RandomFourierFeatures
from ...common.features.torchscript import PublicModule
from ...release.file.model import Release
from .plain_mmd import PlainMMD
from .rff import FourierKernel

_EVERY: Final = 5
"""Number of generator steps for each step of the adversary."""
_OPPONENTS_RATE: Final = 1e-4
"""The adversary's learning rate for Adam, on the relative change of each precision."""


class ReweightedDistance(PlainMMD):
    """sum_j w_j |Phi_P(t_j) - Phi_Q(t_j)|^2, with weights w that maximise it.

    A release holds noisy characteristic functions of each class at random frequencies
    t_j ~ N(0, 1 / l^2). Importance weights w_j = p(t_j) / p_0(t_j) turn the sum into one over
    frequencies from another distribution p, without another release. p is a Gaussian whose
    precision along each value of a record is learnt against the generator (Liew, Takahashi, Ueno
    2022, "PEARL: Data Synthesis via Private Embeddings and Adversarial Reconstruction Learning",
    arXiv 2106.04590, section 4). Weights are scaled to mean 1, and all start at 1.

    Guarantee:
        Post-processing: reads the release alone. (docs/privacy/proofs.md, statement 10.)

    Args:
        release: of random Fourier features alone.
        device: where records are.
        module: unused.
        dtype: of records.
        scale: see `PlainMMD`.

    Attributes:
        change: relative decrease of the precision along each value of a record, (record size,).
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
        features = release.feature_map
        assert isinstance(features, RandomFourierFeatures)
        super().__init__(release, device, module, dtype=dtype, scale=scale)
        self._fourier = FourierKernel(features, device, dtype)
        turns = torch.as_tensor(features.turns, device=device, dtype=dtype)
        self._squares = turns.square() / turns.square().mean()
        self.change = torch.zeros(features.record_size, device=device, dtype=dtype)
        self.change.requires_grad_()
        self._opponent = torch.optim.Adam([self.change], lr=_OPPONENTS_RATE, maximize=True)
        self._calls = 0

    def weights(self) -> Tensor:
        """Weights of frequencies, (k,): exp(t^2 (l^2 - precision) / 2), p / p_0 up to a factor."""
        exponents = self._squares @ self.change / 2
        return exponents.softmax(dim=0) * len(exponents)

    def __call__(self, records: Tensor) -> Tensor:
        """The distance of a batch under the current weights, which the adversary may then update.

        Args:
            records: (c, b, record size), values 0..1.

        Returns:
            A scalar.
        """
        means = self._fourier.features(records).values.mean(dim=1) * self._share
        squares = (self._target - means).square().view(len(means), 2, -1).sum(dim=(0, 1))
        distance = self._scale * (self.weights().detach() * squares).sum()
        self._calls += 1
        if self._calls % _EVERY == 0:
            self._opponent.zero_grad()
            (self.weights() * squares.detach()).sum().backward()
            self._opponent.step()
        return distance
