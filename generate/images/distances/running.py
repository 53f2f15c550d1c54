"""The distance to a release for small batches: generated means are averaged over steps.

A batch of a few images estimates a generator's mean feature poorly, and larger batches take too
long through a large network. So means are averaged over steps, which visit the same images again
and again (as in Harder et al. 2023, DP-MEPF).
"""

from __future__ import annotations

from typing import Final

import torch
from torch import Tensor

from ....common.arguments import argument
from ....common.errors import GeneratorError
from ....common.features.torchscript import PublicModule
from ....release.file.model import Release
from ...fit.recipe import RUNNING, WHITENED
from ...kernels.base import FeatureMatrix
from ...kernels.mean_embedding import released_mean
from ...kernels.registry import kernel_of

_MEMORY: Final = 20
"""Number of steps in the average."""
_OWN: Final = 3.0
"""Weight of the classes' deviations, relative to the part they have in common."""


class RunningDistance:
    """mean over classes c of || mu_c - m_c ||^2, with m_c the running mean of generated features.

    The difference is split into its mean over classes and each class's deviation from it, which
    weighs more because classifiers learn from it. Gradients flow through the current batch as if
    m_c were its mean alone.

    Guarantee:
        Post-processing: reads the release alone. (docs/privacy/proofs.md, statement 10.)

    Args:
        release: holds mu with its noise.
        device: where records are.
        module: for "perceptual" features: computes them.

    Attributes:
        noise_variance: variance of the noise on an entry of each class's mean feature, float32
            (c,).
        noise_floor: expected contribution of the release's noise to the distance.
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
        # A class's noise also enters the common part.
        classes = len(mean.noise)
        weight = 1 / classes + _OWN * (1 - 1 / classes)
        self.noise_floor = float(self.noise_variance.mean()) * self._target.shape[1] * weight

    def update_weights(self, records: Tensor) -> None:
        """Do nothing: no directions or weights are chosen."""

    def __call__(self, records: Tensor) -> Tensor:
        """The distance of the recently generated records.

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
