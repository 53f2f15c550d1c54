"""The benchmark of few images: what is compared, and its section."""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_digits

from benchmarks.images import Run
from benchmarks.small_images import OWN_SCORE, class_means, own_score, section, some_of
from dpntk.common.adjacency import Adjacency
from dpntk.common.schema.classes import numbered
from dpntk.evaluate.images.records import LabelledImages

DIGITS = load_digits()
RECORDS = LabelledImages(
    np.rint(DIGITS.data / 16 * 255).astype(np.uint8), DIGITS.target, numbered(10), {}
)


def run(method: str, epsilon: float, seed: int = 0) -> Run:
    return Run("digits, 1,000", epsilon, Adjacency.REPLACE_ONE, method, seed)


def test_some_records_are_taken_by_the_seed() -> None:
    first, other, again = (some_of(RECORDS, 1000, seed) for seed in (0, 1, 0))
    assert len(first) == 1000
    assert np.array_equal(first.pixels, again.pixels)
    assert not np.array_equal(first.labels, other.labels)


def test_class_means_are_those_of_the_records_where_there_is_little_noise() -> None:
    made = class_means(RECORDS, run("class means", 1000.0))
    unit = RECORDS.images() / np.linalg.norm(RECORDS.images(), axis=1, keepdims=True)
    for label in range(10):
        true = unit[RECORDS.labels == label].mean(axis=0)
        found = made.images()[made.labels == label].mean(axis=0)
        assert np.corrcoef(true, found)[0, 1] > 0.97


def test_a_release_knows_its_classes_as_far_as_its_noise_lets_it() -> None:
    much, little = (own_score(RECORDS, RECORDS, run(OWN_SCORE, eps)) for eps in (0.05, 100.0))
    assert much < 0.5
    assert little > 0.85


def test_the_section_has_means_over_seeds_and_one_figure_of_the_diagnosis() -> None:
    figures = {"logistic regression": 0.5, "MLP": 0.6, "CNN": 0.7}
    more = {name: value + 0.1 for name, value in figures.items()}
    text = section(
        {
            run(OWN_SCORE, 1.0).key: {OWN_SCORE: 0.9},
            run("default", 1.0).key: figures,
            run("default", 1.0, 1).key: more,
        }
    )
    assert text.splitlines()[-2:] == [
        "| digits, 1,000 | 1 | default | 2 | 0.550 | 0.650 | 0.750 |",
        "| digits, 1,000 | 1 | own score | 1 | 0.900 |  |  |",
    ]
