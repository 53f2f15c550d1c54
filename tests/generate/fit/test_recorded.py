"""A step that a GPU plays again is the step that it would take."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.fx.experimental.proxy_tensor import make_fx

from dpntk.embed import SourceOptions, TangentOptions, embed
from dpntk.generate.fit import recorded
from dpntk.generate.fit.descent import Loss, Training
from dpntk.generate.fit.settings import TrainingSettings
from dpntk.generate.images import training
from dpntk.generate.images.generators.conditional import ConditionalGenerator
from dpntk.release import PrivacyParameters, Release
from dpntk.release.publishing.pipeline import unrecorded_release
from tests.conftest import CLASSES, SIDE, draw_records
from tests.helpers.devices import every_device

STEPS = TrainingSettings(steps=60, batch=12)


class Traced:
    """What a graph does, on a processor: what it does not get at a call is where it was at first.

    And what it gives back lies where the next call's result will lie.
    """

    def __init__(self, function: Callable[[Tensor], tuple[Tensor, ...]], batch: Tensor) -> None:
        self._play = make_fx(lambda given: function(given))(batch)
        self._places: list[Tensor] = []

    def __call__(self, batch: Tensor) -> list[Tensor]:
        found = self._play(batch)
        self._places = self._places or [torch.empty_like(each) for each in found]
        for place, each in zip(self._places, found, strict=True):
            place.copy_(each)
        return self._places


@pytest.fixture(scope="module")
def release() -> Release:
    records, labels = draw_records(60)
    images = records.reshape(-1, SIDE, SIDE)
    embedding = embed(
        (images, labels), TangentOptions(width=7, pixels=0.5), SourceOptions(classes=CLASSES)
    )
    return unrecorded_release(embedding, PrivacyParameters(10.0, 1e-3))


def trained(
    release: Release, device: torch.device, patch: pytest.MonkeyPatch, *, replayed: bool
) -> Training[ConditionalGenerator]:
    """With directions that are chosen anew every 20 steps."""
    patch.setattr(training, "_UPDATE_EVERY", 20)
    patch.setattr(training, "_recordable", lambda *_: replayed)
    if device.type == "cpu" and replayed:
        patch.setattr(recorded, "Replay", Traced)
    return training.train(release, STEPS, device=str(device))


@every_device
def test_it_trains_as_if_nothing_were_recorded(
    release: Release,
    device: torch.device,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    plain, played = (
        trained(release, device, monkeypatch, replayed=replayed) for replayed in (False, True)
    )
    assert "CUDA graph" not in capsys.readouterr().err
    assert len({point.loss for point in plain.losses}) > 1
    for point, again in zip(plain.losses, played.losses, strict=True):
        assert again.step == point.step
        assert again.loss == pytest.approx(point.loss, rel=1e-5)
    for one, other in zip(plain.generator.parameters(), played.generator.parameters(), strict=True):
        torch.testing.assert_close(other, one, rtol=1e-4, atol=1e-5)


def test_it_trains_on_where_nothing_more_can_be_recorded(
    release: Release, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    processor, recordings = torch.device("cpu"), [Traced]

    def replay(function: Callable[[Tensor], tuple[Tensor, ...]], batch: Tensor) -> Traced:
        if not recordings:
            raise RuntimeError("CUDA error: not permitted when stream is capturing\nand more")
        return recordings.pop()(function, batch)

    plain = trained(release, processor, monkeypatch, replayed=False)
    monkeypatch.setattr(recorded, "Replay", replay)
    monkeypatch.setattr(training, "_recordable", lambda *_: True)
    found = training.train(release, STEPS, device="cpu")
    for point, again in zip(plain.losses, found.losses, strict=True):
        assert again.loss == pytest.approx(point.loss, rel=1e-5)
    said = capsys.readouterr().err
    assert said.count("no CUDA graph (CUDA error: not permitted when stream is capturing)") == 1


def test_what_is_recorded_ends_in_no_parameter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their gradients are added up where a GPU may have other work, which no graph may wait for."""
    monkeypatch.setattr(recorded, "Replay", Traced)
    module = torch.nn.Linear(3, 1)
    seen: list[Tensor] = []
    module.weight.register_hook(seen.append)

    def loss_of(batch: Tensor) -> Loss:
        loss = module(batch).square().sum()
        return Loss(loss, loss)

    batch = torch.randn(5, 3, generator=torch.Generator().manual_seed(0))
    loss = recorded.Recorded(loss_of, module)(batch)
    assert not seen
    loss.minimised.backward()
    (known,) = seen
    (slope,) = torch.autograd.grad(loss_of(batch).minimised, [module.weight])
    torch.testing.assert_close(known, slope)
    torch.testing.assert_close(loss.reported, loss.minimised.detach())
