"""Tangent features in whole grid units, and their class sums without any error.

Every record's feature is truncated to integers by a rule that looks at that record alone, and the
integers are added exactly. So the sum does not depend on the order of records, on how they are
split into chunks, on the number of threads, or on the processor. Sums of disjoint sets add up. One
record's contribution has the same bits in every data set that holds it. (`numerics.exact` says why
the guarantee needs this, and how activations and gradients achieve it.)

A linear layer's gradient stays a pair of factors, so that class sums are matrix products. For the
first layer the factors are delta, truncated to integers q = trunc(2^s delta / ||.||), and the
record's integers x: q x is the feature in units of g = 1 / (levels 2^s). Behind a hidden layer both
factors are real. Each is split into integer parts, and three products of integers make up the
product (`_products_of_integers`). Gradients of convolutions have few numbers and are written out.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor

from ...common.display.representations import RedactedRepr
from ...common.features.ntk.backprop import Pass, forward_and_back
from ...common.features.ntk.layers import Convolution
from ...common.features.ntk.map import EXACT, TangentFeatures
from ...common.numerics.exact import sum_in_fixed_order, sum_of_squares
from ...common.numerics.square_root import square_root
from .affine import ExactAffine
from .base import EXACT_FORMS, KEPT, SAFETY, rows_at_once
from .grid import Grid
from .scattering import ExactFront

LARGEST_CHUNK: Final = 4096
_AT_ONCE: Final = 1 << 18
"""Values of the widest layer per step (2 MiB): as many as a processor's cache holds."""
_FEW: Final = 128
"""The least number of records per step, lest large weights be fetched too often; `_AT_MOST` can
lower it."""
_AT_MOST: Final = 1 << 22
"""The most values of the widest layer that `_FEW` records may take (32 MiB)."""
_CHUNK_VALUES: Final = 1 << 26
"""The most numbers that the features of a chunk consist of (512 MiB)."""
_LARGEST_CUDA_CHUNK: Final = 40_000
"""The largest chunk on a GPU. Chunks are large there, so that computing takes longer than launching
the kernels."""
_CHUNK_SHARE, _AT_ONCE_SHARE = 8, 64
"""A chunk's features take at most 1/8 of a GPU's memory, and the widest layer's values per step at
most 1/64."""


@dataclass(frozen=True, eq=False, repr=False)
class DenseFeatures(RedactedRepr):
    """A part of the features of some records, written out.

    Attributes:
        values: float64 (b, k), integers.
        times: the factor to multiply them by.
    """

    values: Tensor
    times: int = 1

    def norms(self) -> Tensor:
        """Norms in grid units, float64 (b,)."""
        norms: Tensor = torch.linalg.vector_norm(self.values, dim=1)
        return norms * self.times

    @staticmethod
    def add_up(column: Tensor, some: Sequence[tuple[DenseFeatures, slice]]) -> None:
        """Add rows of several such parts to a column of class sums, int64 (k,)."""
        for part, rows in some:
            column.add_(part.values[rows].to(torch.int64).sum(dim=0), alpha=part.times)


