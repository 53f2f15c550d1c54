"""Small torch modules in files, good ones and others."""

from __future__ import annotations

import warnings
from pathlib import Path

import torch
from torch import Tensor, nn


class Convolutions(nn.Module):
    """A small network as one would pre-train it, with layers that training and use tell apart."""

    def __init__(self, channels: int = 24) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(1, channels, 3, padding=1),
            nn.ReLU(),
            nn.BatchNorm2d(channels),
            nn.Dropout(0.5),
            nn.AvgPool2d(2),
            nn.Conv2d(channels, channels, 3, padding=1),
            nn.Tanh(),
        )

    def forward(self, x: Tensor) -> Tensor:
        said: Tensor = self.layers(x)
        return said


class Blind(nn.Module):
    """Says nothing of a dark image."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(x.flatten(1) - 0.25)


class Centred(nn.Module):
    """Says the opposite of a dark image and of a bright one, in numbers of some size."""

    def __init__(self, scale: float = 1.0) -> None:
        super().__init__()
        self.scale = scale

    def forward(self, x: Tensor) -> Tensor:
        return (x - 0.5) * self.scale


class Scaled(nn.Module):
    """Says what it sees, in larger or smaller numbers."""

    def __init__(self, scale: float) -> None:
        super().__init__()
        self.scale = scale

    def forward(self, x: Tensor) -> Tensor:
        return x * self.scale


class Drawing(nn.Module):
    """Adds random numbers, so faint that no record would show it."""

    def forward(self, x: Tensor) -> Tensor:
        return x + 1e-30 * torch.rand_like(x)


class Counting(nn.Module):
    """Says something else each time."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.ones(()))

    def forward(self, x: Tensor) -> Tensor:
        calls = self.calls
        assert isinstance(calls, Tensor)
        return x + calls.add_(1)


class Mixing(nn.Module):
    """Compares the images of a batch."""

    def forward(self, x: Tensor) -> Tensor:
        return x - 0.5 * x.mean(0, keepdim=True)


class Growing(nn.Module):
    """Says more of an image that has company."""

    def forward(self, x: Tensor) -> Tensor:
        return x.flatten(1).repeat(1, x.size(0))


class Deaf(nn.Module):
    """Lets no gradients through."""

    def forward(self, x: Tensor) -> Tensor:
        return x.detach() + 1


class Dividing(nn.Module):
    """Divides by the brightest pixel."""

    def forward(self, x: Tensor) -> Tensor:
        return x / x.amax(dim=(1, 2, 3), keepdim=True)


class Reusing(nn.Module):
    """Writes what it says into the same memory each time, and its image over with it."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("said", torch.zeros(1, 64))

    def forward(self, x: Tensor) -> Tensor:
        if x.requires_grad:
            return x.flatten(1)
        said = self.said
        assert isinstance(said, Tensor)
        said.copy_(x.flatten(1))
        x.add_(1)
        return said


class Picky(nn.Module):
    """Says more of bright images than of dark ones."""

    def forward(self, x: Tensor) -> Tensor:
        return x.flatten(1)[:, : int(x.sum().item()) + 1]


class Paired(nn.Module):
    """Returns two tensors."""

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return x, x


class Summing(nn.Module):
    """Returns one number for the whole batch."""

    def forward(self, x: Tensor) -> Tensor:
        return x.sum()


class Coloured(nn.Module):
    """Wants three channels."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Conv2d(3, 2, 3)

    def forward(self, x: Tensor) -> Tensor:
        said: Tensor = self.layer(x)
        return said


def write_module(module: nn.Module, path: Path) -> Path:
    """Write a module as its owner would, in training mode as it comes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        torch.jit.script(module).save(str(path))
    return path


def write_convolutions(path: Path, *, seed: int = 0, channels: int = 24) -> Convolutions:
    """Write `Convolutions` and return them, ready for use."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        module = Convolutions(channels)
    write_module(module, path)
    return module.eval()
