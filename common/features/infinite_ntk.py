"""The neural tangent kernel of an infinitely wide network with one hidden ReLU layer.

Let h(x, z) = 2 <x, z> / D + b be the covariance of two records' values before the ReLU (He's
variance 2 / D for weights, b for biases), rho the correlation sqrt(h(x, z)^2 / (h(x, x) h(z, z)))
with its sign, and theta = arccos(rho). The arc-cosine kernels of degree 0 and 1 are

    kappa_0 = (pi - theta) / pi,    kappa_1 = (sin theta + (pi - theta) cos theta) / pi

(Cho and Saul 2009, section 2), and the tangent kernel (Jacot, Gabriel, Hongler 2018, section 4) is

    k(x, z) = sqrt(h(x, x) h(z, z)) kappa_1 + b + h(x, z) kappa_0,

where the terms come from the output layer's weights, its bias, and the layer before it. The kernel
depends on <x, z>, ||x||^2 and ||z||^2 alone, so its derivative with respect to z is a combination p
x + q z of the two records.

Apart from operations that every float64 library rounds correctly (+ - * / and roots), only an
arccosine is needed, and it is our own. So every entry is a function of its own two records, to the
last bit, wherever they stand in a batch (docs/privacy/proofs.md, statement 15).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor

from ..numerics.square_root import square_root

_SMALLEST_SINE: Final = 1e-9
"""Below this sine, two records are equal up to rounding, and the kernel's slope is undefined."""
_NUMERATOR: Final = (
    1.66666666666666657415e-01, -3.25565818622400915405e-01, 2.01212532134862925881e-01,
    -4.00555345006794114027e-02, 7.91534994289814532176e-04, 3.47933107596021167570e-05,
)  # fmt: skip
_DENOMINATOR: Final = (
    1.0, -2.40339491173441421878e00, 2.02094576023350569471e00, -6.88283971605453293030e-01,
    7.70381505559019352791e-02,
)  # fmt: skip
"""(arcsin(s) - s) / s as a quotient of polynomials in s^2 <= 1/4 (FreeBSD's libm, e_asin.c)."""


@dataclass(frozen=True)
class Slopes:
    """A kernel with its derivative by the second record: p x + q z.

    Attributes:
        values: k(x_i, z_j), (n, m).
        first: p, (n, m).
        second: q, (n, m).
    """

    values: Tensor
    first: Tensor
    second: Tensor


@dataclass(frozen=True)
class ReluKernel:
    """The kernel.

    Attributes:
        inputs: D, the number of values in a record.
        bias_variance: b.
    """

    inputs: int
    bias_variance: float

    def __call__(self, x: Tensor, z: Tensor) -> Tensor:
        """k(x_i, z_j), (n, m).

        Args:
            x: records (n, D).
            z: records (m, D).
        """
        return self.slopes(x @ z.T, (x * x).sum(1), (z * z).sum(1)).values

    def slopes(self, products: Tensor, x_squares: Tensor, z_squares: Tensor) -> Slopes:
        """Values and slopes from inner products.

        Args:
            products: <x_i, z_j>, (n, m).
            x_squares: ||x_i||^2, (n,).
            z_squares: ||z_j||^2, (m,).
        """
        scale, bias = 2.0 / self.inputs, self.bias_variance
        h_zz = z_squares * scale + bias
        geometric = square_root((x_squares * scale + bias)[:, None] * h_zz)
        h_xz = products * scale + bias
        cosine = (h_xz / geometric).clamp(-1.0, 1.0)
        sine = square_root((1.0 - cosine) * (1.0 + cosine))
        rest = math.pi - arccos(cosine)
        kappa_0 = rest / math.pi
        kappa_1 = (sine + cosine * rest) / math.pi
        sine = sine.clamp_min(_SMALLEST_SINE) * math.pi
        return Slopes(
            values=geometric * kappa_1 + bias + h_xz * kappa_0,
            first=scale * (2.0 * kappa_0 + cosine / sine),
            second=scale * geometric * (1.0 - 2.0 * cosine * cosine) / (sine * h_zz),
        )

    def own(self, squares: Tensor) -> Tensor:
        """k(x_i, x_i), (n,), from ||x_i||^2, exactly: rounding could make the angle nonzero."""
        return squares * (4.0 / self.inputs) + 3.0 * self.bias_variance

    def own_slope(self) -> float:
        """The s of d k(x, x) / dx = s x."""
        return 8.0 / self.inputs


def arccos(cosine: Tensor) -> Tensor:
    """Arccosine, elementwise, to about one unit in the last place of pi.

    It is pi / 2 - arcsin(x), and for |x| above 1/2 it is 2 arcsin(sqrt((1 - |x|) / 2)), or pi minus
    that if x is negative.

    Args:
        cosine: float64, -1 to 1.
    """
    size = cosine.abs()
    central = size < 0.5
    square = torch.where(central, cosine * cosine, (1.0 - size) * 0.5)
    sine = torch.where(central, cosine, square_root(square))
    quotient = _polynomial(square, _NUMERATOR) / _polynomial(square, _DENOMINATOR)
    arcsine = sine + sine * (square * quotient)
    beyond = torch.where(cosine < 0, math.pi - 2.0 * arcsine, 2.0 * arcsine)
    return torch.where(central, math.pi / 2 - arcsine, beyond)


def _polynomial(x: Tensor, coefficients: tuple[float, ...]) -> Tensor:
    value = torch.full_like(x, coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        value = value * x + coefficient
    return value
