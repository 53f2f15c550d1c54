"""Options of random Fourier features (DP-MERF)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ...common.arguments import argument, integer, number, set_plain
from ...common.errors import SchemaError
from ...common.features.base import FeatureMap
from ...common.features.joint import JointFeatures
from ...common.features.marginals.map import MarginalFeatures
from ...common.features.rff import RandomFourierFeatures
from ...common.schema import Schema
from ...common.schema.encoding import blocks_of
from ...common.schema.table import TableSchema
from .base import FEATURE_OPTIONS, SeededOptions
from .defaults import DEFAULT_FREQUENCIES

_MOST_FREQUENCIES: Final = 1 << 20
_VALUES_PER_SQUARED_LENGTH: Final = 7.5
"""DP-MERF's squared length scale for MNIST is 105: the number of pixels divided by 7.5."""


@FEATURE_OPTIONS.add("rff")
@dataclass(frozen=True, repr=False, kw_only=True)
class FourierOptions(SeededOptions):
    """Random Fourier features of a Gaussian kernel (DP-MERF).

    For images they cover all values. For tables they cover the numeric columns, and one-hot
    categories stand beside them.

    Attributes:
        frequencies: the number of frequencies; the dimension is twice that.
        length_scale: the length scale of the kernel, for values 0..1; sqrt(k / 7.5) if None, with k
            the number of values in an image, or of numeric columns in a table.
        seed: the seed of the frequencies. Noise has no seed.

    Guarantee:
        None of this may be chosen by looking at the records: a release states the choice, and no
        epsilon covers it. No noise is drawn from `seed`.

    Raises:
        SchemaError: an option has the wrong type or is out of range.
    """

    frequencies: int = DEFAULT_FREQUENCIES
    length_scale: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        count = integer("frequencies", self.frequencies, "a number", refusal=SchemaError)
        set_plain(self, frequencies=count)
        if self.length_scale is not None:
            scale = number("length_scale", self.length_scale, "a number", refusal=SchemaError)
            set_plain(self, length_scale=scale)
        if not 1 <= self.frequencies <= _MOST_FREQUENCIES:
            raise SchemaError(
                f"{argument('frequencies')}: there are from 1 to {_MOST_FREQUENCIES} of them"
            )
        if self.length_scale is not None and not 0 < self.length_scale < math.inf:
            raise SchemaError(f"{argument('length_scale')}: it is a positive number")

    def draw(self, schema: Schema) -> FeatureMap:
        """Draw the map, without looking at any record.

        Args:
            schema: of the records.
        """
        places: Sequence[int] = range(schema.record_size)
        categories = None
        if isinstance(schema, TableSchema):
            numeric = [block for block in blocks_of(schema) if block.column.kind.numeric]
            places = [block.place.start for block in numeric]
            places += [block.place.stop - 1 for block in numeric if block.missing_place]
            if len(numeric) < len(schema.features):
                categories = MarginalFeatures.of(schema, numbers=False)
            if categories is not None and not numeric:
                return categories
        numbers = RandomFourierFeatures.draw(
            schema.record_size,
            frequencies=self.frequencies,
            length_scale=self.length_scale or math.sqrt(len(places) / _VALUES_PER_SQUARED_LENGTH),
            levels=schema.levels,
            seed=self.seed,
            places=places,
        )
        if categories is None:
            return numbers
        return JointFeatures(numbers, categories, math.sqrt(0.5))  # both kernels are at most 1
