"""Spectra of smooth images: variances that fall with the spatial frequency, learnt from a release.

Variances fall with the spatial frequency f, in half waves per image width, as
1 / (1 + (f / cutoff)^4), as they do for class means of real images. Amplitude and cutoff are
estimated by marginal likelihood over a grid (empirical Bayes). In colour, brightness and colour
differences have amplitudes of their own, since one may tell classes apart better than the other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from ....common.schema.image import GREY
from .denoising import Floats

_CUTOFFS: Final = (2.0, 3.0, 4.0, 6.0, 9.0)
_ROUNDS: Final = 2
"""Rounds of alternating between the spectrum of brightness and the variance of colours."""
_AMPLITUDES: Final = tuple(float(a) for a in np.geomspace(0.02, 50.0, 30))
"""Candidate variances at low frequencies. They are of coefficients of an orthonormal transform: a
pixel's variance times the number of pixels over the number of coefficients below the cutoff."""
_COLOUR_VARIANCES: Final = tuple(float(each) for each in np.geomspace(0.001, 4.0, 25))
"""Candidate variances of colour differences, relative to that of brightness."""
_DEVIATION: Final = 0.4
"""Prior standard deviation of log amplitude and log cutoff around the usual ones. Without it,
strong noise would make the choice of spectrum arbitrary."""


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

    def variances(self, side: int, channels: int = 1) -> Floats:
        """Variance of each coefficient of a `SpectralBasis`, float64 (channels * side^2,)."""
        along = np.arange(side)
        frequency = np.hypot(along[:, None], along[None]).flatten()
        fallen: Floats = self.amplitude / (1 + (frequency / self.cutoff) ** self.power)
        return np.concatenate([fallen, *[self.of_colours * fallen] * (channels - 1)])


def most_probable_spectrum(
    negative_log_likelihood: Callable[[Floats], float], usual: Spectrum, side: int, channels: int
) -> Spectrum:
    """Find the most probable spectrum on the grid.

    Args:
        negative_log_likelihood: of variances of coefficients, float64 (channels * side^2,).
        usual: centre of the prior over spectra.
        side: of the images.
        channels: of the images.
    """

    def negative_log_posterior(spectrum: Spectrum) -> float:
        far = np.log([spectrum.amplitude / usual.amplitude, spectrum.cutoff / usual.cutoff])
        variances = spectrum.variances(side, channels)
        return negative_log_likelihood(variances) + float(np.square(far / _DEVIATION).sum() / 2)

    found = usual
    for _ in range(1 if channels == GREY else _ROUNDS):
        candidates = [
            replace(found, amplitude=amplitude, cutoff=cutoff)
            for cutoff in _CUTOFFS
            for amplitude in _AMPLITUDES
        ]
        found = min(candidates, key=negative_log_posterior)
        if channels != GREY:
            colours = [replace(found, of_colours=each) for each in _COLOUR_VARIANCES]
            found = min(colours, key=negative_log_posterior)
    return found


def shared_mean(seen: Floats, variances: Floats) -> tuple[Floats, Floats]:
    """Estimate the part shared by all classes by generalised least squares, with its variance.

    A class is weighted by the inverse of its noise *and* deviation variance: a frequent class, with
    hardly any noise, is still only one class.

    Args:
        seen: coefficients of class means (k, p).
        variances: of each about the shared part (k, p).
    """
    of_shared = 1 / (1 / variances).sum(axis=0)
    return of_shared * (seen / variances).sum(axis=0), of_shared


def negative_log_density(seen: Floats, variances: Floats) -> float:
    """Negative log density of centred normal variables, up to a constant."""
    return float((seen**2 / variances + np.log(variances)).sum() / 2)


def negative_log_restricted_likelihood(seen: Floats, variances: Floats) -> float:
    """The same for class means about a shared mean that has a flat prior.

    This is the density of their deviations from each other (restricted likelihood; Patterson and
    Thompson 1971, "Recovery of Inter-Block Information when Block Sizes are Unequal").
    """
    middle, of_shared = shared_mean(seen, variances)
    return negative_log_density(seen - middle, variances) - float(np.log(of_shared).sum() / 2)
