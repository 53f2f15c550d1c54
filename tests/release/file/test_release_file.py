"""The release file: what is in it, who can open it, and what is refused."""

from __future__ import annotations

import io
import json
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from dpntk.common.adjacency import Adjacency
from dpntk.common.errors import ReleaseError
from dpntk.common.features.base import weights_digest
from dpntk.common.storage.container import EMBEDDING_MAGIC, build
from dpntk.embed import Embedding, save_embedding
from dpntk.release import ClassCounts, Guarantee, PrivacyParameters, Release, open_release, own_key
from dpntk.release.file.format import ATTRIBUTES
from dpntk.release.file.writer import serialise
from dpntk.release.publishing import pipeline
from dpntk.release.publishing.pipeline import unrecorded_release, write_release


@pytest.fixture
def made(embedding: Embedding) -> Release:
    return unrecorded_release(embedding, PrivacyParameters(epsilon=2.0, delta=1e-6))


VARIANTS: list[dict[str, Any]] = [
    {"adjacency": Adjacency.REPLACE_ONE},
    {"adjacency": Adjacency.ADD_REMOVE},
    {"class_counts": ClassCounts.UNIFORM},
]


@pytest.fixture
def path(made: Release, tmp_path: Path) -> Path:
    where = tmp_path / "release.h5"
    write_release(made, where, own_key())
    return where


@pytest.mark.parametrize("options", VARIANTS)
def test_reading_gives_back_what_was_written(
    embedding: Embedding, tmp_path: Path, options: dict[str, Any]
) -> None:
    made = unrecorded_release(embedding, PrivacyParameters(epsilon=2.0, **options))
    write_release(made, tmp_path / "release.h5", own_key())
    opened = open_release(tmp_path / "release.h5")
    again = opened.release
    for field in fields(Guarantee):
        assert getattr(again.guarantee, field.name) == getattr(made.guarantee, field.name)
    assert np.array_equal(again.embedding, made.embedding)
    assert np.array_equal(again.class_weights, made.class_weights)
    assert weights_digest(again.feature_map) == weights_digest(made.feature_map)
    assert again.schema == made.schema
    assert (again.release_id, again.created, again.statement, again.dpntk_version) == (
        made.release_id, made.created, made.statement, made.dpntk_version,
    )  # fmt: skip
    assert opened.signed_by.own


def test_noisy_shares_that_are_equal_by_chance_are_not_said_to_be_declared(
    made: Release, tmp_path: Path
) -> None:
    """Few records and much noise make every count that of a single record, or that of all."""
    made = replace(made, class_weights=np.full(3, 1 / 3))
    write_release(made, tmp_path / "release.h5", own_key())
    again = open_release(tmp_path / "release.h5").release
    assert again.statement == made.statement
    assert "equally frequent" not in again.statement


def test_where_a_file_cannot_tell_noisy_shares_from_declared_ones_it_promises_less(
    embedding: Embedding, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "_shares", lambda *_: np.full(3, 1 / 3))
    parameters = PrivacyParameters(epsilon=2.0, adjacency=Adjacency.ADD_REMOVE)
    made = unrecorded_release(embedding, parameters)
    write_release(made, tmp_path / "release.h5", own_key())
    assert open_release(tmp_path / "release.h5").release.statement == made.statement
    assert "that all classes are equally frequent" in made.statement


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
    assert path.read_bytes().startswith(b"dpntk release 1\n-----BEGIN SSH SIGNATURE-----\n")


def test_equal_releases_are_equal_bytes(made: Release) -> None:
    assert bytes(serialise(made)) == bytes(serialise(made))


def test_what_was_in_memory_before_is_not_in_the_file(made: Release) -> None:
    """HDF5 keeps blocks that it has read, and writes blocks that it has not filled."""
    clean = bytes(serialise(made))
    for times in (1, 50, 490):
        secret = "SENSITIVE" * times

        def fill(file: h5py.File, secret: str = secret) -> None:
            file.attrs["ledger"] = secret
            for number in range(20):
                file.attrs[f"SENSITIVE{number}"] = secret[: 9 * number]
                values = np.frombuffer(secret.encode(), np.uint8)
                file.create_dataset(f"SENSITIVE/{number}", data=values)

        with h5py.File(io.BytesIO(build(EMBEDDING_MAGIC, fill)), "r") as file:
            read = [file.attrs[name] for name in file.attrs]
            read += [dataset[...] for dataset in file["SENSITIVE"].values()]
        assert len(read) == 41
        del read
        assert bytes(serialise(made)) == clean
    assert b"SENSITIVE" not in clean


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


def test_an_embedding_is_refused_as_sensitive(embedding: Embedding, tmp_path: Path) -> None:
    save_embedding(embedding, tmp_path / "embedding.h5")
    with pytest.raises(ReleaseError, match="is an embedding, not a release: it is SENSITIVE"):
        open_release(tmp_path / "embedding.h5")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ReleaseError, match=r"no\.h5: there is no such file"):
        open_release(tmp_path / "no.h5")
