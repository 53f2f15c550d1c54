"""The residual generator: its form, its conditions, and that all of it learns."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch
from torch import nn

from dpntk.common.errors import GeneratorError
from dpntk.generate.images.generators.networks.resnet import ResidualGenerator, ResidualSpec

SMALL: dict[str, Any] = {"side": 8, "classes": 3, "code": 5, "width": 2}


def made_by(generator: ResidualGenerator, count: int = 4) -> torch.Tensor:
    spec = generator.spec
    code = torch.randn(spec.classes, count, spec.code, generator=torch.Generator().manual_seed(0))
    images: torch.Tensor = generator(code, torch.arange(spec.classes))
    return images


@pytest.fixture
def generator() -> ResidualGenerator:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return ResidualGenerator(ResidualSpec(**SMALL))


@pytest.mark.parametrize("side", [8, 13, 28, 64])
@pytest.mark.parametrize("channels", [1, 3])
def test_images_of_every_form(side: int, channels: int) -> None:
    spec = ResidualSpec(side, classes=2, code=3, channels=channels, width=1)
    images = made_by(ResidualGenerator(spec))
    assert images.shape == (2, 4, channels * side**2)
    assert 0 <= images.min() < images.max() <= 1


def test_it_has_the_layers_of_a_resnet18() -> None:
    with torch.device("meta"):
        generator = ResidualGenerator(ResidualSpec(32, 10, 201))
    convolutions = [m for m in generator.modules() if isinstance(m, nn.Conv2d)]
    shortcuts = [m for m in convolutions if m.kernel_size == (1, 1)]
    linear = [m for m in generator.modules() if isinstance(m, nn.Linear)]
    assert len(convolutions) - len(shortcuts) + len(linear) == 18
    assert len(shortcuts) == 3
    assert generator.connected.weight.shape == (512 * 4 * 4, 211)


def test_the_class_is_what_tells_images_of_one_code_apart(generator: ResidualGenerator) -> None:
    generator.eval()
    code = torch.randn(1, 4, 5).expand(3, -1, -1)
    images = generator(code, torch.arange(3))
    assert (images[0] - images[1]).abs().max() > 1e-4
    again = generator(code[:1], torch.tensor([2]))
    assert torch.allclose(again[0], images[2], atol=1e-6)  # whatever else is in the batch


def test_all_of_it_learns(generator: ResidualGenerator) -> None:
    """A plain red, green or blue for each class."""
    wanted = torch.eye(3)[:, None, :, None].expand(3, 1, 3, 64).flatten(2)
    optimiser = torch.optim.Adam(generator.parameters(), lr=0.02)
    losses = []
    for _ in range(15):
        loss = (made_by(generator) - wanted).square().mean()
        optimiser.zero_grad()
        loss.backward()
        assert all(p.grad is not None and p.grad.any() for p in generator.parameters())
        optimiser.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < 0.9 * losses[0]


def test_its_state_is_float32_and_says_all_of_it(generator: ResidualGenerator) -> None:
    made_by(generator)  # running means have changed
    state = generator.state_dict()
    assert {value.dtype for value in state.values()} == {torch.float32}
    spec = ResidualSpec(**json.loads(json.dumps(generator.spec.to_json())))
    again = ResidualGenerator(spec)
    again.load_state_dict(state)
    assert torch.equal(made_by(again.eval()), made_by(generator.eval()))


@pytest.mark.parametrize(
    "wrong", [{"side": 7}, {"side": 65}, {"classes": 0}, {"code": 0}, {"channels": 2}, {"width": 0}]
)
def test_a_description_out_of_range_is_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(GeneratorError, match="out of range"):
        ResidualSpec(**{**SMALL, **wrong})
