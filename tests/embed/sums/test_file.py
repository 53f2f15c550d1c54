"""The embedding file: sensitive, whole, and refused when it is not."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest

from dpntk.common.errors import EmbeddingError
from dpntk.common.features.base import weights_digest
from dpntk.embed import Embedding, load_embedding, save_embedding


@pytest.fixture
def saved(embedding: Embedding, tmp_path: Path) -> Path:
    path = tmp_path / "embedding.h5"
    save_embedding(embedding, path)
    return path


def test_reading_gives_back_what_was_written(embedding: Embedding, saved: Path) -> None:
    again = load_embedding(saved)

    assert np.array_equal(again.sums, embedding.sums)
    assert np.array_equal(again.counts, embedding.counts)
    assert again.schema == embedding.schema
    assert again.grid == embedding.grid
    assert again.plan_digest == embedding.plan_digest
    assert weights_digest(again.feature_map) == weights_digest(embedding.feature_map)


def test_only_its_owner_can_read_it_and_it_says_that_it_is_sensitive(saved: Path) -> None:
    assert saved.stat().st_mode & 0o777 == 0o600
    assert b"SENSITIVE" in saved.read_bytes()[:512].splitlines()[0]
    with h5py.File(saved) as file:
        assert next(iter(file.attrs)) == "SENSITIVE"


@pytest.mark.parametrize("place", [0.1, 0.5, 0.9])
def test_a_file_cut_short_is_refused(saved: Path, place: float) -> None:
    content = saved.read_bytes()
    saved.write_bytes(content[: int(place * len(content))])
    with pytest.raises(EmbeddingError, match=r"embedding\.h5: "):
        load_embedding(saved)


def test_a_plan_that_was_changed_is_refused(saved: Path) -> None:
    with h5py.File(saved, "r+") as file:
        plan = str(file.attrs["plan"])
        file.attrs["plan"] = plan.replace('"from-data"', '"declared"').replace(
            '"format"', '"declared"', 1
        )
        file["feature_map/readout"][0] += 2.0**-20
    with pytest.raises(EmbeddingError, match="damaged"):
        load_embedding(saved)


def test_counts_that_do_not_match_are_refused(saved: Path) -> None:
    with h5py.File(saved, "r+") as file:
        file["counts"][0] += 1
    with pytest.raises(EmbeddingError, match="number of records"):
        load_embedding(saved)


def test_other_files_are_refused(tmp_path: Path) -> None:
    other = tmp_path / "other.h5"
    with pytest.raises(EmbeddingError, match="no such file"):
        load_embedding(other)
    other.write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(1000))
    with pytest.raises(EmbeddingError, match="not a dpntk embedding"):
        load_embedding(other)
