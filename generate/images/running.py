"""The distance to a release where a batch is small: running averages of generated features.

A batch of a few images says little of the mean feature of what a generator makes, and through a
large network more images take too long. So the means are averaged over steps, which go through the
same images again and again (as in Harder et al. 2023, DP-MEPF).
"""

from __future__ import annotations

from typing import Final

import torch
from torch import Tensor

from ...common.arguments import argument
from ...common.errors import GeneratorError
from ...common.features.torchscript import PublicModule
from ...release.file.model import Release
from ..fit.recipe import RUNNING, WHITENED
from ..kernels.base import FeatureMatrix
from ..kernels.mean_embedding import released_mean
from ..kernels.registry import kernel_of

_MEMORY: Final = 20
"""Steps that are averaged over."""
_OWN: Final = 3.0
"""Weight of how classes differ, beside what they have in common."""


class RunningDistance:
    """mean over classes c of || mu_c - m_c ||^2, m_c being the running mean of generated features.

    The difference is taken apart into its mean over classes and what each class has beside it,
    which weighs more: it is what classifiers learn. Gradients are those of the batch's own part of
    m_c, as if it were all of it.

    Guarantee:
        Post-processing: reads the release alone. (docs/privacy/proofs.md, statement 10.)

    Args:
        release: mu with its noise.
        device: where records are.
        module: of "perceptual" features: what computes them.

    Attributes:
        noise_variance: of an entry of each class's own mean feature, float32 (c,).
        noise_floor: what the release's noise alone adds to the distance, in expectation.
    """

    def __init__(
        self, release: Release, device: torch.device, module: PublicModule | None = None
    ) -> None:
        mean = released_mean(release)
        self._target = torch.as_tensor(mean.values, device=device).T
        self._kernel = kernel_of(release.feature_map, device, module=module)
        self._running: Tensor | None = None
        self._seen = 0
        self.in_pairs = False
        self.noise_variance = torch.as_tensor(mean.noise, device=device).square().float()
        # A class's noise is in what all have in common, too.
        classes = len(mean.noise)
        weight = 1 / classes + _OWN * (1 - 1 / classes)
        self.noise_floor = float(self.noise_variance.mean()) * self._target.shape[1] * weight

    def look_at(self, records: Tensor) -> None:
        """Nothing is chosen by generated records."""

    def __call__(self, records: Tensor) -> Tensor:
        """The distance of what was generated lately.

        Args:
            records: (c, b, record size), values 0..1.

        Returns:
            A scalar.

        Raises:
            GeneratorError: the features are gradients.
        """
        features = self._kernel.features(records)
        if not isinstance(features, FeatureMatrix):
            raise GeneratorError(
                f"{argument('objective', RUNNING)}: a network's gradients are too many to be "
                f"averaged over steps: take {WHITENED}"
            )
        now = features.values.mean(dim=1)
        self._seen = min(self._seen + 1, _MEMORY)
        before = now.detach() if self._running is None else self._running
        self._running = before + (now.detach() - before) / self._seen
        left = self._target - (self._running + now - now.detach())
        common = left.mean(dim=0)
        distance: Tensor = common.square().sum() + _OWN * (left - common).square().sum(dim=1).mean()
        return distance
