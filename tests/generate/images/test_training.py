"""What a step of training is given: as many images of each class, in pairs where that is wanted."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from dpntk.generate.fit.settings import TrainingSettings
from dpntk.generate.images.generators.conditional import GeneratorSpec
from dpntk.generate.images.training import minimise_distance

CPU = torch.device("cpu")
SPEC = GeneratorSpec(8, 2)


class Codes(nn.Module):
    """Shows the codes themselves."""

    spec = SPEC

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, code: Tensor, _: Tensor) -> Tensor:
        return code * self.scale


class Watching:
    """A distance that keeps what it was asked about."""

    noise_variance = torch.ones(2)
    noise_floor = 0.0

    def __init__(self, *, in_pairs: bool) -> None:
        self.in_pairs = in_pairs
        self.seen: list[Tensor] = []

    def update_weights(self, records: Tensor) -> None:
        pass

    def __call__(self, records: Tensor) -> Tensor:
        self.seen.append(records.detach())
        return records.square().mean()


def batches(batch: int, *, in_pairs: bool) -> list[Tensor]:
    watching, codes = Watching(in_pairs=in_pairs), Codes()
    made: Any = codes
    settings = TrainingSettings(steps=3, batch=batch, learning_rate=1e-9)
    minimise_distance(made, watching, settings, CPU)
    assert len(watching.seen) == 3
    return watching.seen


@pytest.mark.parametrize(("batch", "each"), [(20, 10), (22, 10), (2, 4)])
def test_codes_come_with_their_opposites_where_a_distance_may_have_them(
    batch: int, each: int
) -> None:
    for seen in batches(batch, in_pairs=True):
        assert seen.shape == (2, each, SPEC.code)
        first, second = seen.chunk(2, dim=1)
        assert torch.allclose(second, -first, atol=1e-6)
        assert len(first.flatten().unique()) == first.numel()


@pytest.mark.parametrize(("batch", "each"), [(20, 10), (22, 11), (2, 2)])
def test_elsewhere_all_codes_are_independent(batch: int, each: int) -> None:
    for seen in batches(batch, in_pairs=False):
        assert seen.shape == (2, each, SPEC.code)
        assert len(seen.abs().flatten().unique()) == seen.numel()
