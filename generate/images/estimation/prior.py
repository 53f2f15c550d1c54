"""The prior over generators: classes resemble one another, and images are smooth.

A noisy release says little, and a generator that fits it exactly learns the noise. Training
therefore minimises the distance to the release plus the generator's negative log prior, in units of
the noise: it finds the maximum a posteriori generator. The prior counts more with more noise, and
vanishes where there is next to none.

Templates, factors and flows are sums of a part shared by all classes and a deviation of each class,
both Gaussian. Variances fall with the spatial frequency f, in half waves per image width,
as 1 / (1 + (f / cutoff)^4), as they do for class means of real images. Flows account for the blur
of class means, so templates are sharper: their variances fall with the square instead, but only at
frequencies where the signal is visible. Detail that nobody knows stays as smooth as in means. The
amplitude and cutoff of the templates' deviations are estimated from the released class means by
marginal likelihood over a grid (empirical Bayes). Noise may differ between classes, since some are
rare: the shared part is their mean, weighted by the inverse of noise plus deviation variance
(`_shared_mean`), and a rare class is shrunk towards it.

In colour, brightness and colour differences have amplitudes of their own, since one may tell
classes apart better than the other.

Where all classes together are black or white, so is each of them: deviations of means have variance
proportional to m (1 - m), where m is the shared mean. This is the largest variance of values in
0..1 with that mean (Bhatia and Davis 2000, "A Better Bound on the Variance"). Templates, which
flows move, are exempt. A single class has nothing to deviate from: its mean is the shared part, and
is denoised by that spectrum alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ....common.schema.image import GREY
from ..cosine_transform import cosines
from ..generators.conditional import ConditionalGenerator
from .class_means import NoisyMeans
from .denoising import Floats, noise_in

_CUTOFFS: Final = (2.0, 3.0, 4.0, 6.0, 9.0)
_ROUNDS: Final = 2
"""Rounds of alternating between the spectrum of brightness and the variance of colours."""
_AMPLITUDES: Final = tuple(float(a) for a in np.geomspace(0.02, 50.0, 30))
"""Candidate variances at low frequencies. They are of coefficients of an orthonormal transform: a
pixel's variance times the number of pixels over the number of coefficients below the cutoff."""


@dataclass(frozen=True)
class Spectrum:
    """Variances by spatial frequency.

    Attributes:
        amplitude: the variance at low frequencies.
        cutoff: the frequency at which it has halved, in half waves per image width.
        power: the power of the frequency by which it falls beyond the cutoff.
        of_colours: variance of colour differences, relative to that of brightness.
    """

    amplitude: float
    cutoff: float
    power: float = 4.0
    of_colours: float = 1.0

    def variances(self, side: int, channels: int = 1) -> NDArray[np.float64]:
        """Variance of each cosine coefficient, float64 (channels * side^2,).

        For colour images the first channel is brightness and the others are differences
        (`_OPPONENTS`).
        """
        along = np.arange(side)
        frequency = np.hypot(along[:, None], along[None]).flatten()
        fallen: NDArray[np.float64] = self.amplitude / (1 + (frequency / self.cutoff) ** self.power)
        return np.concatenate([fallen, *[self.of_colours * fallen] * (channels - 1)])


_COLOUR_VARIANCES: Final = tuple(float(each) for each in np.geomspace(0.001, 4.0, 25))
"""Candidate variances of colour differences, relative to that of brightness."""
_OPPONENTS: Final = np.array([[1, 1, 1], [1, 0, -1], [1, -2, 1]]) / np.sqrt([[3], [2], [6]])
"""Rotates three channels into brightness and two colour differences, which leaves the noise as it
is (Ohta, Kanade and Sakai 1980, "Color Information for Region Segmentation")."""

_SHARED_TEMPLATE: Final = Spectrum(3.0, 2.0)
_OWN_TEMPLATE: Final = Spectrum(0.3, 6.0)
"""Spectra of templates, where a release has no class means to learn them from."""
_LEAST_ENVELOPE: Final = 0.02
"""Part of the mean of m (1 - m) added to every pixel: where all classes are black, one may still be
a little brighter."""
_TEMPLATE_VARIANCE_RATIO: Final = 2.0
"""Low-frequency variance of templates relative to that of class means, which flows have blurred."""
_SPECTRUM_DEVIATION: Final = 0.4
"""Prior standard deviation of log amplitude and log cutoff around these defaults. Without it,
strong noise would make the choice of spectrum arbitrary."""
_SHARED_FACTORS: Final = Spectrum(0.05, 10.0)
_OWN_FACTORS: Final = Spectrum(0.03, 10.0)
_OWN_FLOWS: Final = 1e-3
"""Variance of a class's deviation from the shared flows, at each control point."""


