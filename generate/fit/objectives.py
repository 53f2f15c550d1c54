"""Which generators and objectives fit which releases."""

from __future__ import annotations

from ...common.arguments import argument
from ...common.errors import GeneratorError
from ...common.features.base import FeatureMap
from ...common.features.joint import parts_of
from ...common.features.rff import RandomFourierFeatures
from ...common.schema import Schema
from .recipe import PEARL, PLAIN, TABLES, ComposedSettings, kind_of, require_generator


def require_parts(settings: ComposedSettings, schema: Schema, feature_map: FeatureMap) -> None:
    """Refuse a generator for other records, and an objective that does not know the features.

    Args:
        settings: name the parts.
        schema: of the release.
        feature_map: of the release, or of the embedding that it is to be made of.

    Raises:
        GeneratorError: the parts do not fit.
    """
    require_generator(settings.generator, schema)
    named = f"{argument('objective', settings.objective)}: the release has "
    if settings.objective == PEARL and not isinstance(feature_map, RandomFourierFeatures):
        raise GeneratorError(
            f"{named}{feature_map.describe(schema)}, and it takes random Fourier features of "
            "images, or of numeric columns alone: embed with "
            f"{argument('kind', 'rff', option='--features')}"
        )
    has_marginals = kind_of(schema) == TABLES and parts_of(feature_map).marginals is not None
    if settings.objective == PLAIN and has_marginals:
        raise GeneratorError(
            f"{named}{feature_map.describe(schema)}, and the plain loss knows the network's alone: "
            f"embed with {argument('marginals', 0)}"
        )
