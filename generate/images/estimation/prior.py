"""The prior over generators: classes resemble one another, and images are smooth.

A noisy release says little, and a generator that fits it exactly learns the noise. Training
therefore minimises the distance to the release plus the generator's negative log prior, in units of
the noise: it finds the maximum a posteriori generator. The prior counts more with more noise, and
vanishes where there is next to none.

Templates, factors and flows are sums of a part shared by all classes and a deviation of each class,
both Gaussian, with variances that fall with the spatial frequency (`spectrum`). Flows account for
the blur of class means, so templates are sharper than these (`template_prior`): their variances
fall with the square of the frequency instead, but only where the signal is visible. Detail that
nobody knows stays as smooth as in means. Templates are exempt from the means' envelope, since flows
move them.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

import numpy as np
import torch
from torch import Tensor

from ..generators.conditional import ConditionalGenerator
from ..spectral_basis import basis_on
from .denoising import Floats
from .spectrum import Spectrum
from .template_prior import TemplatePrior

_VARIANCE_RATIO: Final = 2.0
"""Low-frequency variance of templates relative to that of class means, which flows have blurred."""
_SHARED_FACTORS: Final = Spectrum(0.05, 10.0)
_OWN_FACTORS: Final = Spectrum(0.03, 10.0)
_OWN_FLOWS: Final = 1e-3
"""Variance of a class's deviation from the shared flows, at each control point."""
_LITTLE_NOISE: Final = 0.003
"""With less noise than this on a class's mean feature, in any one direction, the prior is weakened:
its spectra are guesses."""


class GeneratorPrior:
    """A Gaussian prior over generators.

    Guarantee:
        Post-processing: everything is learnt from released means. (docs/privacy/proofs.md,
        statement 10.)

    Args:
        means: the prior over class means.
        noise_variance: variance of the noise on each coordinate of a class's mean feature, (c,).
    """

    def __init__(self, means: TemplatePrior, noise_variance: Tensor) -> None:
        self._variance, device = noise_variance, noise_variance.device
        self._basis = basis_on(means.basis, device)
        size = means.basis.side, means.basis.channels
        noisy = means.noise[np.isfinite(means.noise)]
        of_each = float(np.mean(noisy**2)) if len(noisy) else 0.0
        of_mean = of_each / max(1, len(noisy))
        shared = _sharpened(means.shared, of_mean, *size)
        shared[means.basis.averages] = math.inf
        variances = {
            "shared template": shared,
            "own template": _sharpened(means.own, of_each, *size),
            "shared factors": _SHARED_FACTORS.variances(*size),
            "own factors": _OWN_FACTORS.variances(*size),
        }
        self._variances = {
            name: torch.from_numpy(each).float().to(device) for name, each in variances.items()
        }

    def energy(self, generator: ConditionalGenerator) -> Tensor:
        """The negative log prior of a generator, in units of the distance to the release.

        The distance D is a mean over c classes of squares whose noise has variance s^2, so the log
        likelihood is -c D / (2 s^2). The energy E returned is scaled likewise: the log prior is
        -c E / (2 s^2), but weaker where there is little noise (`_LITTLE_NOISE`).
        """
        mean, each = self._variance.mean(), self._variance[:, None, None]
        total = torch.zeros((), device=self._variance.device)
        for name, images in (("template", generator.template), ("factors", generator.factors)):
            values = self._basis.coefficients(images)
            shared = values.mean(dim=0, keepdim=True)
            total = total + mean * (shared.square() / self._variances[f"shared {name}"]).sum()
            own = (values - shared).square() / self._variances[f"own {name}"]
            total = total + (each * own).sum()
        flows = generator.flows.flatten(1)
        deviations = flows - flows.mean(dim=0, keepdim=True)
        total = total + (self._variance[:, None] * deviations.square()).sum() / _OWN_FLOWS
        energy: Tensor = total / len(self._variance) * mean / (mean + _LITTLE_NOISE**2)
        return energy


def _sharpened(spectrum: Spectrum, noise: float, side: int, channels: int) -> Floats:
    """Variances of templates, from the spectrum of means and the noise variance on them."""
    of_means = spectrum.variances(side, channels)
    sharp = replace(spectrum, amplitude=_VARIANCE_RATIO * spectrum.amplitude, power=2.0)
    seen = of_means / (of_means + noise)
    wider: Floats = sharp.variances(side, channels) - of_means
    return of_means + seen * wider