_RECORD_SPECTRUM: Final = Spectrum(1.0, 6.0, power=2.0)
"""Spectrum of records about their class mean; its size is learnt from the release
(`variation.py`)."""
_LITTLE_NOISE: Final = 0.003
"""With less noise than this on a class's mean feature, in any one direction, the prior is weakened:
its spectra are guesses."""
_LEAST: Final = 1e-12
"""Floor for variances of the noise, since a release may have none."""


class GeneratorPrior:
    """A Gaussian prior over generators.

    Guarantee:
        Post-processing: everything is learnt from released means. (docs/privacy/proofs.md,
        statement 10.)

    Args:
        means: the released class means, if there are any.
        side: of an image.
        channels: of an image.
        noise_variance: variance of the noise on each coordinate of a class's mean feature, (c,).
        use_envelope: whether a class deviates little where all classes together are black or
            white.

    Attributes:
        shared: spectrum of the mean image of all classes; its average grey is unconstrained.
        own: spectrum of the deviations of class means; `shared` if there is only one class.
        common: posterior mean of the image shared by all classes, float64 (channels * side^2,);
            grey if there are no means.
        start: initial templates, float32 (c, channels * side^2): the posterior means of the class
            means; grey if there are none.
        envelope: pixelwise factor on the deviations of class means, of mean square 1, float64
            (channels * side^2,); 1 if there are no means.
        contrast: root mean square deviation of a pixel of `start` from the average of all classes,
            or, for a single class, from its average grey.
        posterior_std: posterior standard deviation of a pixel of a template, given the means; 0
            if there are none.
    """

    def __init__(
        self,
        means: NoisyMeans | None,
        side: int,
        noise_variance: Tensor,
        channels: int = 1,
        *,
        use_envelope: bool = True,
    ) -> None:
        self._side, self._channels = side, channels
        self._even = np.tile(np.arange(side**2) == 0, channels)
        self._variance = noise_variance
        self.shared, self.own = _SHARED_TEMPLATE, _OWN_TEMPLATE
        self.start = np.full((len(noise_variance), channels * side**2), 0.5, dtype=np.float32)
        self.common = np.full(channels * side**2, 0.5)
        self.envelope = np.ones(channels * side**2)
        self._use_envelope = use_envelope
        self.posterior_std = 0.0
        self._noise = np.full(len(noise_variance), np.inf)
        if means is not None:
            known = np.isfinite(means.noise)
            self.start[known] = means.values[known].clip(0.0, 1.0)
            self._noise = means.noise
            if known.sum() > 1 or known.all():
                self._learn(means.values[known], means.noise[known], known)
        noisy = means.noise[np.isfinite(means.noise)] if means is not None else np.zeros(0)
        middle = self.start.mean(axis=0 if len(self.start) > 1 else 1, keepdims=True)
        self.contrast = float(np.sqrt(np.mean(np.square(self.start - middle))))
        of_each = float(np.mean(noisy**2)) if len(noisy) else 0.0
        self._spectra = {
            name: torch.from_numpy(variances).float().to(noise_variance.device)
            for name, variances in (
                (
                    "shared template",
                    self._template_variances(self.shared, of_each / max(1, len(noisy))),
                ),
                ("own template", self._template_variances(self.own, of_each)),
                ("shared factors", _SHARED_FACTORS.variances(side, channels)),
                ("own factors", _OWN_FACTORS.variances(side, channels)),
            )
        }
        self._spectra["shared template"][torch.from_numpy(self._even)] = math.inf
        self._cosines = torch.tensor(
            cosines(side), dtype=torch.float32, device=noise_variance.device
        )
        self._colours = torch.from_numpy(_colours(channels)).float().to(noise_variance.device)

    def _learn(
        self, values: NDArray[np.float64], noise: NDArray[np.float64], known: NDArray[np.bool_]
    ) -> None:
        """Learn the spectra of templates, and the initial templates."""
        seen = self._to_coefficients(values)
        noisy = np.maximum(noise**2, _LEAST)[:, None]
        uneven = ~self._even
        varying = np.broadcast_to(noisy, seen.shape)
        if len(seen) > 1:

            def cost_of_deviations(own: Floats) -> float:
                return _negative_log_restricted_likelihood(seen, own + noisy)

            self.own = self._posterior_mode(cost_of_deviations, _OWN_TEMPLATE)
            varying = self.own.variances(self._side, self._channels) + noisy
        middle, of_shared = _shared_mean(seen, varying)

        def cost_of_shared(shared: Floats) -> float:
            return _negative_log_density(middle[uneven], (shared + of_shared)[uneven])

        self.shared = self._posterior_mode(cost_of_shared, _SHARED_TEMPLATE)
        if len(seen) == 1:
            self.own = self.shared  # a single class has nothing to deviate from
        shared = self.shared.variances(self._side, self._channels)
        expected = np.where(uneven, middle * shared / (shared + of_shared), middle)
        self.common = self._to_pixels(expected[None])[0].clip(0.0, 1.0)
        if self._use_envelope:
            widest = self.common * (1 - self.common) + _LEAST
            widest += _LEAST_ENVELOPE * widest.mean()
            self.envelope = np.sqrt(widest / widest.mean())
        start = np.tile(self.common, (len(known), 1))
        if len(seen) > 1:
            numbers, apart = np.flatnonzero(known), values - self.common
            for number, of_class, own in zip(numbers, noisy[:, 0], apart, strict=True):
                start[number] += own - noise_in(own[None], of_class, self._times_covariance)[0]
        self.start = start.clip(0.0, 1.0).astype(np.float32)
        by_frequency = self.own.variances(self._side, self._channels)
        self.posterior_std = math.sqrt(np.mean(by_frequency * noisy / (by_frequency + noisy)))

    def _to_coefficients(self, images: Floats) -> Floats:
        """Transform pixels (k, channels * side^2) to cosine coefficients of the channels."""
        along = cosines(self._side)
        shaped = images.reshape(len(images), self._channels, self._side, self._side)
        waves: Floats = along @ shaped @ along.T
        if self._channels > GREY:
            waves = np.einsum("dc,kchw->kdhw", _colours(self._channels), waves)
        return waves.reshape(images.shape)

    def _to_pixels(self, waves: Floats) -> Floats:
        """The inverse of `_to_coefficients`."""
        along = cosines(self._side)
        shaped = waves.reshape(len(waves), self._channels, self._side, self._side)
        images: Floats = along.T @ shaped @ along
        if self._channels > GREY:
            images = np.einsum("dc,kdhw->kchw", _colours(self._channels), images)
        return images.reshape(waves.shape)

    def _times_covariance(self, images: Floats) -> Floats:
        """Multiply images by a class deviation's prior covariance, (k, channels * side^2)."""
        waves = self._to_coefficients(images * self.envelope)
        waves *= self.own.variances(self._side, self._channels)
        return self._to_pixels(waves) * self.envelope

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
        spread = np.sqrt(self.own.variances(self._side, self._channels))
        for number, noise in enumerate(np.maximum(self._noise, math.sqrt(_LEAST))):
            if np.isfinite(noise):
                waves = random.standard_normal((count, pixels)) * spread
                added = noise * random.standard_normal((count, pixels))
                both = self._to_pixels(waves) * self.envelope + added
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
        variances = spectrum.variances(self._side, self._channels)
        spread = np.sqrt(variances / variances.mean())
        shape = len(self.start), count, len(spread)
        drawn = np.empty(shape, dtype=np.float32)
        for of_class in drawn:
            of_class[:] = self._to_pixels(random.standard_normal(shape[1:]) * spread)
        return torch.from_numpy(drawn)

    def _posterior_mode(
        self, negative_log_likelihood: Callable[[Floats], float], usual: Spectrum
    ) -> Spectrum:
        """Find the most probable spectrum on the grid.

        Args:
            negative_log_likelihood: of variances of coefficients, float64 (channels * side^2,).
            usual: centre of the prior over spectra.
        """

        def negative_log_posterior(spectrum: Spectrum) -> float:
            far = np.log([spectrum.amplitude / usual.amplitude, spectrum.cutoff / usual.cutoff])
            variances = spectrum.variances(self._side, self._channels)
            return negative_log_likelihood(variances) + float(
                np.square(far / _SPECTRUM_DEVIATION).sum() / 2
            )

        found = usual
        for _ in range(1 if self._channels == GREY else _ROUNDS):
            candidates = [
                replace(found, amplitude=amplitude, cutoff=cutoff)
                for cutoff in _CUTOFFS
                for amplitude in _AMPLITUDES
            ]
            found = min(candidates, key=negative_log_posterior)
            if self._channels != GREY:
                colours = [replace(found, of_colours=each) for each in _COLOUR_VARIANCES]
                found = min(colours, key=negative_log_posterior)
        return found

    def _template_variances(self, spectrum: Spectrum, noise: float) -> NDArray[np.float64]:
        """Variances of templates, from the spectrum of means and the noise variance on them."""
        of_means = spectrum.variances(self._side, self._channels)
        sharp = replace(
            spectrum, amplitude=_TEMPLATE_VARIANCE_RATIO * spectrum.amplitude, power=2.0
        )
        seen = of_means / (of_means + noise)
        wider: NDArray[np.float64] = sharp.variances(self._side, self._channels) - of_means
        return of_means + seen * wider

    def _coefficients_of(self, images: Tensor) -> Tensor:
        """Transform pixels (c, k, channels * side^2) to cosine coefficients of the channels."""
        shaped = images.unflatten(-1, (self._channels, self._side, self._side))
        waves = self._cosines @ shaped @ self._cosines.T
        return torch.einsum("dc,...chw->...dhw", self._colours, waves).flatten(-3)

    def energy(self, generator: ConditionalGenerator) -> Tensor:
        """The negative log prior of a generator, in units of the distance to the release.

        The distance D is a mean over c classes of squares whose noise has variance s^2, so the log
        likelihood is -c D / (2 s^2). The energy E returned is scaled likewise: the log prior is
        -c E / (2 s^2), but weaker where there is little noise (`_LITTLE_NOISE`).
        """
        mean, each = self._variance.mean(), self._variance[:, None, None]
        total = torch.zeros((), device=self._variance.device)
        for name, images in (("template", generator.template), ("factors", generator.factors)):
            values = self._coefficients_of(images)
            shared = values.mean(dim=0, keepdim=True)
            total = total + mean * (shared.square() / self._spectra[f"shared {name}"]).sum()
            own = (values - shared).square() / self._spectra[f"own {name}"]
            total = total + (each * own).sum()
        flows = generator.flows.flatten(1)
        deviations = flows - flows.mean(dim=0, keepdim=True)
        total = total + (self._variance[:, None] * deviations.square()).sum() / _OWN_FLOWS
        energy: Tensor = total / len(self._variance) * mean / (mean + _LITTLE_NOISE**2)
        return energy


