"""What is believed of a generator before a release is read: that classes are alike, and smooth.

A release with much noise says little, and a generator that follows it to the letter learns the
noise. So training minimises the distance to the release plus what is unlikely of the generator
beforehand, in the noise's own units: it looks for the most probable generator (maximum a
posteriori). The more noise, the more the prior counts; where there is next to none, it vanishes.

Templates, factors and flows are what all classes share plus the deviations of each class, and both
are Gaussian. Their variance falls with the spatial frequency f, in half waves per image width, as
1 / (1 + (f / cutoff)^4): that is what class means of real images do. Templates, from which flows
take the blur that is in means, fall with the square, as far as there is something to be seen of a
frequency: detail that nobody knows is no sharper than that of means. How large deviations of
templates are, and where they begin to fall, follows from the released class means: of some tries
the likeliest is taken (empirical Bayes). Classes may have unlike noise, since some are rare: what
all have in common is their mean weighted by what they vary by, noise and deviation together
(`_middle`), and what is expected of a rare class is that.

In colour, brightness and colour differences have amplitudes of their own, since classes are told
apart by one more than by the other.

Where all classes together are black or white, so is each of them: deviations of means vary as
m (1 - m), where m is what they have in common. No values between 0 and 1 of that mean vary by more
(Bhatia and Davis 2000, "A Better Bound on the Variance"). Those of templates, which flows move, do
not have to. A single class deviates from nothing: its mean is what is shared, and noise is taken
off by that spectrum alone.
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

from ...common.schema.image import GREY
from .cosine_transform import cosines
from .denoising import Floats, noise_in
from .generator import ConditionalGenerator
from .initialisation import NoisyMeans

_CUTOFFS: Final = (2.0, 3.0, 4.0, 6.0, 9.0)
_ROUNDS: Final = 2
"""Spectra of brightness are looked for, then of colours, and again."""
_AMPLITUDES: Final = tuple(float(a) for a in np.geomspace(0.02, 50.0, 30))
"""Variances at low frequencies that are tried: of coefficients of an orthonormal transform, so a
pixel's variance times the number of pixels, over that of coefficients below the cutoff."""


@dataclass(frozen=True)
class Spectrum:
    """Variances by spatial frequency.

    Attributes:
        amplitude: the variance at low frequencies.
        cutoff: where it has fallen to half, in half waves per image width.
        power: of the frequency, as which it falls behind that.
        of_colours: variances of colour differences over those of brightness.
    """

    amplitude: float
    cutoff: float
    power: float = 4.0
    of_colours: float = 1.0

    def variances(self, side: int, channels: int = 1) -> NDArray[np.float64]:
        """Of each coefficient of the cosine transform of channels, float64 (channels * side^2,).

        Of colours the first channel is brightness, the others are differences (`_OPPONENTS`).
        """
        along = np.arange(side)
        frequency = np.hypot(along[:, None], along[None]).flatten()
        fallen: NDArray[np.float64] = self.amplitude / (1 + (frequency / self.cutoff) ** self.power)
        return np.concatenate([fallen, *[self.of_colours * fallen] * (channels - 1)])


_OF_COLOURS: Final = tuple(float(each) for each in np.geomspace(0.001, 4.0, 25))
"""Variances of colour differences over those of brightness that are tried."""
_OPPONENTS: Final = np.array([[1, 1, 1], [1, 0, -1], [1, -2, 1]]) / np.sqrt([[3], [2], [6]])
"""Three channels to brightness and two colour differences: a rotation, in which noise is as it was
(Ohta, Kanade and Sakai 1980, "Color Information for Region Segmentation")."""

_SHARED_TEMPLATE: Final = Spectrum(3.0, 2.0)
_OWN_TEMPLATE: Final = Spectrum(0.3, 6.0)
"""Of templates, where a release has no class means to learn it from."""
_LITTLE: Final = 0.02
"""Of the mean of m (1 - m): even where all classes are black, one may be a little brighter."""
_SHARPER: Final = 2.0
"""Variances of templates at low frequencies over those of class means, which flows have blurred."""
_CREDENCE: Final = 0.4
"""Standard deviation of the logarithms of amplitude and cutoff around these, before they are
learnt: with much noise the likeliest spectrum would be one by chance."""
_SHARED_FACTORS: Final = Spectrum(0.05, 10.0)
_OWN_FACTORS: Final = Spectrum(0.03, 10.0)
_OWN_FLOWS: Final = 1e-3
"""Variance of what a class's flows have of their own, at each control point."""


