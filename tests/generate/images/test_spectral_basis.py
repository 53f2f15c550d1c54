"""The basis of waves and colours is orthonormal, and the same for arrays and tensors."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from dpntk.generate.images.spectral_basis import basis_on, spectral_basis


@pytest.mark.parametrize("channels", [1, 3])
def test_coefficients_are_pixels_turned_and_turned_back(channels: int) -> None:
    basis, size = spectral_basis(5, channels), channels * 25
    matrix = basis.coefficients(np.eye(size))
    assert np.allclose(matrix @ matrix.T, np.eye(size))
    assert np.allclose(basis.pixels(matrix), np.eye(size))
    images = np.random.default_rng(0).random((2, 4, size))
    found = basis_on(basis, torch.device("cpu")).coefficients(torch.from_numpy(images).float())
    assert np.allclose(found, images @ matrix, atol=1e-5)


def test_grey_images_are_brightness_alone() -> None:
    basis = spectral_basis(5, 3)
    grey = np.full((1, 75), 0.5)
    found = basis.coefficients(grey)[0]
    assert basis.averages.sum() == 3
    assert found[basis.averages] == pytest.approx([0.5 * 5 * 3**0.5, 0, 0])
    assert np.allclose(found[~basis.averages], 0)
