"""What noise costs the minimiser, where everything is known (Proposition 4.1 of the paper).

The proposition bounds by how much the squared MMD of the private minimiser exceeds that of the
non-private one: by sigma^2 d / m^2 + sigma sqrt(d) / m MMD(P, R), times a constant, where sigma / m
is the noise on an entry of the released mean feature, d its length, and R the best that the
generator can do. Here P is a set of equally frequent images, and the generator makes any mixture,
with weights of either sign, of half of them. Its minimisers are projections, so the excess is the
squared length of the noise's projection on as many directions: in expectation sigma^2 / m^2 times
the number of these images, whatever d and MMD(P, R) are.

For every row, the images are embedded and released several times, and both minimisers are computed.

Run: python -m benchmarks.proposition
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import torch

from dpntk.common.features.ntk.map import TangentFeatures
from dpntk.embed import SourceOptions, TangentOptions, embed
from dpntk.embed.exact.reference import features
from dpntk.release import PrivacyParameters
from dpntk.release.publishing.pipeline import unrecorded_release

IMAGES, SIDE, WIDTH = 60, 8, 8
MADE: Final = IMAGES // 2
"""Of the images, those that the generator mixes."""
DELTA: Final = 1e-5


@dataclass(frozen=True)
class Excess:
    """What was found for one number of records and one epsilon.

    Attributes:
        records: m.
        epsilon: of the releases.
        noise: sigma / m.
        measured: mean over the releases of the excess.
        expected: of it: (sigma / m)^2 times the number of mixed images.
        bound: the proposition's terms, without their constant.
    """

    records: int
    epsilon: float
    noise: float
    measured: float
    expected: float
    bound: float


def excesses(
    copies: tuple[int, ...], epsilons: tuple[float, ...], releases: int
) -> Iterator[Excess]:
    """Measure.

    Args:
        copies: of each image, to be embedded.
        epsilons: of releases.
        releases: of each embedding at each epsilon.
    """
    random = np.random.default_rng(0)
    images = random.integers(0, 256, (IMAGES, SIDE, SIDE), dtype=np.uint8)
    options = TangentOptions(width=WIDTH, front="pixels")
    for many, epsilon in itertools.product(copies, epsilons):
        records = IMAGES * many
        labels = np.zeros(records, dtype=np.int64)
        embedded = embed((np.repeat(images, many, axis=0), labels), options, SourceOptions())
        feature_map = embedded.feature_map
        assert isinstance(feature_map, TangentFeatures)
        values = torch.from_numpy(images.reshape(IMAGES, -1)).double() / 255
        phi = features(feature_map, values).detach().numpy()
        mean, mixed = phi.mean(axis=0), phi[:MADE].T
        best = mixed @ np.linalg.lstsq(mixed, mean, rcond=None)[0]
        distance = float(np.linalg.norm(mean - best))
        found, noise = [], 0.0
        for _ in range(releases):
            made = unrecorded_release(embedded, PrivacyParameters(epsilon, DELTA))
            noise = made.noise_per_coordinate
            noisy = made.embedding[:, 0].astype(np.float64)
            private = mixed @ np.linalg.lstsq(mixed, noisy, rcond=None)[0]
            found.append(float(np.square(mean - private).sum()) - distance**2)
        length = noise * math.sqrt(len(mean))
        yield Excess(
            records, epsilon, noise, float(np.mean(found)), noise**2 * MADE,
            length**2 + length * distance,
        )  # fmt: skip


def main() -> None:
    """Print a table."""
    print("| m | epsilon | sigma / m | excess | expected | bound |")
    print("|---|---|---|---|---|---|")
    for row in excesses((10, 100, 1000), (0.2, 1.0, 10.0), releases=10):
        figures = row.noise, row.measured, row.expected, row.bound
        cells = f"{row.records:,}", f"{row.epsilon:g}", *(f"{figure:.2g}" for figure in figures)
        print(f"| {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
