"""The infinite tangent kernel equals its definition, its derivative, and wide networks' limit."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from dpntk.common.features.infinite_ntk import (
    _DENOMINATOR,
    _NUMERATOR,
    ReluKernel,
    arccos,
)

Floats = NDArray[np.float64]

INPUTS, BIAS = 6, 0.3


def draw(count: int, seed: int) -> Tensor:
    random = torch.Generator().manual_seed(seed)
    return torch.randn(count, INPUTS, generator=random, dtype=torch.float64)


def defined(x: Tensor, z: Tensor) -> Tensor:
    """The kernel of two records as written down, by torch's own arccosine."""
    h_xx, h_zz, h_xz = (2 * (a @ b) / INPUTS + BIAS for a, b in ((x, x), (z, z), (x, z)))
    geometric = (h_xx * h_zz).sqrt()
    theta = torch.arccos(h_xz / geometric)
    kappa_1 = (theta.sin() + (math.pi - theta) * theta.cos()) / math.pi
    return geometric * kappa_1 + BIAS + h_xz * (math.pi - theta) / math.pi


def slopes_of(kernel: ReluKernel, x: Tensor, z: Tensor) -> Tensor:
    """Derivatives with respect to z, (n, m, D), put together from the coefficients."""
    found = kernel.slopes(x @ z.T, (x * x).sum(1), (z * z).sum(1))
    return found.first[:, :, None] * x[:, None, :] + found.second[:, :, None] * z


def test_the_arccosine_is_right_to_the_last_places() -> None:
    cosines = torch.cat(
        [torch.linspace(-1, 1, 100_001, dtype=torch.float64), torch.tensor([-0.5, 0.5, 0.0])]
    )
    wrong = np.abs(arccos(cosines).numpy() - np.arccos(cosines.numpy()))
    assert wrong.max() <= 5e-16


def by_numpy(products: Floats, squares: Floats) -> tuple[Floats, Floats, Floats]:
    """Values and slopes of records with themselves, by NumPy's operations, which IEEE 754 defines.

    The same steps in the same order: the bits have to be the same.
    """

    def polynomial(x: Floats, coefficients: tuple[float, ...]) -> Floats:
        value = np.full_like(x, coefficients[-1])
        for coefficient in coefficients[-2::-1]:
            value = value * x + coefficient
        return value

    scale = 2.0 / INPUTS
    h = squares * scale + BIAS
    geometric = np.sqrt(h[:, None] * h)
    h_xz = products * scale + BIAS
    cosine = (h_xz / geometric).clip(-1.0, 1.0)
    sine = np.sqrt((1.0 - cosine) * (1.0 + cosine))
    size = np.abs(cosine)
    square = np.where(size < 0.5, cosine * cosine, (1.0 - size) * 0.5)
    root = np.where(size < 0.5, cosine, np.sqrt(square))
    quotient = polynomial(square, _NUMERATOR) / polynomial(square, _DENOMINATOR)
    arcsine = root + root * (square * quotient)
    beyond = np.where(cosine < 0, math.pi - 2.0 * arcsine, 2.0 * arcsine)
    rest = math.pi - np.where(size < 0.5, math.pi / 2 - arcsine, beyond)
    kappa_0, kappa_1 = rest / math.pi, (sine + cosine * rest) / math.pi
    below = np.maximum(sine, 1e-9) * math.pi
    return (
        geometric * kappa_1 + BIAS + h_xz * kappa_0,
        scale * (2.0 * kappa_0 + cosine / below),
        scale * geometric * (1.0 - 2.0 * cosine * cosine) / (below * h),
    )


def test_every_bit_is_that_of_operations_that_are_rounded_correctly() -> None:
    """One root in seventy would be another with torch's own (proofs, statement 15)."""
    x = draw(300, seed=3)
    products, squares = x @ x.T, (x * x).sum(1)
    found = ReluKernel(INPUTS, BIAS).slopes(products, squares, squares)
    expected = by_numpy(products.numpy(), squares.numpy())
    for ours, theirs in zip((found.values, found.first, found.second), expected, strict=True):
        assert np.array_equal(ours.numpy(), theirs)


def test_values_are_those_of_the_definition() -> None:
    x, z = draw(7, seed=0), draw(5, seed=1)
    expected = torch.stack([torch.stack([defined(a, b) for b in z]) for a in x])
    assert (ReluKernel(INPUTS, BIAS)(x, z) - expected).abs().max() < 1e-12


def test_a_record_with_itself_has_angle_zero() -> None:
    kernel, x = ReluKernel(INPUTS, BIAS), draw(4, seed=2)
    assert torch.allclose(kernel(x, x).diagonal(), kernel.own((x * x).sum(1)), rtol=1e-7)


def test_slopes_equal_automatic_differentiation() -> None:
    x, z = draw(7, seed=0), draw(5, seed=1)
    derivative = torch.func.vmap(
        torch.func.vmap(torch.func.grad(defined, argnums=1), (None, 0)), (0, None)
    )
    mine = slopes_of(ReluKernel(INPUTS, BIAS), x, z)
    assert (mine - derivative(x, z)).abs().max() < 1e-9


def test_the_slope_along_the_diagonal_is_its_own() -> None:
    kernel, x = ReluKernel(INPUTS, BIAS), draw(1, seed=3)
    step = 1e-6 * x
    rise = (kernel(x + step, x + step) - kernel(x - step, x - step)).item() / 2
    assert rise == pytest.approx(kernel.own_slope() * float((x * step).sum()), rel=1e-6)


def tangent_kernel(x: Tensor, width: int, seed: int) -> Tensor:
    """The tangent kernel at the start of a random network in the standard scaling of NTKs."""
    random = torch.Generator().manual_seed(seed)

    def drawn(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=random, dtype=torch.float64)

    weights = (drawn(width, INPUTS), drawn(width), drawn(width), drawn(1))

    def network(parameters: tuple[Tensor, ...], record: Tensor) -> Tensor:
        first, first_bias, last, last_bias = parameters
        before = math.sqrt(2 / INPUTS) * first @ record + math.sqrt(BIAS) * first_bias
        after = torch.relu(before)
        return math.sqrt(2 / width) * last @ after + math.sqrt(BIAS) * last_bias[0]

    jacobian = torch.func.vmap(torch.func.grad(network), (None, 0))(weights, x)
    flat = torch.cat([part.flatten(1) for part in jacobian], dim=1)
    return flat @ flat.T


def test_wide_networks_tend_to_it() -> None:
    """The distance falls like one over the square root of the width."""
    x = draw(6, seed=4)
    limit = ReluKernel(INPUTS, BIAS)(x, x)
    distance = {
        width: np.mean(
            [float((tangent_kernel(x, width, seed) - limit).norm()) for seed in range(8)]
        )
        / float(limit.norm())
        for width in (64, 1024, 16384)
    }
    assert distance[1024] < distance[64] / 2.5
    assert distance[16384] < distance[1024] / 2.5
    assert distance[16384] < 0.02
