"""The file of a distilled set: what is written is read, and what contradicts itself is refused."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import yaml

from dpntk.common.adjacency import Adjacency
from dpntk.common.errors import FormatError, SignatureError
from dpntk.common.schema.columns.column import Column
from dpntk.common.schema.image import ImageSchema
from dpntk.common.schema.origin import Origin
from dpntk.common.schema.privacy_unit import PrivacyUnit
from dpntk.common.schema.table import TableSchema
from dpntk.release import Acceptance, Release, open_any, open_release, own_key
from dpntk.release.file.distilled import DistilledGuarantee, DistilledRelease
from dpntk.release.file.distilled_codec import save_distilled, serialise_distilled
from dpntk.release.file.format import DISTILLED_ATTRIBUTES
from dpntk.release.file.parser import read_in_child
from dpntk.release.file.statement import distilled_statement
from dpntk.release.mechanism.subsampled_gaussian import SampledGaussian, sampled_epsilon
from dpntk.release.publishing.pipeline import write_release
from tests.conftest import Command

RUN = SampledGaussian(0.1, 2.0, 10)
GRID = 0.5 / 2**40
UNSIGNED = Acceptance(allow_unsigned=True)


def make_distilled() -> DistilledRelease:
    """A release of 4 points of 8x8 pixels in 2 classes."""
    schema = ImageSchema(8, ("a", "b"), Origin.FORMAT, Origin.DECLARED)
    epsilon = sampled_epsilon([RUN], 1e-5)
    guarantee = DistilledGuarantee(
        epsilon=epsilon, delta=1e-5, adjacency=Adjacency.ADD_REMOVE,
        noise_multiplier=RUN.noise_multiplier, sampling_prob=RUN.sampling_prob, steps=RUN.steps,
        clip_norm=0.5, grid=GRID, sigma=(2**41 + 1) * GRID, mechanism="m", accountant="a",
        total_epsilon=epsilon, total_adjacency=Adjacency.ADD_REMOVE, total_releases=1,
    )  # fmt: skip
    random = np.random.default_rng(0)
    return DistilledRelease(
        points=random.normal(size=(4, 64)).astype(np.float32), labels=np.array([0, 1, 0, 1]),
        bias_variance=0.01, centre=3, ridge=1e-3, settings={"origin": "test"}, schema=schema,
        guarantee=guarantee, release_id="0" * 32, created="2024-01-01T00:00:00+00:00",
        dpntk_version="0", statement=distilled_statement(guarantee, schema),
    )  # fmt: skip


@pytest.fixture
def made() -> DistilledRelease:
    return make_distilled()


def test_reading_gives_back_what_was_written(made: DistilledRelease, tmp_path: Path) -> None:
    path = tmp_path / "release.h5"
    save_distilled(made, path, own_key())
    opened = open_any(path)
    again = opened.release
    assert isinstance(again, DistilledRelease)
    for name in ("guarantee", "schema", "settings", "statement", "centre", "ridge", "release_id"):
        assert getattr(again, name) == getattr(made, name)
    assert np.array_equal(again.points, made.points)
    assert np.array_equal(again.labels, made.labels)
    assert bytes(serialise_distilled(made)) == bytes(serialise_distilled(made))
    with pytest.raises(FormatError, match="is a distilled set"):
        open_release(path)


def test_a_child_process_reads_the_same(made: DistilledRelease) -> None:
    body = read_in_child(bytes(serialise_distilled(made)))
    assert body.distilled
    assert set(body.attributes) == set(DISTILLED_ATTRIBUTES)
    assert np.array_equal(body.arrays["points"], made.points)


@pytest.mark.parametrize("own", list(Adjacency))
def test_a_total_may_hold_under_replace_one(
    made: DistilledRelease, tmp_path: Path, own: Adjacency
) -> None:
    epsilon = sampled_epsilon([RUN], 1e-5, adjacency=own)
    promise = replace(
        made.guarantee, adjacency=own, epsilon=epsilon, total_epsilon=9.0, total_releases=2,
        total_adjacency=Adjacency.REPLACE_ONE,
    )  # fmt: skip
    save_distilled(replace(made, guarantee=promise), tmp_path / "release.h5", own_key())
    again = open_any(tmp_path / "release.h5").release
    assert again.guarantee == promise
    assert "together they have epsilon 9 at delta 1e-05 (replace-one)" in again.statement
    with h5py.File(tmp_path / "release.h5") as file:  # as earlier versions of dpntk wrote it
        assert ("total_adjacency" in file.attrs) == (own is Adjacency.ADD_REMOVE)


def test_other_releases_are_read_as_before(small_release: Release, tmp_path: Path) -> None:
    write_release(small_release, tmp_path / "release.h5", own_key())
    assert open_any(tmp_path / "release.h5").release.schema == small_release.schema


def test_every_flipped_byte_is_refused(made: DistilledRelease, tmp_path: Path) -> None:
    path = tmp_path / "release.h5"
    save_distilled(made, path, own_key())
    content = path.read_bytes()
    for position in range(0, len(content), 7):
        changed = bytearray(content)
        changed[position] ^= 1
        path.write_bytes(changed)
        with pytest.raises((FormatError, SignatureError)):
            open_any(path)


def test_every_attribute_is_described() -> None:
    root = Path(__file__).parents[3]
    text = (root / "docs/reference/release-format.md").read_text().split("## A distilled set")[1]
    assert [name for name in DISTILLED_ATTRIBUTES if f"`{name}`" not in text] == []


Edit = Callable[[h5py.File], object]


def stretched(file: h5py.File) -> None:
    del file["points"]
    file["points"] = np.zeros((4, 63), dtype=np.float32)


def compressed(file: h5py.File) -> None:
    points = file["points"][...]
    del file["points"]
    file.create_dataset("points", data=points, compression="gzip")


def linked(file: h5py.File) -> None:
    del file["labels"]
    file["labels"] = h5py.ExternalLink("/etc/passwd", "/labels")


def set_to(**values: Any) -> Edit:  # noqa: ANN401
    def edit(file: h5py.File) -> None:
        for name, value in values.items():
            old = file.attrs[name]
            file.attrs[name] = type(old)(value) if isinstance(old, np.generic) else value

    return edit


def a_little_less(file: h5py.File) -> None:
    for name in ("epsilon", "total_epsilon"):
        file.attrs[name] *= 0.999


def with_total_under(total: str, **values: Any) -> Edit:  # noqa: ANN401
    def edit(file: h5py.File) -> None:
        set_to(**{"total_releases": 2, **values})(file)
        file.attrs["total_adjacency"] = total

    return edit


def labelled(*labels: int) -> Edit:
    def edit(file: h5py.File) -> None:
        file["labels"][...] = np.array(labels)

    return edit


TAMPERED: list[tuple[Edit, str]] = [
    (set_to(epsilon=0.01, total_epsilon=0.01), "epsilon does not follow"),
    (set_to(epsilon=5.0, total_epsilon=5.0), "epsilon does not follow"),
    (a_little_less, "epsilon does not follow"),
    (set_to(delta=1e-9), "epsilon does not follow"),
    (set_to(rate=0.2), "epsilon does not follow"),
    (set_to(steps=20), "epsilon does not follow"),
    (set_to(noise_multiplier=1.0), "epsilon does not follow"),
    (set_to(noise_multiplier=3.0), "sigma is smaller"),
    (set_to(sigma=0.5), "sigma is smaller"),
    (set_to(sigma=(2**41 - 2**20) * GRID), "sigma is smaller"),
    (set_to(sigma=(2**41 + 1.5) * GRID), "sigma"),
    (set_to(clip_norm=1.0), "clip norm and grid"),
    (set_to(steps=2**40), "steps"),
    (set_to(rate=2.0), "sampling rate"),
    (set_to(total_releases=0), "number of releases"),
    (set_to(total_epsilon=9.0), "total epsilon"),
    (set_to(total_epsilon=0.001, total_releases=2), "total epsilon"),
    (set_to(adjacency="replace-one"), "epsilon does not follow"),
    (with_total_under("replace-one", total_releases=1), "adjacency of the total"),
    (with_total_under("add-remove"), "adjacency of the total"),
    (with_total_under("add-remove", adjacency="replace-one"), "adjacency of the total"),
    (with_total_under("neighbours"), "adjacency"),
    (set_to(adjacency="neighbours"), "adjacency"),
    (set_to(kind="embedding"), "not what a distilled set"),
    (set_to(settings="[]"), "not what a distilled set"),
    (set_to(schema="{}"), "damaged"),
    (set_to(centre=300), "centre"),
    (set_to(ridge=0.0), "ridge"),
    (labelled(0, 1, 0, 0), "each class"),
    (labelled(0, 1, 0, 7), "out of range"),
    (stretched, "schema's size"),
    (compressed, "one plain piece"),
    (linked, "is a link"),
    (lambda file: file.create_group("more"), "groups and datasets"),
    (lambda file: file.attrs.create("more", 1), "attributes"),
    (lambda file: file["points"].attrs.create("more", 1), "has attributes"),
]


@pytest.mark.parametrize(("edit", "words"), TAMPERED)
def test_what_contradicts_itself_is_refused(
    made: DistilledRelease, tmp_path: Path, edit: Edit, words: str
) -> None:
    buffer = io.BytesIO(bytes(serialise_distilled(made)))
    with h5py.File(buffer, "r+", libver=("earliest", "v110")) as file:
        edit(file)
    path = tmp_path / "release.h5"
    path.write_bytes(buffer.getvalue())
    with pytest.raises(FormatError, match=words):
        open_any(path, UNSIGNED)


@pytest.mark.parametrize("unit", [None, PrivacyUnit("patient", 5)])
def test_its_epsilon_is_of_single_records(
    made: DistilledRelease, tmp_path: Path, unit: PrivacyUnit | None
) -> None:
    columns = (Column.integer("age", 0, 99), Column.boolean("ill", ["no", "yes"]))
    schema = TableSchema(columns, "ill", left_out=("patient",), privacy_unit=unit)
    points = made.points[:, : schema.record_size]
    save_distilled(replace(made, schema=schema, points=points), tmp_path / "release.h5", own_key())
    if unit is None:
        assert open_any(tmp_path / "release.h5").release.schema == schema
    else:
        with pytest.raises(FormatError, match="epsilon is of single records"):
            open_any(tmp_path / "release.h5")


def test_a_claim_a_little_above_what_is_spent_is_honest(
    made: DistilledRelease, tmp_path: Path
) -> None:
    rounded = round(made.guarantee.epsilon * 1.004, 3)
    promise = replace(made.guarantee, epsilon=rounded, total_epsilon=rounded)
    save_distilled(replace(made, guarantee=promise), tmp_path / "release.h5", own_key())
    assert open_any(tmp_path / "release.h5").release.guarantee.epsilon == rounded


def test_the_label_is_json(dpntk: Command, made: DistilledRelease, tmp_path: Path) -> None:
    save_distilled(made, tmp_path / "release.h5", own_key())
    label = json.loads(dpntk("inspect", "--json").stdout)
    assert label["guarantee"]["epsilon"] == made.guarantee.epsilon
    assert label["kind"] == "distilled"


def test_the_registry_gets_an_entry(dpntk: Command, made: DistilledRelease, tmp_path: Path) -> None:
    save_distilled(made, tmp_path / "release.h5", own_key())
    entry = yaml.safe_load(dpntk("inspect", "--registry").stdout)["deployment"]
    assert entry["privacy_loss"]["privacy_parameters"]["epsilon"] == made.guarantee.epsilon
    assert "the sampling rate" in entry["dp_variant"]["unprotected_quantities"]
    assert "10 steps" in entry["implementation"]["mechanisms"]
