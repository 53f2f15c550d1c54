"""Figures that are possible, and contradict each other: a reader refuses the release."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpntk.common.adjacency import Adjacency
from dpntk.common.errors import FormatError
from dpntk.common.schema.image import ImageSchema
from dpntk.common.schema.origin import Origin
from dpntk.embed import Embedding
from dpntk.release import ClassCounts, PrivacyParameters, Release, open_release, own_key
from dpntk.release.publishing.pipeline import unrecorded_release, write_release

EXCHANGING = PrivacyParameters(1.0, 1e-3)
ADDING = PrivacyParameters(1.0, 1e-3, Adjacency.ADD_REMOVE)
UNIFORM = PrivacyParameters(1.0, 1e-3, class_counts=ClassCounts.UNIFORM)
EXACT = PrivacyParameters(math.inf, not_private=True)


def refusal(forged: Release, tmp_path: Path) -> str:
    write_release(forged, tmp_path / "release.h5", own_key())
    with pytest.raises(FormatError) as caught:
        open_release(tmp_path / "release.h5")
    return str(caught.value)


@pytest.mark.parametrize(
    ("parameters", "figures", "words"),
    [
        (ADDING, {"epsilon_replace_one": 1.0}, "epsilon under replace-one does not follow"),
        (ADDING, {"count_weight": 0.0, "sensitivity": 1.0}, "class counts need a weight"),
        (ADDING, {"total_adjacency": Adjacency.REPLACE_ONE}, "no other total than itself"),
        (EXCHANGING, {"total_releases": 2, "total_epsilon": 0.9}, "total epsilon is below"),
        (EXCHANGING, {"delta": 0.5}, "delta is out of range"),
        (EXACT, {"noise_multiplier": 1.0}, "noise and epsilon contradict each other"),
        (EXACT, {"sigma": 1.0}, "noise and epsilon contradict each other"),
        (EXACT, {"total_epsilon": 1.0}, "noise and epsilon contradict each other"),
    ],
)
def test_figures_that_contradict_each_other_are_refused(
    embedding: Embedding,
    tmp_path: Path,
    parameters: PrivacyParameters,
    figures: dict[str, Any],
    words: str,
) -> None:
    made = unrecorded_release(embedding, parameters)
    assert words in refusal(replace(made, guarantee=replace(made.guarantee, **figures)), tmp_path)


def test_a_sensitivity_is_a_whole_number_of_grid_units(
    embedding: Embedding, tmp_path: Path
) -> None:
    made = unrecorded_release(embedding, EXCHANGING)
    between = made.guarantee.sensitivity + made.guarantee.grid / 2
    forged = replace(made, guarantee=replace(made.guarantee, sensitivity=between))
    assert "the sensitivity is not a whole number" in refusal(forged, tmp_path)


def test_classes_without_counts_are_equally_frequent(embedding: Embedding, tmp_path: Path) -> None:
    made = unrecorded_release(embedding, UNIFORM)
    forged = replace(made, class_weights=np.array([0.2, 0.3, 0.5]))
    assert "follow from no counts that were released" in refusal(forged, tmp_path)


def test_records_are_of_the_size_that_the_feature_map_takes(
    embedding: Embedding, tmp_path: Path
) -> None:
    made = unrecorded_release(embedding, EXCHANGING)
    schema = ImageSchema(9, made.schema.classes, Origin.FORMAT, Origin.DECLARED)
    assert "schema and feature map disagree" in refusal(replace(made, schema=schema), tmp_path)