@dataclass(frozen=True, eq=False, repr=False)
class Products(RedactedRepr):
    """A part of the features of some records, as a sum of outer products of integers.

    Attributes:
        pairs: the factors of each outer product, float64 (b, outputs) and (b, inputs), integers.
    """

    pairs: tuple[tuple[Tensor, Tensor], ...]

    def norms(self) -> Tensor:
        """Norms in grid units: ||sum_k u_k w_k^T||^2 = sum_kl <u_k, u_l> <w_k, w_l>."""
        if len(self.pairs) == 1:
            left, right = (DenseFeatures(each).norms() for each in self.pairs[0])
            return left * right
        squared = torch.zeros_like(self.pairs[0][0][:, 0])
        for one, other in itertools.combinations_with_replacement(self.pairs, 2):
            left, right = ((one[k] * other[k]).sum(dim=1) for k in (0, 1))
            squared = squared + left * right * (1 if one is other else 2)
        return square_root(squared)

    @staticmethod
    def add_up(column: Tensor, some: Sequence[tuple[Products, slice]]) -> None:
        """Add rows of several such parts to a column of class sums, int64 (outputs x inputs,)."""
        pairs = [(u[rows].T, w[rows]) for part, rows in some for u, w in part.pairs]
        matrix = column.view(len(pairs[0][0]), -1)
        # A few outputs at a time, so that allocated memory is reused; it holds them twice, as
        # floating-point numbers and as integers.
        outputs = rows_at_once(matrix, KEPT // 2)
        for start in range(0, len(matrix), outputs):
            few = slice(start, start + outputs)
            total = pairs[0][0][few] @ pairs[0][1]
            for left, right in pairs[1:]:
                total.addmm_(left[few], right)
            matrix[few].add_(total.to(torch.int64))


Part = DenseFeatures | Products


@dataclass(frozen=True, eq=False, repr=False)
class IntegerFeatures(RedactedRepr):
    """Features of a batch in grid units.

    Attributes:
        places: the coordinates of each part of a feature.
        pieces: the parts of the features, for a few records at a time.
        size: the number of records in a piece; the last piece may have fewer.
        summable: how many records' products float64 can sum exactly.
    """

    places: Sequence[slice]
    pieces: Sequence[Sequence[Part]]
    size: int
    summable: int

    def norms(self) -> Tensor:
        """Norms in grid units, float64 (b,), off by a few units in the last place."""
        return torch.cat(
            [
                torch.linalg.vector_norm(torch.stack([part.norms() for part in parts]), dim=0)
                for parts in self.pieces
            ]
        )

    def add_to(self, column: Tensor, rows: slice) -> None:
        """Add the features of some records to a column of class sums, int64 (d,)."""
        for start in range(rows.start, rows.stop, self.summable):
            self._add_few(column, slice(start, min(start + self.summable, rows.stop)))

    def _add_few(self, column: Tensor, rows: slice) -> None:
        windows = [
            slice(max(0, rows.start - start), min(self.size, rows.stop - start))
            for start in range(0, len(self.pieces) * self.size, self.size)
        ]
        for place, *parts in zip(self.places, *self.pieces, strict=True):
            some = [
                (part, window)
                for part, window in zip(parts, windows, strict=True)
                if window.start < window.stop
            ]
            if some:
                some[0][0].add_up(column[place], some)


@EXACT_FORMS.add(TangentFeatures)
class ExactTangentFeatures:
    """`TangentFeatures` in whole grid units, in float64 with every bit defined.

    A few records are processed at a time, so that a layer's outputs stay in a cache. Only the
    factors of the gradients are kept for a whole chunk.

    Args:
        feature_map: the map.
        grid: the unit.
        device: where records are.
        size: at most 1: features are multiplied by it, as a part of a longer vector.

    Guarantee:
        The integer feature of a record, times g, is a function of the record's bytes, the weights
        and the grid alone, and its norm is at most `size`: each coordinate of the computed gradient
        is divided by the computed norm, shortened by 2^-40 (more than the norm's floating-point
        error) and truncated towards zero, which never lengthens a vector. Signs are kept, so
        non-negativity of the map carries over. (docs/privacy/proofs.md, statement 3.)
    """

    def __init__(
        self, feature_map: TangentFeatures, grid: Grid, device: torch.device, size: float = 1.0
    ) -> None:
        self.feature_map = feature_map
        self.grid = grid
        self._size = size
        self._front = ExactFront(feature_map.front, feature_map.levels, device)
        self._affine = [
            ExactAffine(layer, None if number else feature_map.levels, device)
            for number, layer in enumerate(feature_map.affine)
        ]
        self._readout = torch.as_tensor(feature_map.readout, dtype=torch.float64, device=device)
        widest, kept = 1, len(feature_map.readout)
        for layer in feature_map.affine:
            places, patch = math.prod(layer.shape[1:]), math.prod(layer.weight.shape[1:])
            widest = max(widest, places * (patch + len(layer.weight)))
            is_convolution = isinstance(layer.kind, Convolution)
            kept += layer.weight.size if is_convolution else 3 * (patch + len(layer.weight))
        if device.type == "cuda":
            numbers = torch.cuda.get_device_properties(device).total_memory // 8
            self._at_once = max(1, numbers // (_AT_ONCE_SHARE * widest))
            self._fit = min(_LARGEST_CUDA_CHUNK, numbers // (_CHUNK_SHARE * kept))
        else:
            few = min(_FEW, _AT_MOST // widest)
            self._at_once = max(1, few, _AT_ONCE // widest)
            self._fit = min(LARGEST_CHUNK, _CHUNK_VALUES // kept, self.summable)

    @property
    def summable(self) -> int:
        """How many records can be summed in float64 before a sum could exceed 2^53.

        The terms are products. A product of the first layer, delta_j x with x <= 1, is at most 1 /
        sqrt(2) of the norm, whose square is at least delta_j^2 (x^2 + 1). A product of another
        layer is at most the norm.
        """
        hidden = len(self._affine) > 1
        largest = self.grid.units_per_one * (1.0 if hidden else math.sqrt(0.5))
        return max(1, int(EXACT / largest))

    @property
    def chunk_size(self) -> int:
        """How many records to process at a time."""
        return max(1, self._fit)

    def features(self, records: Tensor) -> IntegerFeatures:
        """Features of a batch.

        Args:
            records: float64 (b, record size), integers 0..levels.
        """
        pieces = [self._parts(some) for some in records.split(self._at_once)]
        places = list(self.feature_map.blocks.values())
        return IntegerFeatures(places, pieces, self._at_once, self.summable)

    def _gradients(self, records: Tensor) -> tuple[Pass, list[tuple[Tensor, Tensor]], Tensor]:
        """Gradients of a few records.

        Returns:
            The results of the pass; for every layer with weights, its gradients if it is a
            convolution, or ||inputs||^2 + 1 and ||delta||^2 if it is linear; and the squared norm
            of the whole gradient.
        """
        inputs = self._front(records).view(-1, *self.feature_map.shape)
        found = forward_and_back(
            self.feature_map.layers, self._affine, self._readout, inputs, sum_in_fixed_order
        )
        squared_norm = (sum_of_squares(found.last) + 1.0) * self.feature_map.outputs
        pairs: list[tuple[Tensor, Tensor]] = []
        for number, affine in enumerate(self._affine):
            values, delta = found.inputs[number], found.deltas[number]
            if affine.is_convolution:
                pair = affine.gradient(values, delta)
                squared_norm = squared_norm + sum(map(sum_of_squares, pair))
            else:
                if number:
                    length = sum_of_squares(values)
                else:  # whole numbers
                    length = values.square().sum(1).mul_(1.0 / self.grid.levels**2)
                pair = length + 1.0, sum_of_squares(delta)
                squared_norm = squared_norm + pair[0] * pair[1]
            pairs.append(pair)
        return found, pairs, squared_norm

    def _parts(self, records: Tensor) -> list[Part]:
        """The features of a few records, part by part."""
        found, pairs, squared_norm = self._gradients(records)
        length = SAFETY * self._size * self.grid.units_per_one
        units = (length / square_root(squared_norm))[:, None]
        parts: list[Part] = []
        for number, (affine, pair) in enumerate(zip(self._affine, pairs, strict=True)):
            values, delta = found.inputs[number], found.deltas[number]
            if affine.is_convolution:
                parts += [DenseFeatures((gradient * units).trunc_()) for gradient in pair]
            elif number == 0:
                delta = (delta * (units * (1.0 / self.grid.levels))).trunc_()
                parts += [Products(((delta, values),)), DenseFeatures(delta, self.grid.levels)]
            else:
                size = square_root(pair[0])[:, None]
                products = _products_of_integers(delta * (units * size), values / size, self.grid)
                parts += [products, DenseFeatures((delta * units).trunc_())]
        units = units * math.sqrt(self.feature_map.outputs)
        return [*parts, DenseFeatures((found.last * units).trunc_()), DenseFeatures(units.trunc_())]


def _products_of_integers(delta: Tensor, inputs: Tensor, grid: Grid) -> Products:
    """Outer products of real vectors in grid units, each rounded slightly towards zero.

    Write delta = x1 + x0 + ... and inputs = y1 + y0 + ..., where x1 and y1 hold the first B/4
    binary digits, x0 and y0 the next B/2, and B is the number of digits of 1/g. Then x1 (y1 + y0)
    and x0 y1 are whole numbers of grid units. The remaining x0 y0 is small; its factors are
    truncated to fewer digits, so that it is a whole number as well. All truncation is towards zero,
    so every term has the sign of the product, and the terms add up to no more than the product.
    With the default grid they fall short of it by at most 2^-28 of 1/g.

    Args:
        delta: float64 (b, outputs), in grid units, at most 1/g (1 + 2^-50).
        inputs: float64 (b, inputs), at most 1.
        grid: gives 1/g = levels 2^s.
    """
    digits = grid.units_per_one.bit_length() - 1
    some, half = digits // 4, digits // 2
    scaled = delta * 2.0 ** (some - digits)
    large_delta = scaled.trunc()
    scaled.sub_(large_delta)
    fine_delta = (scaled * 2.0 ** (digits - 2 * some)).trunc_()
    rest_delta = scaled.mul_(2.0 ** (digits - some - half)).trunc_()

    scaled = inputs * 2.0**some
    large_inputs = scaled.trunc()
    fine_inputs = (scaled * 2.0 ** (digits - 2 * some)).trunc_()
    rest_inputs = scaled.sub_(large_inputs).mul_(2.0 ** (half - some)).trunc_()
    return Products(
        (
            (large_delta, fine_inputs),
            (fine_delta, large_inputs),
            (rest_delta, rest_inputs),
        )
    )
