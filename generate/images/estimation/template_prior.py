"""The prior over templates and class means, learnt from the class means that a release holds.

Class means are a part shared by all classes and a deviation of each class, both smooth Gaussian
images, whose spectra are learnt (`spectrum`). Noise may differ between classes, since some are
rare: the shared part is their mean, weighted by the inverse of noise plus deviation variance
(`shared_mean`), and a rare class is shrunk towards it.

Where all classes together are black or white, so is each of them: deviations of means have variance
proportional to m (1 - m), where m is the shared mean. This is the largest variance of values in
0..1 with that mean (Bhatia and Davis 2000, "A Better Bound on the Variance"). A single class has
nothing to deviate from: its mean is the shared part, and is denoised by that spectrum alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..spectral_basis import SpectralBasis
from .class_means import NoisyMeans
from .denoising import Floats, noise_in
from .spectrum import (
    Spectrum,
    most_probable_spectrum,
    negative_log_density,
    negative_log_restricted_likelihood,
    shared_mean,
)

_SHARED: Final = Spectrum(3.0, 2.0)
_OWN: Final = Spectrum(0.3, 6.0)
"""Spectra where a release has no class means to learn them from."""
_LEAST_ENVELOPE: Final = 0.02
"""Part of the mean of m (1 - m) added to every pixel: where all classes are black, one may still be
a little brighter."""
_RECORD_SPECTRUM: Final = Spectrum(1.0, 6.0, power=2.0)
"""Spectrum of records about their class mean; its size is learnt from the release
(`variation.py`)."""
_LEAST: Final = 1e-12
"""Floor for variances of the noise, since a release may have none."""


@dataclass(frozen=True, eq=False)
class TemplatePrior:
    """A Gaussian prior over class means, and what it makes of the released ones.

    Guarantee:
        Post-processing: everything is learnt from released means. (docs/privacy/proofs.md,
        statement 10.)

    Attributes:
        basis: of images.
        noise: standard deviation of the noise on each value of a class mean, float64 (c,); infinite
            where the mean is unknown.
        start: initial templates, float32 (c, channels * side^2): the posterior means of the class
            means; grey if there are none.
        common: posterior mean of the image shared by all classes, float64 (channels * side^2,);
            grey if there are no means.
        envelope: pixelwise factor on the deviations of class means, of mean square 1, float64
            (channels * side^2,); 1 if there are no means.
        shared: spectrum of the mean image of all classes; its average grey is unconstrained.
        own: spectrum of the deviations of class means; `shared` if there is only one class.
        posterior_std: posterior standard deviation of a pixel of a template, given the means; 0
            if there are none.
    """

    basis: SpectralBasis[Floats]
    noise: Floats
    start: NDArray[np.float32]
    common: Floats
    envelope: Floats
    shared: Spectrum = _SHARED
    own: Spectrum = _OWN
    posterior_std: float = 0.0

    @classmethod
    def fit(
        cls,
        means: NoisyMeans | None,
        classes: int,
        basis: SpectralBasis[Floats],
        *,
        use_envelope: bool = True,
    ) -> TemplatePrior:
        """Learn the spectra and the initial templates.

        Args:
            means: the released class means, if there are any.
            classes: number of classes, c.
            basis: of images.
            use_envelope: whether a class deviates little where all classes together are black or
                white.
        """
        pixels = basis.channels * basis.side**2
        start = np.full((classes, pixels), 0.5, dtype=np.float32)
        noise = np.full(classes, np.inf) if means is None else means.noise
        known = np.isfinite(noise)
        if means is not None:
            start[known] = means.values[known].clip(0.0, 1.0)
        prior = cls(basis, noise, start, common=np.full(pixels, 0.5), envelope=np.ones(pixels))
        if means is not None and (known.sum() > 1 or known.all()):
            return prior._fitted(means.values[known], use_envelope=use_envelope)
        return prior

    def _fitted(self, values: Floats, *, use_envelope: bool) -> TemplatePrior:
        """`fit` to the means that are known, (k, channels * side^2)."""
        known = np.isfinite(self.noise)
        seen = self.basis.coefficients(values)
        noisy = np.maximum(self.noise[known] ** 2, _LEAST)[:, None]
        own, varying = _OWN, np.broadcast_to(noisy, seen.shape)
        if len(seen) > 1:

            def cost_of_deviations(own: Floats) -> float:
                return negative_log_restricted_likelihood(seen, own + noisy)

            own = most_probable_spectrum(cost_of_deviations, _OWN, *self._size)
            varying = own.variances(*self._size) + noisy
        middle, of_shared = shared_mean(seen, varying)
        uneven = ~self.basis.averages

        def cost_of_shared(shared: Floats) -> float:
            return negative_log_density(middle[uneven], (shared + of_shared)[uneven])

        shared = most_probable_spectrum(cost_of_shared, _SHARED, *self._size)
        if len(seen) == 1:
            own = shared  # a single class has nothing to deviate from
        variances = shared.variances(*self._size)
        expected = np.where(uneven, middle * variances / (variances + of_shared), middle)
        common = self.basis.pixels(expected[None])[0].clip(0.0, 1.0)
        envelope = _envelope(common) if use_envelope else self.envelope
        prior = replace(self, common=common, envelope=envelope, shared=shared, own=own)
        start = np.tile(common, (len(known), 1))
        if len(seen) > 1:
            numbers, apart = np.flatnonzero(known), values - common
            for number, variance, each in zip(numbers, noisy[:, 0], apart, strict=True):
                start[number] += each - noise_in(each[None], variance, prior._times_covariance)[0]
        by_frequency = own.variances(*self._size)
        return replace(
            prior,
            start=start.clip(0.0, 1.0).astype(np.float32),
            posterior_std=math.sqrt(np.mean(by_frequency * noisy / (by_frequency + noisy))),
        )

    @property
    def contrast(self) -> float:
        """Root mean square deviation of a pixel of `start` from the average of all classes.

        For a single class, it is the deviation from its average grey.
        """
        middle = self.start.mean(axis=0 if len(self.start) > 1 else 1, keepdims=True)
        return float(np.sqrt(np.mean(np.square(self.start - middle))))

    def posterior_deviations(self, count: int, seed: int) -> Tensor:
        """Draw posterior deviations of the templates, float32 (c, count, pixels).

        For a draw x from the prior and a draw n of the noise, x minus its posterior mean given
        x + n is a draw of the posterior deviation (Matheron's rule; Hoffman and Ribak 1991,
        "Constrained Realizations of Gaussian Fields").

        Args:
            count: draws of each class.
            seed: of the draws.
        """
        random = np.random.default_rng(seed)
        classes, pixels = self.start.shape
        drawn = np.zeros((classes, count, pixels), dtype=np.float32)
        spread = np.sqrt(self.own.variances(*self._size))
        for number, noise in enumerate(np.maximum(self.noise, math.sqrt(_LEAST))):
            if np.isfinite(noise):
                waves = random.standard_normal((count, pixels)) * spread
                added = noise * random.standard_normal((count, pixels))
                both = self.basis.pixels(waves) * self.envelope + added
                drawn[number] = noise_in(both, noise**2, self._times_covariance) - added
        return torch.from_numpy(drawn)

    def record_deviations(self, count: int, seed: int) -> Tensor:
        """Draw deviations of records from their class mean, float32 (c, count, pixels).

        Deviations have the spectrum of natural images, 1 / f^2 (Ruderman and Bialek 1994,
        "Statistics of Natural Images"), and the proportion of colours of the class deviations. The
        variance of a pixel is 1 on average.

        Args:
            count: draws of each class.
            seed: of the draws.
        """
        random = np.random.default_rng(seed)
        spectrum = replace(_RECORD_SPECTRUM, of_colours=self.own.of_colours)
        variances = spectrum.variances(*self._size)
        spread = np.sqrt(variances / variances.mean())
        shape = len(self.start), count, len(spread)
        drawn = np.empty(shape, dtype=np.float32)
        for of_class in drawn:
            of_class[:] = self.basis.pixels(random.standard_normal(shape[1:]) * spread)
        return torch.from_numpy(drawn)

    @property
    def _size(self) -> tuple[int, int]:
        return self.basis.side, self.basis.channels

    def _times_covariance(self, images: Floats) -> Floats:
        """Multiply images by a class deviation's prior covariance, (k, channels * side^2)."""
        waves = self.basis.coefficients(images * self.envelope)
        waves *= self.own.variances(*self._size)
        return self.basis.pixels(waves) * self.envelope


def _envelope(common: Floats) -> Floats:
    """See `TemplatePrior.envelope`."""
    widest = common * (1 - common) + _LEAST
    widest += _LEAST_ENVELOPE * widest.mean()
    envelope: Floats = np.sqrt(widest / widest.mean())
    return envelope
