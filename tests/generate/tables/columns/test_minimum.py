"""The minimum of a smooth function, found by one thread."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from threadpoolctl import threadpool_info
from torch import Tensor

from dpntk.generate.tables.columns.minimum import minimise_by_lbfgs


@pytest.fixture
def two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def test_the_minimum_of_a_convex_function_is_found() -> None:
    generator = torch.Generator().manual_seed(0)
    root = torch.randn(6, 6, dtype=torch.float64, generator=generator)
    centre = torch.randn(2, 3, dtype=torch.float64, generator=generator)

    def loss(place: Tensor) -> Tensor:
        return (root @ (place - centre).flatten()).square().sum() + (place - centre).pow(4).sum()

    found = minimise_by_lbfgs(loss, torch.zeros(2, 3, dtype=torch.float64), steps=200)
    assert found.shape == centre.shape
    assert torch.allclose(found, centre, atol=1e-3)


@pytest.mark.usefixtures("two_threads")
def test_small_steps_do_not_wait_for_other_threads() -> None:
    seen = set()

    def loss(place: Tensor) -> Tensor:
        seen.add(torch.get_num_threads())
        seen.update(pool["num_threads"] for pool in threadpool_info())
        return place.square().sum()

    minimise_by_lbfgs(loss, torch.ones(3, dtype=torch.float64), steps=3)
    assert seen == {1}
    assert torch.get_num_threads() == 2
