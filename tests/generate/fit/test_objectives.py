"""Parts that do not fit a release are refused by it, or by the embedding before there is one."""

from __future__ import annotations

import pytest

from dpntk.common.errors import GeneratorError
from dpntk.common.schema.classes import numbered
from dpntk.common.schema.image import ImageSchema
from dpntk.common.schema.origin import Origin
from dpntk.common.schema.table import TableSchema
from dpntk.embed import FeatureOptions, FourierOptions, TangentOptions
from dpntk.generate import ComposedSettings
from dpntk.generate.fit.objectives import require_parts
from tests.helpers.tables import PEOPLE

IMAGES = ImageSchema(8, numbered(2), Origin.FORMAT, Origin.DECLARED)
NETWORK, FOURIER = TangentOptions(width=3), FourierOptions(frequencies=5)


@pytest.mark.parametrize(
    ("schema", "features", "settings", "refusal"),
    [
        (IMAGES, NETWORK, ComposedSettings(objective="pearl"), "embed with kind='rff'"),
        (IMAGES, FOURIER, ComposedSettings(objective="pearl"), ""),
        (IMAGES, NETWORK, ComposedSettings(objective="mmd"), ""),
        (IMAGES, NETWORK, ComposedSettings(generator="mlp"), "of images, which take template"),
        (PEOPLE, NETWORK, ComposedSettings(generator="knots"), ""),
        (PEOPLE, NETWORK, ComposedSettings(generator="cnn"), "of tables, which take knots"),
        (PEOPLE, NETWORK, ComposedSettings(generator="mlp", objective="mmd"),
         "embed with marginals=0"),
    ],
)  # fmt: skip
def test_parts_fit_or_are_refused_in_one_line(
    schema: ImageSchema | TableSchema,
    features: FeatureOptions,
    settings: ComposedSettings,
    refusal: str,
) -> None:
    feature_map = features.draw(schema)
    if not refusal:
        require_parts(settings, schema, feature_map)
        return
    with pytest.raises(GeneratorError, match=refusal) as refused:
        require_parts(settings, schema, feature_map)
    assert "\n" not in str(refused.value)
