"""How networks learn by DPImageBench's protocol: averaged weights, of the epoch that is best.

Which one that is, other real images say; see `benchmarks.dpimagebench`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.optim.lr_scheduler import StepLR
from torch.optim.swa_utils import AveragedModel

from dpntk.evaluate.images.records import LabelledImages

_AT_ONCE = 1_000
Many = tuple[Tensor, ...] | list[Tensor]


@dataclass(frozen=True)
class Protocol:
    """How classifiers learn.

    Attributes:
        networks: to train, each from channels and classes.
        epochs: passes over the training images.
        every: so many epochs the learning rate falls.
        factor: by which it falls.
        learning_rate: that Adam begins with.
        batch: images in a step.
        decay: of the averaged weights.
    """

    networks: Mapping[str, Callable[[int, int], nn.Module]]
    epochs: int
    every: int
    factor: float = 0.2
    learning_rate: float = 0.01
    batch: int = 256
    decay: float = 0.9999


@dataclass(frozen=True)
class Examples:
    """Images as networks get them.

    Attributes:
        images: float32 (n, channels, side, side), -1..1.
        labels: int64 (n,).
    """

    images: Tensor
    labels: Tensor

    @classmethod
    def of(cls, records: LabelledImages, device: torch.device) -> Examples:
        """Records, on a device."""
        images = torch.from_numpy(records.images()).view(-1, *records.shape)
        return cls((2 * images - 1).to(device), torch.from_numpy(records.labels).to(device))


def averaged(network: nn.Module, decay: float) -> AveragedModel:
    """A network with the average of the weights that another one has had; to update every step.

    It begins with the weights that are there. After step t they count for d and those of the step
    for 1 - d, where d is (1 + t) / (10 + t), but at most the decay. Statistics of normalisations
    are not averaged: they are those of the network now.
    """
    steps = itertools.count(1)  # torch counts on the card, which would be waited for

    def move(so_far: Many, now: Many, _: Tensor | int) -> None:
        step = next(steps)
        share = min(decay, (1 + step) / (10 + step))
        torch._foreach_lerp_(so_far, now, 1 - share)  # all at once, as torch's own averages do

    copy = AveragedModel(network, multi_avg_fn=move)
    copy.update_parameters(network)  # the first one copies
    return copy


def optimiser_of(network: nn.Module, protocol: Protocol) -> tuple[torch.optim.Adam, StepLR]:
    """The optimiser, and what lowers its learning rate after epochs."""
    optimiser = torch.optim.Adam(network.parameters(), lr=protocol.learning_rate)
    return optimiser, StepLR(optimiser, protocol.every, protocol.factor)


def epochs(network: nn.Module, train: Examples, protocol: Protocol) -> Iterator[nn.Module]:
    """Train a network; after each epoch, one with its averaged weights."""
    optimiser, schedule = optimiser_of(network, protocol)
    average = averaged(network, protocol.decay)
    for _ in range(protocol.epochs):
        network.train()
        order = torch.randperm(len(train.labels)).to(train.labels.device)
        for part in order.split(protocol.batch):
            guesses = network(train.images[part])
            loss = nn.functional.cross_entropy(guesses, train.labels[part])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            average.update_parameters(network)
        schedule.step()
        yield average.eval()


@torch.inference_mode()
def share_right(network: nn.Module, on: Examples) -> float:
    """The share of images that a network gives to their class."""
    guesses = [network(part).argmax(dim=1) for part in on.images.split(_AT_ONCE)]
    return (torch.cat(guesses) == on.labels).double().mean().item()


def picked(after_each: Iterator[nn.Module], validation: Examples, test: Examples) -> float:
    """The accuracy on test images after the epoch that is best on others; after the last of such.

    Args:
        after_each: the network after each epoch.
        validation: to choose by.
        test: to report of.
    """
    best, reported = -1.0, 0.0
    for network in after_each:
        reached = share_right(network, validation)
        if reached >= best:
            best, reported = reached, share_right(network, test)
    return reported


def accuracy_of(
    make: Callable[[int, int], nn.Module],
    train: LabelledImages,
    validation: LabelledImages,
    test: LabelledImages,
    protocol: Protocol,
    *,
    seed: int,
    device: torch.device,
) -> float:
    """Train a network by the protocol; the accuracy that is reported of it.

    Args:
        make: the network.
        train: synthetic images.
        validation: real ones to choose the epoch by.
        test: real ones to report of.
        protocol: how it learns.
        seed: of weights, batches and dropout.
        device: to compute on.
    """
    cards = [device] if device.type == "cuda" else []
    with torch.random.fork_rng(devices=cards):
        torch.manual_seed(seed)
        network = make(train.channels, train.classes).to(device)
        # Cards convolve faster with the channels of a pixel side by side.
        network = network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        learned, chosen, told = (Examples.of(part, device) for part in (train, validation, test))
        return picked(epochs(network, learned, protocol), chosen, told)
