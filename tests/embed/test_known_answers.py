"""Sums on this machine are the known ones, and others are noticed."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from dpntk.embed.known_answers import KNOWN, differing

CPU = torch.device("cpu")


def test_the_sums_are_the_known_ones() -> None:
    assert differing(CPU) == []


@pytest.mark.device
@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")
def test_the_sums_are_the_known_ones_on_a_gpu() -> None:
    assert differing(torch.device("cuda")) == []


def test_roots_that_are_rounded_otherwise_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a processor whose square roots are off by a few units in the last place."""

    def otherwise(values: Tensor) -> Tensor:
        return values.sqrt() * (1 + 2.0**-44)

    for module in ("tangent", "pixels"):
        monkeypatch.setattr(f"dpntk.embed.exact.{module}.square_root", otherwise)
    assert differing(CPU) == [name for name in KNOWN if "Fourier" not in name]