_OF_RECORDS: Final = Spectrum(1.0, 6.0, power=2.0)
"""Of records about the mean of their class; how large, a release says (`variation.py`)."""
_PLENTY: Final = 0.003
"""With less noise than this on a class's mean feature, in any one direction, a release is believed
more than the prior, whose spectra are guesses, would have it."""
_LEAST: Final = 1e-12
"""Variances of noise below this are taken for it: a release may have none."""


class GeneratorPrior:
    """A Gaussian prior over generators.

    Guarantee:
        Post-processing: what is learnt, is learnt from released means. (docs/privacy/proofs.md,
        statement 10.)

    Args:
        means: the released class means, if there are any.
        side: of an image.
        channels: of an image.
        noise_variance: variance of the noise on each coordinate of a class's mean feature, (c,).
        alike_together: whether classes are believed to be black or white where all of them
            together are.

    Attributes:
        shared: of the mean image of all classes, whose even grey is free.
        own: of the deviations of a class's mean image; `shared` if there is only one class.
        common: what is expected of the mean image of all classes, float64 (channels * side^2,);
            grey if there are no means.
        start: templates to begin with, float32 (c, channels * side^2): the means' expectation by
            this prior; grey if there are none.
        envelope: what class means' deviations are multiplied by, pixel by pixel, of mean square 1,
            float64 (channels * side^2,); 1 if there are no means.
        contrast: by how much a pixel of `start` differs from the classes' average, or, of a single
            class, from its even grey: root of the mean square.
        doubt: standard deviation of what a pixel of a template may be beside that, given the means;
            0 if there are none.
    """

    def __init__(
        self,
        means: NoisyMeans | None,
        side: int,
        noise_variance: Tensor,
        channels: int = 1,
        *,
        alike_together: bool = True,
    ) -> None:
        self._side, self._channels = side, channels
        self._even = np.tile(np.arange(side**2) == 0, channels)
        self._variance = noise_variance
        self.shared, self.own = _SHARED_TEMPLATE, _OWN_TEMPLATE
        self.start = np.full((len(noise_variance), channels * side**2), 0.5, dtype=np.float32)
        self.common = np.full(channels * side**2, 0.5)
        self.envelope = np.ones(channels * side**2)
        self._alike_together = alike_together
        self.doubt = 0.0
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
                ("shared template", self._sharper(self.shared, of_each / max(1, len(noisy)))),
                ("own template", self._sharper(self.own, of_each)),
                ("shared factors", _SHARED_FACTORS.variances(side, channels)),
                ("own factors", _OWN_FACTORS.variances(side, channels)),
            )
        }
        self._spectra["shared template"][torch.from_numpy(self._even)] = math.inf
        self._cosines = torch.from_numpy(cosines(side)).float().to(noise_variance.device)
        self._colours = torch.from_numpy(_colours(channels)).float().to(noise_variance.device)

    def _learn(
        self, values: NDArray[np.float64], noise: NDArray[np.float64], known: NDArray[np.bool_]
    ) -> None:
        """Learn the spectra of templates, and what to begin with."""
        seen = self._to_waves(values)
        noisy = np.maximum(noise**2, _LEAST)[:, None]
        uneven = ~self._even
        varying = np.broadcast_to(noisy, seen.shape)
        if len(seen) > 1:

            def unlike(own: Floats) -> float:
                return _unlikely_apart(seen, own + noisy)

            self.own = self._likeliest(unlike, _OWN_TEMPLATE)
            varying = self.own.variances(self._side, self._channels) + noisy
        middle, of_middle = _middle(seen, varying)

        def unlikely(shared: Floats) -> float:
            return _unlikely(middle[uneven], (shared + of_middle)[uneven])

        self.shared = self._likeliest(unlikely, _SHARED_TEMPLATE)
        if len(seen) == 1:
            self.own = self.shared  # of a class that has no other to deviate from
        shared = self.shared.variances(self._side, self._channels)
        expected = np.where(uneven, middle * shared / (shared + of_middle), middle)
        self.common = self._in_space(expected[None])[0].clip(0.0, 1.0)
        if self._alike_together:
            widest = self.common * (1 - self.common) + _LEAST
            widest += _LITTLE * widest.mean()
            self.envelope = np.sqrt(widest / widest.mean())
        start = np.tile(self.common, (len(known), 1))
        if len(seen) > 1:
            numbers, apart = np.flatnonzero(known), values - self.common
            for number, of_class, own in zip(numbers, noisy[:, 0], apart, strict=True):
                start[number] += own - noise_in(own[None], of_class, self._covary)[0]
        self.start = start.clip(0.0, 1.0).astype(np.float32)
        by_frequency = self.own.variances(self._side, self._channels)
        self.doubt = math.sqrt(np.mean(by_frequency * noisy / (by_frequency + noisy)))

    def _to_waves(self, images: Floats) -> Floats:
        """(k, channels * side^2) pixels to coefficients of the channels' cosine transform."""
        along = cosines(self._side)
        shaped = images.reshape(len(images), self._channels, self._side, self._side)
        waves = along @ shaped @ along.T
        mixed: Floats = np.einsum("dc,kchw->kdhw", _colours(self._channels), waves)
        return mixed.reshape(images.shape)

    def _in_space(self, waves: Floats) -> Floats:
        """The way back."""
        along = cosines(self._side)
        shaped = waves.reshape(len(waves), self._channels, self._side, self._side)
        mixed = along.T @ shaped @ along
        images: Floats = np.einsum("dc,kdhw->kchw", _colours(self._channels), mixed)
        return images.reshape(waves.shape)

    def _covary(self, images: Floats) -> Floats:
        """Images times the covariance of a class mean's deviation, (k, channels * side^2)."""
        waves = self._to_waves(images * self.envelope)
        waves *= self.own.variances(self._side, self._channels)
        return self._in_space(waves) * self.envelope

    def doubts(self, count: int, seed: int) -> Tensor:
        """Draws of what templates may be beside what they are, float32 (c, count, pixels).

        A draw x by the prior, with a draw n of the noise, differs from what is expected of x + n by
        what is left of the noise: a draw of the doubt (Matheron's rule; Hoffman and Ribak 1991,
        "Constrained Realizations of Gaussian Fields").

        Args:
            count: of each class.
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
                both = self._in_space(waves) * self.envelope + added
                drawn[number] = noise_in(both, noise**2, self._covary) - added
        return torch.from_numpy(drawn)

    def variation(self, count: int, seed: int) -> Tensor:
        """Draws of how a record may differ from its class's mean, float32 (c, count, pixels).

        Differences have the spectrum of what one sees everywhere, 1 / f^2 (Ruderman and Bialek
        1994, "Statistics of Natural Images"), and colours in the proportion that those of classes
        have. A pixel's variance is 1 in the mean.

        Args:
            count: of each class.
            seed: of the draws.
        """
        random = np.random.default_rng(seed)
        spectrum = replace(_OF_RECORDS, of_colours=self.own.of_colours)
        variances = spectrum.variances(self._side, self._channels)
        spread = np.sqrt(variances / variances.mean())
        shape = len(self.start), count, len(spread)
        drawn = np.empty(shape, dtype=np.float32)
        for of_class in drawn:
            of_class[:] = self._in_space(random.standard_normal(shape[1:]) * spread)
        return torch.from_numpy(drawn)

    def _likeliest(self, unlikely: Callable[[Floats], float], usual: Spectrum) -> Spectrum:
        """Of some spectra the most probable one.

        Args:
            unlikely: variances of coefficients, float64 (channels * side^2,), to the negative
                logarithm of the likelihood.
            usual: what is expected beforehand.
        """

        def in_all(spectrum: Spectrum) -> float:
            far = np.log([spectrum.amplitude / usual.amplitude, spectrum.cutoff / usual.cutoff])
            variances = spectrum.variances(self._side, self._channels)
            return unlikely(variances) + float(np.square(far / _CREDENCE).sum() / 2)

        found = usual
        for _ in range(1 if self._channels == GREY else _ROUNDS):
            tried = [
                replace(found, amplitude=amplitude, cutoff=cutoff)
                for cutoff in _CUTOFFS
                for amplitude in _AMPLITUDES
            ]
            found = min(tried, key=in_all)
            if self._channels != GREY:
                colours = [replace(found, of_colours=each) for each in _OF_COLOURS]
                found = min(colours, key=in_all)
        return found

    def _sharper(self, spectrum: Spectrum, noise: float) -> NDArray[np.float64]:
        """Variances of templates, by those of means and the variance of the noise on these."""
        of_means = spectrum.variances(self._side, self._channels)
        sharp = replace(spectrum, amplitude=_SHARPER * spectrum.amplitude, power=2.0)
        seen = of_means / (of_means + noise)
        wider: NDArray[np.float64] = sharp.variances(self._side, self._channels) - of_means
        return of_means + seen * wider

    def _waves(self, images: Tensor) -> Tensor:
        """(c, k, channels * side^2) in space to coefficients of the channels' cosine transform."""
        shaped = images.unflatten(-1, (self._channels, self._side, self._side))
        waves = self._cosines @ shaped @ self._cosines.T
        return torch.einsum("dc,...chw->...dhw", self._colours, waves).flatten(-3)

    def energy(self, generator: ConditionalGenerator) -> Tensor:
        """How unlikely a generator is, in units of the distance to the release.

        The distance D is a mean over c classes of squares whose noise has variance s^2, so that
        the logarithm of the likelihood is -c D / (2 s^2), and that of the prior is -c E / (2 s^2)
        with E as returned; but less where there is little noise (`_PLENTY`).
        """
        mean, each = self._variance.mean(), self._variance[:, None, None]
        total = torch.zeros((), device=self._variance.device)
        for name, images in (("template", generator.template), ("factors", generator.factors)):
            values = self._waves(images)
            shared = values.mean(dim=0, keepdim=True)
            total = total + mean * (shared.square() / self._spectra[f"shared {name}"]).sum()
            own = (values - shared).square() / self._spectra[f"own {name}"]
            total = total + (each * own).sum()
        flows = generator.flows.flatten(1)
        deviations = flows - flows.mean(dim=0, keepdim=True)
        total = total + (self._variance[:, None] * deviations.square()).sum() / _OWN_FLOWS
        energy: Tensor = total / len(self._variance) * mean / (mean + _PLENTY**2)
        return energy


