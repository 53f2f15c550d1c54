"""Options of feature maps that a record's form and a seed determine."""

from __future__ import annotations

from dataclasses import dataclass

from ...common.features.base import FEATURE_MAPS, Drawable, FeatureMap
from ...common.schema import Schema
from .base import FEATURE_OPTIONS, SeededOptions


class DrawnOptions(SeededOptions):
    """A feature map whose only option is its seed."""

    def draw(self, schema: Schema) -> FeatureMap:
        """Draw the map, without looking at any record.

        Args:
            schema: of the records.

        Raises:
            SchemaError: there is no such map for such records.
        """
        of_maps = FEATURE_MAPS.entries()[self.kind]
        assert isinstance(of_maps, Drawable)
        return of_maps.draw(schema.record_size, levels=schema.levels, seed=self.seed)


@FEATURE_OPTIONS.add("hermite")
@dataclass(frozen=True, repr=False, kw_only=True)
class HermiteOptions(DrawnOptions):
    """Hermite polynomials of single values and of pairs of values (DP-HP).

    Attributes:
        seed: the seed of the pairs of values. Noise has no seed.

    Guarantee:
        The map is a function of the schema and the seed: neither may be chosen by looking at the
        records.

    Raises:
        SchemaError: the seed is invalid.
    """
