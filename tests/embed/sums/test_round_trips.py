"""A card is given records, and asked for nothing before the sums are wanted.

The card is torch's device "meta", which has shapes and no numbers. So nothing can be read from it:
whatever asks a card for a number, or for as many as it has found of something, and would have to
wait for it, fails here; and what is copied to it is counted.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from dpntk.common.schema import Schema
from dpntk.common.schema.classes import numbered
from dpntk.common.schema.image import ImageSchema
from dpntk.common.schema.origin import Origin
from dpntk.embed import FeatureOptions, FourierOptions, HermiteOptions, PixelOptions, TangentOptions
from dpntk.embed.exact.grid import DEFAULT_CAPACITY, Grid
from dpntk.embed.exact.tangent import ExactTangentFeatures
from dpntk.embed.sums.accumulate import ClassSums
from tests.helpers.tables import PEOPLE
from tests.helpers.traffic import CARD, Traffic

IMAGES = ImageSchema(8, numbered(3), Origin.DECLARED, Origin.DECLARED)
MAPS: dict[str, tuple[Schema, FeatureOptions]] = {
    "one layer behind scattering": (IMAGES, TangentOptions(width=7)),
    "two layers": (IMAGES, TangentOptions(arch="fc_2l", width="6_5", front="pixels")),
    "convolutions": (IMAGES, TangentOptions(arch="cnn_2l", width="3_8")),
    "beside pixels": (IMAGES, TangentOptions(width=7, pixels=0.5)),
    "pixels": (IMAGES, PixelOptions()),
    "rff": (IMAGES, FourierOptions(frequencies=9)),
    "a table": (PEOPLE, TangentOptions(width=7)),
    "pairs of a table": (PEOPLE, TangentOptions(width=7, pairs=["age,town"])),
    "rff of a table": (PEOPLE, FourierOptions(frequencies=9)),
    "hermite": (PEOPLE, HermiteOptions()),
}


def records_of(schema: Schema, count: int = 50) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    random = np.random.default_rng(0)
    records = random.integers(0, 256, (count, schema.record_size), dtype=np.uint8)
    return records, random.integers(0, len(schema.classes), count)


@pytest.mark.parametrize("name", MAPS)
def test_records_go_to_the_card_as_bytes_and_nothing_comes_back(name: str) -> None:
    schema, options = MAPS[name]
    feature_map = options.draw(schema)
    grid = Grid.for_capacity(schema.levels, DEFAULT_CAPACITY)
    sums = ClassSums(feature_map, len(schema.classes), grid, CARD)
    records, labels = records_of(schema)
    with Traffic() as traffic:
        for _ in range(3):
            sums.add(records, labels)
    assert traffic.sent == [records.nbytes, labels.nbytes] * 3  # and their order
    with pytest.raises((NotImplementedError, RuntimeError), match="meta"):
        _ = sums.totals


def test_a_look_at_what_a_card_computes_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    right = ExactTangentFeatures.features

    def looks(self: ExactTangentFeatures, records: torch.Tensor) -> object:
        made = right(self, records)
        made.norms().cpu()
        return made

    monkeypatch.setattr(ExactTangentFeatures, "features", looks)
    with pytest.raises(NotImplementedError, match="meta"):
        test_records_go_to_the_card_as_bytes_and_nothing_comes_back("one layer behind scattering")


def test_a_copy_to_the_card_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    right = ExactTangentFeatures.features

    def sends(self: ExactTangentFeatures, records: torch.Tensor) -> object:
        return right(self, records + torch.zeros(64, dtype=torch.float64).to(CARD))

    monkeypatch.setattr(ExactTangentFeatures, "features", sends)
    with pytest.raises(AssertionError):
        test_records_go_to_the_card_as_bytes_and_nothing_comes_back("two layers")
