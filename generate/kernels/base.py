"""Feature maps as the generator sees them: in floating point, and differentiable."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from torch import Tensor

from ...common.features.base import FeatureMap
from ...common.registry import Registry


class Features(Protocol):
    """Features of a batch, grouped by class, in a form with cheap inner products."""

    def inner(self, matrix: Tensor) -> Tensor:
        """<matrix[c], phi(x)> for each record x of class c; matrix (c, d), the result (c, b)."""
        ...

    def gram(self) -> Tensor:
        """<phi(x), phi(x')> for all pairs of records within each class, (c, b, b)."""
        ...

    def numbers(self) -> int:
        """How many numbers are stored."""
        ...


class Kernel(Protocol):
    """A feature map in floating point."""

    def features(self, records: Tensor) -> Features:
        """Features of records (c, b, record size), values 0..1."""
        ...


KERNELS: Final[Registry[type[FeatureMap], Callable[..., Kernel]]] = Registry(__package__ or "")
"""Constructors of kernels by the class of the feature map. They take the map, a device and a dtype,
and the `module` too if one computes the map."""


@dataclass(frozen=True, eq=False)
class FeatureMatrix:
    """Features that are small enough to be written out.

    Attributes:
        values: (c, b, d).
        whole: whether to keep all coordinates as they are, without choosing principal directions.
    """

    values: Tensor
    whole: bool = False

    def inner(self, matrix: Tensor) -> Tensor:
        """See `Features`."""
        product: Tensor = (self.values @ matrix[:, :, None])[..., 0]
        return product

    def gram(self) -> Tensor:
        """See `Features`."""
        return self.values @ self.values.mT

    def numbers(self) -> int:
        """See `Features`."""
        return self.values.numel()
