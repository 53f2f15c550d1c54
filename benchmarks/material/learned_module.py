"""A module for `--metric-module` from a data set itself: what a small network learns of it.

    python -m benchmarks.material.learned_module MNIST_FOLDER digits.pt

Two convolutions and a hidden layer learn to tell the classes of the training part apart; the module
says what the hidden layer does, before its activation. Networks that were trained on photographs
see little in digits, and this one sees what makes them digits. Distances in it compare releases of
one data set with one module: with another seed or data set they are on another scale.

The network has learned from real records and carries what it knows of them. It is for measuring
alone: never hand it out with a release, and never pass it to `embed` as public.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Final

import torch
from torch import Tensor, nn

from dpntk.common.errors import DpntkError
from dpntk.evaluate.images.records import LabelledImages, read_real

from .public_module import write
from .records import training_part

SAID: Final = 64
"""Numbers that the module says of an image."""
_CHANNELS: Final = (16, 32)
_BATCH: Final = 128
_LEARNING_RATE: Final = 1e-3
_CHUNK: Final = 1_000


def features_of(channels: int, side: int) -> nn.Sequential:
    """The network up to its hidden layer, from images (b, channels, side, side) to (b, d)."""
    layers: list[nn.Module] = []
    for before, after in zip((channels, *_CHANNELS), _CHANNELS, strict=False):
        layers += [nn.Conv2d(before, after, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(_CHANNELS[-1] * (side // 4) ** 2, SAID))


def learned(train: LabelledImages, *, epochs: int, seed: int) -> tuple[nn.Module, nn.Module]:
    """Train on real images; the network up to its hidden layer, and what tells classes by that.

    Args:
        train: real images.
        epochs: passes over them.
        seed: of weights and batches.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        features = features_of(train.channels, train.side)
        head = nn.Sequential(nn.ReLU(), nn.Linear(SAID, train.classes))
        optimiser = torch.optim.Adam(
            [*features.parameters(), *head.parameters()], lr=_LEARNING_RATE
        )
        images = torch.from_numpy(train.images()).view(-1, *train.shape)
        labels = torch.from_numpy(train.labels)
        for _ in range(epochs):
            for part in torch.randperm(len(labels)).split(_BATCH):
                loss = nn.functional.cross_entropy(head(features(images[part])), labels[part])
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()
    return features, head


@torch.inference_mode()
def accuracy(features: nn.Module, head: nn.Module, test: LabelledImages) -> float:
    """The share of test images whose class it tells."""
    images: Tensor = torch.from_numpy(test.images()).view(-1, *test.shape)
    guesses = torch.cat([head(features(part)).argmax(dim=1) for part in images.split(_CHUNK)])
    return (guesses == torch.from_numpy(test.labels)).double().mean().item()


def main(arguments: list[str] | None = None) -> None:
    """Write the module, and say how well its network tells the test images apart."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("data", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--classes", type=int, default=10)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args(arguments)
    if chosen.epochs < 1:
        parser.error(f"--epochs {chosen.epochs}: one or more is needed")
    try:
        train = training_part(chosen.data, chosen.classes)
        test = read_real(chosen.data, "test", train)
    except DpntkError as error:
        sys.exit(f"learned_module: {error}")
    features, head = learned(train, epochs=chosen.epochs, seed=chosen.seed)
    write(features, chosen.output, train.shape)
    print(f"{chosen.output}: {accuracy(features, head, test):.3f} of {len(test):,} test images")


if __name__ == "__main__":
    main()