def _colours(channels: int) -> Floats:
    """Channels to brightness and colour differences, (channels, channels); grey is brightness."""
    return np.eye(1) if channels == GREY else _OPPONENTS


def _middle(seen: Floats, variances: Floats) -> tuple[Floats, Floats]:
    """What classes have in common, by generalised least squares, and its variance.

    A class counts the less, the more its noise *and* what it has of its own let it vary: a frequent
    class, whose noise is next to nothing, is still one class.

    Args:
        seen: coefficients of class means (k, p).
        variances: of each, about what is common (k, p).
    """
    of_middle = 1 / (1 / variances).sum(axis=0)
    return of_middle * (seen / variances).sum(axis=0), of_middle


def _unlikely(seen: Floats, variances: Floats) -> float:
    """Negative logarithm of the density of normal variables of mean 0, but for a constant."""
    return float((seen**2 / variances + np.log(variances)).sum() / 2)


def _unlikely_apart(seen: Floats, variances: Floats) -> float:
    """The same of class means about something common of which nothing is known beforehand.

    That of their deviations from each other (restricted likelihood; Patterson and Thompson 1971,
    "Recovery of Inter-Block Information when Block Sizes are Unequal").
    """
    middle, of_middle = _middle(seen, variances)
    return _unlikely(seen - middle, variances) - float(np.log(of_middle).sum() / 2)
