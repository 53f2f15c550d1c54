"""A step of training on a table gives a card its work, and asks it for nothing."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
import torch
from torch import Tensor

from dpntk.embed import FourierOptions, HermiteOptions, SourceOptions, TangentOptions, embed
from dpntk.generate.fit.descent import AT_ONCE, Loss
from dpntk.generate.fit.settings import TableSettings
from dpntk.generate.kernels.mean_embedding import pooled_mean
from dpntk.generate.tables import training
from dpntk.generate.tables.generators.knots import TableGenerator, TableGeneratorSpec
from dpntk.generate.tables.objective import TableDistance
from dpntk.release import PrivacyParameters
from dpntk.release.publishing.pipeline import unrecorded_release
from tests.helpers.releases import write_rows
from tests.helpers.tables import PEOPLE
from tests.helpers.traffic import CARD, Seeded, Traffic, on_the_card

MAPS = {
    "tangent": TangentOptions(width=7),
    "pairs": TangentOptions(width=7, pairs=["age,town"]),
    "rff": FourierOptions(frequencies=9),
    "hermite": HermiteOptions(),
}


@pytest.mark.parametrize("name", MAPS)
def test_a_card_is_first_asked_where_a_loss_is_noted(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    rows = write_rows(tmp_path / "people.csv")
    made = unrecorded_release(
        embed(rows, MAPS[name], SourceOptions(schema=PEOPLE)), PrivacyParameters(20.0, 1e-3)
    )
    objective = TableDistance(
        pooled_mean(made), made.feature_map, PEOPLE, torch.device("cpu"), marginals_loss=30.0
    )
    distance = on_the_card(objective)
    generator = TableGenerator(TableGeneratorSpec(), PEOPLE).to(CARD)
    taken = itertools.count()

    def noted(records: Tensor) -> Loss:
        loss: Loss = distance(records)
        next(taken)
        return loss

    monkeypatch.setattr(torch, "Generator", Seeded)
    drawn = Tensor.exponential_  # of which "meta" takes no generator
    monkeypatch.setattr(Tensor, "exponential_", lambda self, generator: drawn(self))
    with (
        Traffic() as traffic,
        pytest.raises((NotImplementedError, RuntimeError), match="meta"),
    ):
        training.minimise_distance(generator, noted, 0.0, TableSettings(steps=500, batch=20), CARD)
    assert sum(traffic.sent) == 0
    assert next(taken) == AT_ONCE
