"""Classifiers that are trained on synthetic records and tested on real ones.

Their settings are fixed, so that figures of different releases can be compared.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import Tensor, nn

from .records import LabelledImages

_MLP_STEPS: Final = 7500
_MLP_BATCH: Final = 200
_CNN_STEPS: Final = 2000
_CNN_BATCH: Final = 128
_CNN_RATE: Final = 2e-3
_CHUNK: Final = 1000

LINEAR_DESCRIPTION: Final = (
    "Logistic regression on the metric module's features, standardised; L2 penalty 1, 200 steps."
)
"""Of `linear_on_features`."""


@dataclass(frozen=True)
class ImageClassifier:
    """A kind of classifier of images with its settings.

    Attributes:
        score: takes records to train on, records to test on and a seed; gives the accuracy.
        description: its settings in one sentence, for reports.
    """

    score: Callable[[LabelledImages, LabelledImages, int], float]
    description: str


def _logistic_regression(train: LabelledImages, test: LabelledImages, seed: int) -> float:
    return _fit(LogisticRegression(max_iter=200, random_state=seed), train, test)


def _multilayer_perceptron(train: LabelledImages, test: LabelledImages, seed: int) -> float:
    batch = min(_MLP_BATCH, len(train))
    epochs = math.ceil(_MLP_STEPS * batch / len(train))
    return _fit(MLPClassifier(batch_size=batch, max_iter=epochs, random_state=seed), train, test)


def _convolutional_network(train: LabelledImages, test: LabelledImages, seed: int) -> float:
    def network() -> nn.Sequential:
        return nn.Sequential(
            nn.Conv2d(train.channels, 16, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(32 * (train.side // 4) ** 2, train.classes),
        )

    return _score_usual(network, train, test, seed)


class _Block(nn.Module):
    """Two 3x3 convolutions with a shortcut around them."""

    def __init__(self, before: int, channels: int) -> None:
        super().__init__()
        stride = 1 if before == channels else 2
        self.way = nn.Sequential(
            nn.Conv2d(before, channels, 3, stride, 1, bias=False),
            nn.GroupNorm(8, channels),
            nn.ReLU(),
            nn.Conv2d(channels, channels, 3, 1, 1, bias=False),
            nn.GroupNorm(8, channels),
        )
        self.shortcut = nn.Conv2d(before, channels, 1, stride) if stride > 1 else nn.Identity()

    def forward(self, images: Tensor) -> Tensor:
        return torch.relu(self.way(images) + self.shortcut(images))


def _residual_network(train: LabelledImages, test: LabelledImages, seed: int) -> float:
    def network() -> nn.Sequential:
        return nn.Sequential(
            nn.Conv2d(train.channels, 16, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            *(_Block(before, channels) for before, channels in ((16, 16), (16, 32), (32, 64))),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(64, train.classes),
        )

    return _score_usual(network, train, test, seed)


CLASSIFIERS: Final[dict[str, ImageClassifier]] = {
    "logistic regression": ImageClassifier(
        _logistic_regression,
        "Multinomial logistic regression, L2 penalty 1, at most 200 steps of L-BFGS.",
    ),
    "MLP": ImageClassifier(
        _multilayer_perceptron,
        "One hidden layer of 100 ReLU units, 7,500 steps of Adam with 200 records or convergence.",
    ),
    "CNN": ImageClassifier(
        _convolutional_network,
        "Two 3x3 convolutions of 16 and 32 channels with max pooling, 2,000 steps of Adam.",
    ),
}


IN_COLOUR: Final[dict[str, ImageClassifier]] = {
    "ResNet": ImageClassifier(
        _residual_network,
        "Three residual blocks of 16, 32 and 64 channels behind a convolution, 2,000 steps of "
        "Adam.",
    ),
}
"""Further classifiers, for images in colour."""


def linear_on_features(
    train: tuple[NDArray[np.float64], NDArray[np.int64]],
    test: tuple[NDArray[np.float64], NDArray[np.int64]],
    seed: int,
) -> float:
    """The accuracy of a linear classifier of features: see `LINEAR_DESCRIPTION`.

    Args:
        train: features (n, d) and labels to train on.
        test: features and labels to test on.
        seed: of the solver.
    """
    linear = LogisticRegression(max_iter=200, random_state=seed)
    model = make_pipeline(StandardScaler(), linear)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(*train)
    return _accuracy(model.predict(test[0]), test[1])


def _score_usual(
    make: Callable[[], nn.Module], train: LabelledImages, test: LabelledImages, seed: int
) -> float:
    """`score_network` with the usual number of steps, batch and learning rate."""
    return score_network(
        make, train, test, seed,
        steps=_CNN_STEPS, batch=_CNN_BATCH, learning_rate=_CNN_RATE,
    )  # fmt: skip


def score_network(
    make: Callable[[], nn.Module],
    train: LabelledImages,
    test: LabelledImages,
    seed: int,
    *,
    steps: int,
    batch: int,
    learning_rate: float,
) -> float:
    """Train a network by Adam on the cross entropy of random batches; return its accuracy.

    Args:
        make: makes the network with random weights, from images float32 (b, channels, side, side)
            to (b, classes).
        train: records to train on.
        test: records to test on.
        seed: of weights and batches.
        steps: number of steps.
        batch: records in a step, drawn with replacement.
        learning_rate: of Adam.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = make()
        optimiser = torch.optim.Adam(network.parameters(), lr=learning_rate)
        images = torch.from_numpy(train.images()).view(-1, *train.shape)
        labels = torch.from_numpy(train.labels)
        for _ in range(steps):
            part = torch.randint(len(labels), (batch,))
            loss = nn.functional.cross_entropy(network(images[part]), labels[part])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        held_out = torch.from_numpy(test.images()).view(-1, *train.shape)
        with torch.inference_mode():
            guesses = torch.cat([network(part).argmax(dim=1) for part in held_out.split(_CHUNK)])
    return _accuracy(guesses.numpy(), test.labels)


def _fit(
    model: LogisticRegression | MLPClassifier, train: LabelledImages, test: LabelledImages
) -> float:
    with warnings.catch_warnings():
        # The number of steps is part of the protocol, so stopping there needs no warning.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(train.images(), train.labels)
    return _accuracy(model.predict(test.images()), test.labels)


def _accuracy(guesses: NDArray[Any], labels: NDArray[np.int64]) -> float:
    return float((guesses == labels).mean())
