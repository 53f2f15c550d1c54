"""Small signed releases of every kind, from which records are generated in no time."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dpntk.embed import FeatureOptions, FourierOptions, SourceOptions, TangentOptions, embed
from dpntk.generate.images.estimation.class_means import noisy_means
from dpntk.release import PrivacyParameters, Release, own_key
from dpntk.release.file.distilled_codec import save_distilled
from dpntk.release.publishing.pipeline import unrecorded_release, write_release
from tests.conftest import CLASSES, SIDE, draw_records
from tests.helpers.tables import PEOPLE, people
from tests.release.file.test_distilled_codec import make_distilled

KINDS = ("images", "table", "distilled set")


def write_images(path: Path, count: int = 60) -> Path:
    """An archive of random images in three classes."""
    records, labels = draw_records(count)
    np.savez(path, x=records.reshape(-1, SIDE, SIDE), y=labels)
    return path


def write_rows(path: Path, count: int = 60) -> Path:
    """A table of made-up people."""
    path.write_text(people(count))
    return path


def write_small_release(kind: str, path: Path) -> Path:
    """A release of one of `KINDS`, signed with the key of the test."""
    if kind == "distilled set":
        save_distilled(make_distilled(), path, own_key())
        return path
    if kind == "images":
        data, source = write_images(path.with_suffix(".npz")), SourceOptions(classes=CLASSES)
        features: FeatureOptions = TangentOptions(width="5", front="pixels")
    else:
        data, source = write_rows(path.with_suffix(".csv")), SourceOptions(schema=PEOPLE)
        features = FourierOptions(frequencies=20)  # whose rows are not rearranged
    embedding = embed(data, features, source)
    write_release(unrecorded_release(embedding, PrivacyParameters(20.0, 1e-3)), path, own_key())
    return path


def class_means(release: Release) -> NDArray[np.float32]:
    """The class means of a release as they are, cut to 0..1, float32 (c, record size)."""
    means = noisy_means(release)
    assert means is not None
    return means.values.clip(0.0, 1.0).astype(np.float32)
