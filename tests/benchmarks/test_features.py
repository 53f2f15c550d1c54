"""What the benchmark of feature maps takes for arithmetic and for traffic."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from benchmarks import features
from dpntk.common.features.rff import RandomFourierFeatures


def test_products_and_convolutions_are_arithmetic() -> None:
    with features.Work() as work:
        torch.zeros(3, 5) @ torch.zeros(5, 7)
        torch.nn.functional.conv2d(torch.zeros(2, 3, 8, 8), torch.zeros(4, 3, 3, 3), padding=1)
        torch.zeros(100).cos()
    assert work.arithmetic == 2 * 3 * 5 * 7 + 2 * (2 * 4 * 8 * 8) * (3 * 3 * 3)


def test_what_is_read_and_written_is_traffic() -> None:
    values, table = torch.zeros(6, 10), torch.zeros(1000, dtype=torch.float64)
    where = torch.zeros(4, dtype=torch.int64)
    actions: list[tuple[Callable[[], object], int]] = [
        (lambda: values.cos(), 2 * 240),
        (lambda: values.cos_(), 2 * 240),
        (lambda: values.T[:3].split(2), 0),
        (lambda: torch.empty(50), 0),
        (lambda: table[where], 3 * 32),
        (lambda: values.sum(), 240 + 4),
    ]
    for action, moved in actions:
        with features.Work() as work:
            action()
        assert work.moved == moved


def test_of_a_map_they_are_for_a_record(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = RandomFourierFeatures.draw(
        20, frequencies=30, length_scale=1.0, levels=features.LEVELS, seed=0
    )
    monkeypatch.setattr(features, "draw", lambda name: (drawn, 40, 20))
    monkeypatch.setattr(features, "SQUARE", 8)
    monkeypatch.setattr(features, "COPIED", 8)
    found = features.measure("rff", torch.device("cpu"))
    assert found.arithmetic == 2 * 20 * 30  # the product with the frequencies, and nothing else
    # Phases are written, features looked up and added, all in eight bytes a number.
    assert found.moved > 8 * (30 + 2 * 60)
    assert min(found.product, found.copying) > 0