def _colours(channels: int) -> Floats:
    """Matrix from channels to brightness and colour differences, (channels, channels)."""
    return np.eye(1) if channels == GREY else _OPPONENTS


def _shared_mean(seen: Floats, variances: Floats) -> tuple[Floats, Floats]:
    """Estimate the part shared by all classes by generalised least squares, with its variance.

    A class is weighted by the inverse of its noise *and* deviation variance: a frequent class, with
    hardly any noise, is still only one class.

    Args:
        seen: coefficients of class means (k, p).
        variances: of each about the shared part (k, p).
    """
    of_shared = 1 / (1 / variances).sum(axis=0)
    return of_shared * (seen / variances).sum(axis=0), of_shared


def _negative_log_density(seen: Floats, variances: Floats) -> float:
    """Negative log density of centred normal variables, up to a constant."""
    return float((seen**2 / variances + np.log(variances)).sum() / 2)


def _negative_log_restricted_likelihood(seen: Floats, variances: Floats) -> float:
    """The same for class means about a shared mean that has a flat prior.

    This is the density of their deviations from each other (restricted likelihood; Patterson and
    Thompson 1971, "Recovery of Inter-Block Information when Block Sizes are Unequal").
    """
    middle, of_shared = _shared_mean(seen, variances)
    return _negative_log_density(seen - middle, variances) - float(np.log(of_shared).sum() / 2)
