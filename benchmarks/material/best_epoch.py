"""How networks learn by DPImageBench's protocol: averaged weights, of the epoch that is best.

Which one that is, other real images say; see `benchmarks.dpimagebench`.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.optim.lr_scheduler import StepLR

from dpntk.evaluate.images.records import LabelledImages

from .recorded_step import RecordedStep

_AT_ONCE = 1_000


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
        bfloat16: layers compute in bfloat16 where torch's autocast holds that to be safe.
    """

    networks: Mapping[str, Callable[[int, int], nn.Module]]
    epochs: int
    every: int
    factor: float = 0.2
    learning_rate: float = 0.01
    batch: int = 256
    decay: float = 0.9999
    bfloat16: bool = False

    def precision(self, device: torch.device) -> torch.autocast:
        """Within this layers compute as the protocol says."""
        # Weights change between steps, so copies of them are not kept.
        return torch.autocast(
            device.type, torch.bfloat16, enabled=self.bfloat16, cache_enabled=False
        )


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


class AveragedWeights:
    """A network with the average of the weights that another one has had; to update every step.

    It begins with the weights that are there. After step t they count for d and those of the step
    for 1 - d, where d is (1 + t) / (10 + t), but at most the decay. Statistics of normalisations
    are not averaged: they are those of the network now. Everything is counted on the device, so
    that nothing waits for it and steps can be recorded.
    """

    def __init__(self, network: nn.Module, decay: float) -> None:
        self._now, self._decay = network, decay
        self._average = copy.deepcopy(network).eval().requires_grad_(False)
        self._steps = torch.zeros((), device=next(network.parameters()).device)

    @torch.no_grad()
    def update(self) -> None:
        """Count the weights that the network has now."""
        self._steps += 1
        kept = ((1 + self._steps) / (10 + self._steps)).clamp(max=self._decay)
        now: list[Tensor] = list(self._now.parameters())
        so_far: list[Tensor] = list(self._average.parameters())
        change = torch._foreach_sub(now, so_far)
        torch._foreach_mul_(change, 1 - kept)
        torch._foreach_add_(so_far, change)

    def network(self) -> nn.Module:
        """The averaged network, to evaluate."""
        for average, now in zip(self._average.buffers(), self._now.buffers(), strict=True):
            average.copy_(now)
        return self._average


def optimiser_of(network: nn.Module, protocol: Protocol) -> tuple[torch.optim.Adam, StepLR]:
    """The optimiser, and what lowers its learning rate after epochs."""
    parameters = list(network.parameters())
    on_card = parameters[0].is_cuda
    # A recorded step reads the rate where it lies, so it has to lie on the card.
    rate = torch.tensor(protocol.learning_rate, device=parameters[0].device)
    optimiser = torch.optim.Adam(
        parameters, lr=rate if on_card else protocol.learning_rate, capturable=on_card
    )
    return optimiser, StepLR(optimiser, protocol.every, protocol.factor)


def epochs(network: nn.Module, train: Examples, protocol: Protocol) -> Iterator[nn.Module]:
    """Train a network; after each epoch, one with its averaged weights."""
    device = train.labels.device
    optimiser, schedule = optimiser_of(network, protocol)
    average = AveragedWeights(network, protocol.decay)

    def plain_step(images: Tensor, labels: Tensor) -> None:
        with protocol.precision(device):
            loss = nn.functional.cross_entropy(network(images), labels)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        average.update()

    recorded = device.type == "cuda"
    step = RecordedStep(plain_step, protocol.batch) if recorded else plain_step
    for _ in range(protocol.epochs):
        network.train()
        order = torch.randperm(len(train.labels)).to(device)
        for part in order.split(protocol.batch):
            step(train.images[part], train.labels[part])
        schedule.step()
        yield average.network()


@torch.inference_mode()
def share_right(network: nn.Module, on: Examples, protocol: Protocol) -> float:
    """The share of images that a network gives to their class."""
    with protocol.precision(on.images.device):
        guesses = [network(part).argmax(dim=1) for part in on.images.split(_AT_ONCE)]
    return (torch.cat(guesses) == on.labels).double().mean().item()


def picked(
    after_each: Iterator[nn.Module], validation: Examples, test: Examples, protocol: Protocol
) -> float:
    """The accuracy on test images after the epoch that is best on others; after the last of such.

    Args:
        after_each: the network after each epoch.
        validation: to choose by.
        test: to report of.
        protocol: in what precision.
    """
    best, reported = -1.0, 0.0
    for network in after_each:
        reached = share_right(network, validation, protocol)
        if reached >= best:
            best, reported = reached, share_right(network, test, protocol)
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
        return picked(epochs(network, learned, protocol), chosen, told, protocol)
