"""How frequent classes are: by noisy counts, and by noisy sums of their pixels."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Final

import numpy as np
import pytest
from numpy.typing import NDArray

from dpntk.common.features.pixels import PixelFeatures
from dpntk.common.schema.image import ImageSchema
from dpntk.common.schema.origin import Origin
from dpntk.embed import Embedding
from dpntk.embed.exact.grid import Grid
from dpntk.embed.sums.accumulate import ClassSums
from dpntk.generate import TrainingSettings
from dpntk.generate.images.estimation.class_shares import posterior_shares
from dpntk.generate.images.pipeline import fit_images
from dpntk.release import PrivacyParameters, Release, open_release, own_key
from dpntk.release.publishing.pipeline import unrecorded_release, write_release

SIDE, RECORDS = 12, 1_000
SHARES: Final = np.array([0.6, 0.25, 0.1, 0.05])


@cache
def exact(*brightness: float) -> tuple[Release, NDArray[np.float64]]:
    """A release of white images with a dark square each, and its matrix before there was noise.

    Args:
        brightness: of each class, by which its features are multiplied.
    """
    random = np.random.default_rng(0)
    labels = np.repeat(np.arange(len(SHARES)), (SHARES * RECORDS).round().astype(int))
    images = np.full((RECORDS, SIDE, SIDE), 230, dtype=np.uint8)
    for image, label in zip(images, labels, strict=True):
        row, column = 2 + 4 * (label // 2), 2 + 4 * (label % 2)
        image[row : row + 4, column : column + 4] = 60
        image += random.integers(0, 20, image.shape, dtype=np.uint8)
    feature_map, grid = PixelFeatures(SIDE**2, 255), Grid.for_capacity(255, 2**20)
    sums = ClassSums(feature_map, len(SHARES), grid)
    for start in range(0, RECORDS, sums.chunk_size):
        some = slice(start, start + sums.chunk_size)
        sums.add(images.reshape(RECORDS, -1)[some], labels[some])
    schema = ImageSchema(SIDE, tuple("0123"), Origin.DECLARED, Origin.DECLARED)
    embedding = Embedding(sums.sums, sums.counts, schema, feature_map, grid)
    made = unrecorded_release(embedding, PrivacyParameters(1.0))
    return made, sums.sums * (grid.unit / RECORDS) * np.array(brightness)


def noisy(seed: int, *brightness: float, counts: float = 1.0) -> Release:
    """With noise that has a seed.

    Args:
        seed: of the noise.
        brightness: see `exact`.
        counts: what the noise of class counts is multiplied by.
    """
    made, matrix = exact(*brightness or [1.0] * 4)
    random, noise = np.random.default_rng(seed), made.noise_per_coordinate
    weight = made.guarantee.count_weight / counts
    shares = (SHARES + random.standard_normal(4) * noise / weight).clip(1 / RECORDS)
    return replace(
        made,
        embedding=(matrix + random.standard_normal(matrix.shape) * noise).astype(np.float32),
        class_weights=shares / shares.sum(),
        guarantee=replace(made.guarantee, count_weight=weight),
    )


def off(shares: NDArray[np.float64]) -> float:
    """By how much shares are off, relative to what they are."""
    return float(np.sqrt(np.mean(np.square(shares / SHARES - 1))))


def test_pixels_know_better_than_counts_how_frequent_classes_are() -> None:
    """White grounds are equally bright in all classes, and their sums have less noise."""
    releases = [noisy(seed) for seed in range(20)]
    by_counts = np.mean([off(release.shrunk_shares) for release in releases])
    likely = [posterior_shares(release) for release in releases]
    assert np.mean([off(shares) for shares in likely]) < 0.5 * by_counts
    assert all(shares.min() > 0 for shares in likely)
    assert all(shares.sum() == pytest.approx(1) for shares in likely)


def test_records_are_drawn_from_classes_as_frequent_as_pixels_say(tmp_path: Path) -> None:
    by_counts, drawn = [], []
    for seed in range(8):
        write_release(release := noisy(seed), tmp_path / f"{seed}.h5", own_key())
        opened = open_release(tmp_path / f"{seed}.h5")
        _, generator = fit_images(opened, TrainingSettings(steps=1))
        _, labels = generator.sample(5_000, seed)
        by_counts.append(off(release.shrunk_shares))
        drawn.append(off(np.bincount(labels, minlength=4) / 5_000))
    assert np.mean(drawn) < 0.5 * np.mean(by_counts)


def test_classes_that_are_not_equally_bright_are_counted() -> None:
    """By how much they differ is learnt from a release whose counts are known well."""
    unlike = (0.5, 1.5, 0.6, 1.4)
    for seed in range(5):
        release = noisy(seed, *unlike, counts=0.05)
        shares = posterior_shares(release)
        assert np.abs(shares - release.class_weights).max() < 0.01
        # Beside the same pixels, counts that say nothing leave the shares to these.
        drowned = posterior_shares(noisy(seed, *unlike, counts=100.0))
        assert np.abs(drowned - SHARES * unlike / (SHARES @ unlike)).max() < 0.1


def test_declared_shares_and_those_of_no_noise_stay() -> None:
    release = noisy(0)
    declared = replace(release, guarantee=replace(release.guarantee, count_weight=0.0))
    assert (posterior_shares(declared) == release.class_weights).all()
    exactly = replace(release, guarantee=replace(release.guarantee, sigma=0.0))
    assert (posterior_shares(exactly) == release.class_weights).all()


def test_pixels_that_are_lost_in_noise_leave_the_counts() -> None:
    release = noisy(0)
    dark = replace(release, embedding=-np.abs(release.embedding))
    assert (posterior_shares(dark) == dark.shrunk_shares).all()
