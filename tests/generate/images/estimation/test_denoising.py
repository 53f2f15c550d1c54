"""The expectation of noise is that of linear algebra, written out."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from dpntk.generate.images.estimation.denoising import noise_in

RANDOM = np.random.default_rng(0)
ROOT = RANDOM.normal(size=(40, 40)) * np.geomspace(1, 1e-2, 40)
COVARIANCE = ROOT @ ROOT.T
IMAGES = RANDOM.normal(size=(6, 40))


def covariance_times(images: NDArray[np.float64]) -> NDArray[np.float64]:
    found: NDArray[np.float64] = images @ COVARIANCE
    return found


@pytest.mark.parametrize("variance", [1e3, 1.0, 1e-2])
def test_noise_is_what_a_solver_says(variance: float) -> None:
    wanted = variance * np.linalg.solve(COVARIANCE + variance * np.eye(40), IMAGES.T).T
    found = noise_in(IMAGES, variance, covariance_times)
    assert np.abs(found - wanted).max() < 1e-4 * np.abs(IMAGES).max()


def test_next_to_no_noise_is_hardly_any() -> None:
    """Also where a hundred steps are not enough to find out how much."""
    bright = IMAGES @ COVARIANCE
    assert np.abs(noise_in(bright, 1e-12, covariance_times)).max() < 1e-6 * np.abs(bright).max()


def test_of_a_dark_image_nothing_is_noise() -> None:
    dark = np.vstack([np.zeros(40), IMAGES[:1]])
    found = noise_in(dark, 0.5, covariance_times)
    assert not found[0].any()
    assert np.allclose(found[1], noise_in(IMAGES[:1], 0.5, covariance_times)[0], atol=1e-4)
