"""Hermite features: Gaussian kernels of single values and of pairs of values, the map of DP-HP.

Mehler's formula writes the Gaussian kernel as a series: with 0 < rho < 1,

    exp(-rho (x - y)^2 / (1 - rho^2)) = sum_c h_c(x) h_c(y),
    h_c(x) = (1 - rho^2)^(1/4) (rho / 2)^(c/2) / sqrt(c!) H_c(x) exp(-rho x^2 / (1 + rho)),

where H_c are the physicists' Hermite polynomials. Truncated after some terms, the series gives few
features without random frequencies (Vinaroz, Charusaie, Harder, Adamczewski and Park 2022, "Hermite
Polynomial Features for Private Data Generation"). As in that paper, two kernels are added:

- the sum kernel, the mean of the kernels of all values in a record: it sees the distribution of
  each value;
- the product kernel, the mean of the products of two values' kernels over some random pairs of
  values: it sees how two values depend on each other.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..errors import SchemaError
from ..schema import Schema
from .base import FEATURE_MAPS, described_so

if TYPE_CHECKING:
    from torch import Tensor

Values = TypeVar("Values", NDArray[np.float64], "Tensor")
DEFAULT_RHO: Final = 0.7
DEFAULT_ORDER: Final = 20
DEFAULT_PAIR_ORDER: Final = 8
DEFAULT_PAIRS: Final = 200
_MOST_LEVELS_TRIED: Final = 1023
MARGIN: Final = 1e-6
"""The least kernel value of a nonnegative map. Half of it exceeds the change of an inner product
when features are truncated to whole grid units."""


def hermite(values: NDArray[np.float64], order: int, rho: float) -> NDArray[np.float64]:
    """h_0 to h_order at some values, float64 (*values.shape, order + 1)."""
    first = (1 - rho**2) ** 0.25 * np.exp(-rho / (1 + rho) * values**2)
    return np.stack(terms_from(first, values, order, rho), axis=-1)


def terms_from(first: Values, values: Values, order: int, rho: float) -> list[Values]:
    """h_0 to h_order from h_0, by their recurrence; for arrays of NumPy and of torch."""
    terms = [first, math.sqrt(2 * rho) * values * first]
    for c in range(1, order):
        terms.append(
            math.sqrt(2 * rho / (c + 1)) * values * terms[c]
            - rho * math.sqrt(c / (c + 1)) * terms[c - 1]
        )
    return terms[: order + 1]


@FEATURE_MAPS.add("hermite")
@dataclass(frozen=True, eq=False)
class HermiteFeatures:
    """The feature map `hermite`.

    Attributes:
        pairs: the two values in each product kernel, float32 (p, 2), integers.
        record_size: number of values in a record.
        levels: records hold integers 0..levels.
        order: the sum kernel's series ends with h_order.
        pair_order: the product kernel's series end with h_pair_order.
        rho: rho in Mehler's formula: the nearer to 1, the narrower the kernel.

    Guarantee:
        norm_bound: sum_c h_c(x)^2 over all c is the kernel at (x, x), which is 1, and no term is
        negative. So each truncated kernel is at most 1 at (x, x), and each of the two has weight
        1/2. nonnegative: an inner product is a mean of kernels of two levels and of products of
        such kernels. It is not negative if none of these is, which is tested by trying all pairs of
        levels. (docs/privacy/proofs.md, statements 1 and 2.)
    """

    pairs: NDArray[np.float32]
    record_size: int
    levels: int
    order: int
    pair_order: int
    rho: float
    norm_bound: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        if self.pairs.dtype != np.float32 or self.pairs.ndim != 2 or self.pairs.shape[1] != 2:
            raise SchemaError("feature map: the pairs must be float32 (p, 2)")
        whole = np.rint(self.pairs)
        if not np.array_equal(whole, self.pairs) or not len(self.pairs):
            raise SchemaError("feature map: the pairs must be whole numbers")
        if self.pairs.min() < 0 or self.pairs.max() >= self.record_size:
            raise SchemaError("feature map: a pair names a value that a record does not have")
        if not 1 <= self.order <= 200 or not 1 <= self.pair_order <= 30 or not 0 < self.rho < 1:
            raise SchemaError("feature map: order or rho out of range")
        if not 1 <= self.levels < 1 << 16 or not 2 <= self.record_size < 1 << 20:
            raise SchemaError("feature map: levels or record size out of range")

    @classmethod
    def draw(
        cls,
        record_size: int,
        *,
        levels: int,
        seed: int,
        order: int = DEFAULT_ORDER,
        pair_order: int = DEFAULT_PAIR_ORDER,
        rho: float = DEFAULT_RHO,
        pairs: int = DEFAULT_PAIRS,
    ) -> HermiteFeatures:
        """Draw random pairs of values, without looking at any record.

        Args:
            record_size: number of values in a record.
            levels: largest integer in a record.
            seed: the seed of the pairs alone.
            order: the order of the sum kernel.
            pair_order: the order of the product kernel.
            rho: rho in Mehler's formula.
            pairs: the number of pairs.

        Raises:
            SchemaError: a record of one value has no pairs.
        """
        if record_size == 1:
            raise SchemaError("hermite features are of pairs of values, and a record has only one")
        random = np.random.default_rng(seed)
        first = random.integers(0, record_size, pairs)
        second = (first + random.integers(1, record_size, pairs)) % record_size
        chosen = np.stack([first, second], axis=1).astype(np.float32)
        return cls(chosen, record_size, levels, order, pair_order, rho)

    @property
    def sum_dimension(self) -> int:
        """The length of the sum kernel's part of a feature, which comes first."""
        return self.record_size * (self.order + 1)

    @property
    def dimension(self) -> int:
        """The length of a feature."""
        return self.sum_dimension + len(self.pairs) * (self.pair_order + 1) ** 2

    @property
    def nonnegative(self) -> bool:
        """See the class docstring; False if there are too many levels to try all pairs."""
        if self.levels > _MOST_LEVELS_TRIED:
            return False
        terms = hermite(np.arange(self.levels + 1) / self.levels, self._terms, self.rho)
        cut = (terms[:, : self.order + 1], terms[:, : self.pair_order + 1])
        return all(bool((part @ part.T).min() > MARGIN) for part in cut)

    @property
    def _terms(self) -> int:
        return max(self.order, self.pair_order)

    def describe(self, schema: Schema) -> str:
        """A description for readers of a release."""
        return f"Hermite features of order {self.order} and {self.pair_order} (pairs)"

    def spec(self) -> dict[str, Any]:
        """Everything beside `weights` that is needed to rebuild the map, as plain JSON."""
        return {
            "features": "hermite",
            "inputs": self.record_size,
            "levels": self.levels,
            "order": self.order,
            "pair_order": self.pair_order,
            "rho": self.rho,
        }

    def weights(self) -> dict[str, NDArray[np.float32]]:
        """The drawn pairs."""
        return {"pairs": self.pairs}

    @classmethod
    def from_spec(
        cls, spec: Mapping[str, Any], weights: Mapping[str, NDArray[Any]]
    ) -> HermiteFeatures:
        """Rebuild a map from `spec()` and `weights()`.

        Raises:
            SchemaError: they do not describe a map that this version knows, or contradict each
                other.
        """
        names = ("inputs", "levels", "order", "pair_order")
        numbers = [spec.get(name) for name in names]
        if set(weights) != {"pairs"} or not all(type(number) is int for number in numbers):
            raise SchemaError("feature map: hermite has the weights pairs, and whole numbers")
        rho = spec.get("rho")
        if not isinstance(rho, float):
            raise SchemaError("feature map: rho must be a number")
        inputs, levels, order, pair_order = (int(number or 0) for number in numbers)
        rebuilt = cls(weights["pairs"], inputs, levels, order, pair_order, rho)
        return described_so(rebuilt, spec)
