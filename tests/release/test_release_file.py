"""The release file: what is in it, who can open it, and what is refused."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from dpntk.common.adjacency import Adjacency
from dpntk.common.container import USER_BLOCK
from dpntk.common.errors import FormatError, ReleaseError
from dpntk.embed import Embedding, save_embedding
from dpntk.release import (
    ClassCounts,
    Guarantee,
    Release,
    Terms,
    open_release,
    release,
    save_release,
)
from dpntk.release.format import ATTRIBUTES
from dpntk.release.writer import serialise


@pytest.fixture
def made(embedding: Embedding) -> Release:
    return release(embedding, Terms(epsilon=2.0, delta=1e-6))


VARIANTS: list[dict[str, Any]] = [
    {"adjacency": Adjacency.REPLACE_ONE},
    {"adjacency": Adjacency.ADD_REMOVE},
    {"class_counts": ClassCounts.UNIFORM},
]


@pytest.fixture
def path(made: Release, tmp_path: Path) -> Path:
    where = tmp_path / "release.h5"
    save_release(made, where)
    return where


@pytest.mark.parametrize("options", VARIANTS)
def test_reading_gives_back_what_was_written(
    embedding: Embedding, tmp_path: Path, options: dict[str, Any]
) -> None:
    made = release(embedding, Terms(epsilon=2.0, **options))
    save_release(made, tmp_path / "release.h5")
    opened = open_release(tmp_path / "release.h5")
    again = opened.release
    for field in fields(Guarantee):
        assert getattr(again.guarantee, field.name) == getattr(made.guarantee, field.name)
    assert np.array_equal(again.embedding, made.embedding)
    assert np.array_equal(again.class_weights, made.class_weights)
    assert again.feature_map.digest() == made.feature_map.digest()
    assert again.schema == made.schema
    assert (again.release_id, again.created, again.statement, again.dpntk_version) == (
        made.release_id, made.created, made.statement, made.dpntk_version,
    )  # fmt: skip
    assert opened.origin.startswith("unsigned")


def test_any_hdf5_reader_opens_it(made: Release, path: Path) -> None:
    with h5py.File(path) as file:
        assert file.userblock_size == 512
        assert file.attrs["epsilon"] == 2.0
        assert file.attrs["delta"] == 1e-6
        assert file.attrs["adjacency"] == "replace-one"
        assert file.attrs["m"] == 200
        assert file["embedding"].shape == (made.feature_map.dimension, 3)
        assert file["embedding"].dtype == np.float32
        assert json.loads(file.attrs["schema"])["classes"] == ["a", "b", "c"]
    assert path.read_bytes().startswith(b"dpntk release 1\n\0")


def test_equal_releases_are_equal_bytes(made: Release) -> None:
    assert bytes(serialise(made)) == bytes(serialise(made))


def test_nothing_exact_is_in_the_file(embedding: Embedding, made: Release, path: Path) -> None:
    """Neither a class count nor a column of sums, in any of the types that the file uses."""
    content = path.read_bytes()
    shares = embedding.counts / embedding.records
    sums = embedding.sums[:, 0] * embedding.grid.unit
    exact = [embedding.counts, shares, embedding.sums[-4:, 0], sums[-4:], sums[-4:] / 200]
    for values in exact:
        kinds = [np.int64] if values.dtype == np.int64 else [np.float64, np.float32]
        for kind in kinds:
            assert np.ascontiguousarray(values.astype(kind)).tobytes() not in content
    assert set(ATTRIBUTES) & {"records", "counts", "class_counts"} == set()


def test_the_statement_says_what_is_covered_and_what_is_not(made: Release) -> None:
    for words in ("(2, 1e-06)", "one record", "number of records is public", "Not covered"):
        assert words in made.statement


def test_an_embedding_is_refused_as_sensitive(embedding: Embedding, tmp_path: Path) -> None:
    save_embedding(embedding, tmp_path / "embedding.h5")
    with pytest.raises(ReleaseError, match="is an embedding, not a release: it is SENSITIVE"):
        open_release(tmp_path / "embedding.h5")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ReleaseError, match=r"no\.h5: there is no such file"):
        open_release(tmp_path / "no.h5")


def test_the_user_block_must_be_canonical(path: Path) -> None:
    content = bytearray(path.read_bytes())
    for position in (3, 100, USER_BLOCK - 1):
        changed = content.copy()
        changed[position] ^= 1
        path.write_bytes(changed)
        with pytest.raises(FormatError):
            open_release(path)


@pytest.mark.parametrize("kept", [0, 100, 512, 600, 3000, -1])
def test_a_file_cut_short_is_refused(path: Path, kept: int) -> None:
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(ReleaseError):
        open_release(path)


def add_group(file: h5py.File) -> None:
    file.create_group("extra")


def add_attribute(file: h5py.File) -> None:
    file.attrs["extra"] = 1


def drop_attribute(file: h5py.File) -> None:
    del file.attrs["sigma"]


def negative_sigma(file: h5py.File) -> None:
    file.attrs["sigma"] = -1.0


def text_epsilon(file: h5py.File) -> None:
    file.attrs["epsilon"] = "1"


def future(file: h5py.File) -> None:
    file.attrs["format_version"] = np.int64(2)


def other_adjacency(file: h5py.File) -> None:
    file.attrs["adjacency"] = "bounded"


def claims_noisy_total(file: h5py.File) -> None:
    file.attrs["m_is_exact"] = np.int64(0)


def other_shape(file: h5py.File) -> None:
    del file["embedding"]
    file["embedding"] = np.zeros((4, 3), np.float32)


def other_type(file: h5py.File) -> None:
    values = file["embedding"][...].astype(np.float64)
    del file["embedding"]
    file["embedding"] = values


def not_finite(file: h5py.File) -> None:
    file["embedding"][1, 1] = np.nan


def no_shares(file: h5py.File) -> None:
    file["class_weights"][...] = [0.5, 0.6, 0.7]


def compressed(file: h5py.File) -> None:
    values = file["embedding"][...]
    del file["embedding"]
    file.create_dataset("embedding", data=values, compression="gzip")


def soft_link(file: h5py.File) -> None:
    file.move("class_weights", "elsewhere")
    file["class_weights"] = h5py.SoftLink("/elsewhere")
    del file["feature_map"]
    file.move("elsewhere", "feature_map")


def external(file: h5py.File) -> None:
    shape = file["embedding"].shape
    del file["embedding"]
    file.create_dataset(
        "embedding", shape, np.float32, external=[("/etc/passwd", 0, h5py.h5f.UNLIMITED)]
    )


@pytest.mark.parametrize(
    "change",
    [
        add_group, add_attribute, drop_attribute, negative_sigma, text_epsilon, future,
        other_adjacency, claims_noisy_total, other_shape, other_type, not_finite, no_shares,
        compressed, soft_link, external,
    ],
)  # fmt: skip
def test_contents_off_the_list_are_refused(path: Path, change: Callable[[h5py.File], None]) -> None:
    buffer = io.BytesIO(path.read_bytes())
    with h5py.File(buffer, "r+") as file:
        change(file)
    path.write_bytes(buffer.getvalue())
    with pytest.raises(FormatError, match=r"release\.h5: "):
        open_release(path)
