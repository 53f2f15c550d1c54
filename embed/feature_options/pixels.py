"""Options of pixel features."""

from __future__ import annotations

from dataclasses import dataclass

from ...common.errors import SchemaError
from ...common.features.base import FeatureMap
from ...common.features.pixels import PixelFeatures
from ...common.schema import Schema
from ...common.schema.image import ImageSchema
from .base import FEATURE_OPTIONS, FeatureOptions


@FEATURE_OPTIONS.add("pixels")
@dataclass(frozen=True, repr=False, kw_only=True)
class PixelOptions(FeatureOptions):
    """The pixels of an image as its features; there is nothing to choose and nothing to draw.

    Guarantee:
        The map is a function of the schema.
    """

    def draw(self, schema: Schema) -> FeatureMap:
        """Make the map.

        Args:
            schema: of the records.

        Raises:
            SchemaError: the records are not images.
        """
        if not isinstance(schema, ImageSchema):
            raise SchemaError(f"{self._named}: they are for images, not for tables")
        return PixelFeatures(schema.record_size, schema.levels)
