"""One way from a release to synthetic records, of whatever kind it is; and what it refuses."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from pyarrow import parquet

from dpntk import ReleasedSynthesizer
from dpntk.common.errors import DpntkError, GeneratorError, OutputError, UntrustedSigner
from dpntk.common.schema.columns.made import MadeColumn
from dpntk.common.schema.image import ImageSchema
from dpntk.generate import (
    PointSettings,
    Synthetic,
    TableSettings,
    TrainingSettings,
    generate,
    load_generator,
    points_to,
    sample_to,
)
from dpntk.generate.defaults import usual_rows
from dpntk.generate.output.provenance import warn_of_noise
from dpntk.generate.pipeline import chosen_settings, default_settings
from dpntk.release import Release, open_any, open_release
from tests.conftest import SIDE, Command, draw_records
from tests.helpers.releases import KINDS, write_small_release
from tests.helpers.tables import PEOPLE, require_valid

SETTINGS = {
    "images": TrainingSettings(steps=2, batch=6),
    "table": TableSettings(steps=2, batch=4),
    "distilled set": None,
}
TRAINED = ("images", "table")
FILE = {"images": "images.npz", "table": "table.parquet"}


@pytest.fixture
def release(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return write_small_release(request.param, tmp_path / "release.h5")


@pytest.mark.parametrize(("release", "kind"), [(k, k) for k in KINDS], indirect=["release"])
def test_a_path_and_an_opened_release_give_the_same_folder(
    release: Path, kind: str, tmp_path: Path
) -> None:
    by_path = generate(str(release), str(tmp_path / "a"), settings=SETTINGS[kind])
    opened = generate(open_any(release), tmp_path / "b", settings=SETTINGS[kind])
    assert by_path.path == tmp_path / "a"
    names = sorted(file.name for file in by_path.path.iterdir())
    assert names == sorted(file.name for file in opened.path.iterdir())
    for name in names:
        assert (by_path.path / name).read_bytes() == (opened.path / name).read_bytes()


@pytest.mark.parametrize(("release", "kind"), [(k, k) for k in TRAINED], indirect=["release"])
def test_what_comes_back_samples_and_knows_how_it_was_trained(
    release: Path, kind: str, tmp_path: Path
) -> None:
    made = generate(release, tmp_path / "a", count=30, settings=SETTINGS[kind])
    assert made.losses[-1].step == 2
    assert made.noise_floor is not None
    assert made.noise_floor > 0
    assert len(repr(made)) < 300
    # The generator in the folder makes the same records, in memory and in another folder.
    generator = load_generator(tmp_path / "a")
    again = sample_to(tmp_path / "b", generator, count=30, seed=0)
    first, second = (tmp_path / name / FILE[kind] for name in "ab")
    assert first.read_bytes() == second.read_bytes()
    assert (again.losses, again.noise_floor) == ((), None)
    if kind == "table":
        rows, others = made.sample(30, seed=0), made.sample(30, seed=1)
        assert isinstance(rows, pd.DataFrame)
        require_valid(parquet.read_table(first), PEOPLE)
        pd.testing.assert_frame_equal(rows, pd.read_parquet(first))
        pd.testing.assert_frame_equal(rows, made.records())
        assert not rows.equals(others)
    else:
        images, labels = made.sample(30, seed=0)
        with np.load(first) as stored:
            assert np.array_equal(stored["x"], images)
            assert np.array_equal(stored["y"], labels)
        assert all(map(np.array_equal, made.records(), (images, labels)))
        assert not np.array_equal(made.sample(30, seed=1)[0], images)


def content(sampled: Any) -> str:  # noqa: ANN401 - arrays or rows
    """All that was sampled, as a text."""
    found: str = sampled[0].tobytes().hex() if isinstance(sampled, tuple) else sampled.to_csv()
    return found


def drawn(folder: Path, kind: str) -> bytes:
    return (folder / FILE[kind]).read_bytes()


@pytest.mark.parametrize(("release", "kind"), [(k, k) for k in TRAINED], indirect=["release"])
def test_of_few_images_it_is_said_how_there_are_more(
    release: Path, kind: str, dpntk: Command
) -> None:
    made = dpntk("generate", release, "--steps", 2, "-o", "few")
    assert made.code == 0, made.stderr
    said = "'dpntk generate --from few -o more' makes 60,000 without training"
    assert (said in " ".join(made.stderr.split())) == (kind == "images")
    for several in (("-n", 30), ("--points", 1)) if kind == "images" else (("-n", 30),):
        asked = dpntk("generate", release, "--steps", 2, "-o", f"as{several[0]}", *several)
        assert asked.code == 0, asked.stderr
        assert "learn more" not in asked.stderr


@pytest.mark.parametrize(("release", "kind"), [(k, k) for k in TRAINED], indirect=["release"])
def test_more_records_are_new_ones_unless_a_seed_asks_for_the_same(
    release: Path, kind: str, tmp_path: Path, dpntk: Command
) -> None:
    made = generate(release, tmp_path / "first", count=30, settings=SETTINGS[kind])
    assert made.seed == 0
    again = ("generate", "--from", "first", "-n", 30, "-o")
    (new, other) = (dpntk(*again, folder) for folder in ("new", "other"))
    assert len({drawn(tmp_path / name, kind) for name in ("first", "new", "other")}) == 3
    seed = json.loads((tmp_path / "new" / "provenance.json").read_text())["sampling"]["seed"]
    assert f"30 records of seed {seed} without training" in new.stderr
    assert "the same again" not in new.stderr + other.stderr
    # What the provenance says makes them again, and so does the seed of the training: that is said.
    dpntk(*again, "third", "--seed", seed)
    assert drawn(tmp_path / "third", kind) == drawn(tmp_path / "new", kind)
    same = dpntk(*again, "fourth", "--seed", 0)
    assert drawn(tmp_path / "fourth", kind) == drawn(tmp_path / "first", kind)
    assert "note: seed 0 is that of the records that came with the training" in same.stderr


@pytest.mark.parametrize(("release", "kind"), [(k, k) for k in TRAINED], indirect=["release"])
def test_every_call_of_sample_gives_new_records(release: Path, kind: str, tmp_path: Path) -> None:
    made = generate(release, tmp_path / "first", count=30, settings=SETTINGS[kind])
    generator = load_generator(made.path)
    calls = [made.sample(30), made.sample(30), generator.sample(30), generator.sample(30)]
    assert len(set(map(content, calls))) == 4
    assert content(made.sample(30, seed=5)) == content(generator.sample(30, seed=5))
    folders = [sample_to(tmp_path / name, generator, count=30) for name in ("second", "third")]
    assert len({drawn(folder.path, kind) for folder in (made, *folders)}) == 3
    assert folders[0].seed not in (0, folders[1].seed)


@pytest.mark.parametrize("release", ["images"], indirect=True)
def test_points_come_back_with_their_generator(release: Path, tmp_path: Path) -> None:
    points = PointSettings(1, steps=1)
    made = generate(release, tmp_path / "a", settings=SETTINGS["images"], points=points)
    points_to(tmp_path / "b", load_generator(made.path), points)
    first, second = (tmp_path / name / "points.npz" for name in "ab")
    assert first.read_bytes() == second.read_bytes()
    assert len(made.sample(4)[1]) == 4


@pytest.mark.parametrize("release", ["distilled set"], indirect=True)
def test_a_distilled_set_has_no_generator(release: Path, tmp_path: Path) -> None:
    made = generate(release, tmp_path / "a")
    assert (made.generator, made.losses, made.noise_floor) == (None, (), None)
    images, labels = made.records()
    with np.load(made.path / "images.npz") as stored:
        assert np.array_equal(stored["x"], images)
    assert len(labels) == len(images)
    with pytest.raises(GeneratorError, match="of a distilled set, which has no generator"):
        made.sample(3)
    with pytest.raises(GeneratorError, match="no such file"):
        load_generator(made.path)
    for folder in (None, tmp_path / "b"):
        with pytest.raises(GeneratorError, match="of a distilled set: 'dpntk generate' writes"):
            ReleasedSynthesizer.train(release, folder)
    assert not (tmp_path / "b").exists()


REFUSED: dict[str, list[tuple[dict[str, object], str]]] = {
    "images": [
        ({"settings": TableSettings()}, "of images, which takes TrainingSettings"),
        ({"settings": 3}, "which takes TrainingSettings, not int"),
        ({"settings": {"step": 3}}, "settings: there is no 'step': there are recipe, generator, "),
        ({"settings": {"steps": 0}}, "steps=0: a whole number from 1 "),
        ({"settings": {"generator": "knots"}}, "generator='knots': .* images"),
        ({"settings": {"recipe": "poem"}}, "recipe='poem': it is paper"),
        ({"points": 3}, "points: PointSettings are wanted, not int"),
        ({"points": PointSettings(1), "count": 3}, "either a count of records or points"),
        ({"safe_csv": True}, "of images, of which no CSV is written"),
        ({"where": "class = 2"}, "where: images have no columns: keep those of a class by"),
        ({"count": 0}, "count=0: a whole number from 1 "),
        ({"count": "ten"}, "count='ten': a whole number from 1 "),
        ({"module": 3}, "module must be the path .* not of type int"),
    ],
    "table": [
        ({"settings": TrainingSettings()}, "of a table, which takes TableSettings"),
        ({"points": PointSettings(1)}, "points: the release is of a table"),
        ({"module": "m.pt"}, "module='m.pt': the release is of a table"),
    ],
    "distilled set": [
        ({"settings": TrainingSettings()}, "settings: .* nothing to train"),
        ({"count": 3}, "count: .* nothing to train"),
        ({"points": PointSettings(1)}, "points: .* nothing to train"),
        ({"module": "m.pt"}, "module: .* nothing to train"),
        ({"where": "age > 3"}, "where: a distilled set is written as it is"),
    ],
}


@pytest.mark.parametrize(("release", "kind"), [(k, k) for k in KINDS], indirect=["release"])
def test_what_a_kind_of_release_does_not_have_is_refused_before_training(
    release: Path, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("fit_images", "fit_table", "export_points"):
        monkeypatch.setattr(
            f"dpntk.generate.pipeline.{name}", lambda *_, **__: pytest.fail("begun for nothing")
        )
    for options, message in REFUSED[kind]:
        with pytest.raises(GeneratorError, match=message) as refusal:
            generate(release, tmp_path / "a", **options)  # type: ignore[arg-type]
        assert "\n" not in str(refusal.value)
    assert not (tmp_path / "a").exists()


def test_a_small_release_of_long_texts_does_not_fill_the_disk_unasked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = tuple(
        MadeColumn(f"text {n}", "x" * 990 + "{number}", place=n) for n in range(10)
    )  # fmt: skip
    opened = open_any(write_small_release("table", tmp_path / "release.h5"))
    assert isinstance(opened.release, Release)
    guarantee = replace(opened.release.guarantee, records=10**6)
    schema = replace(PEOPLE, made=made)
    large = replace(opened, release=replace(opened.release, schema=schema, guarantee=guarantee))
    with monkeypatch.context() as patch:
        patch.setattr("dpntk.generate.pipeline.fit_table", lambda *_, **__: pytest.fail("begun"))
        with pytest.raises(GeneratorError, match="could take 10 GB: say how many with count"):
            generate(large, tmp_path / "a")
    few = generate(large, tmp_path / "a", count=3, settings=SETTINGS["table"])
    assert few.generator is not None
    assert len(few.records()) == 3
    assert usual_rows(schema, 1000) == 1000


def test_mistakes_are_one_line(tmp_path: Path) -> None:
    path, made = tmp_path / "release.h5", tmp_path / "made"
    settings = SETTINGS["images"]
    generator = generate(write_small_release("images", path), made, settings=settings).generator
    assert generator is not None
    new = tmp_path / "a"
    wrong: list[tuple[Callable[[], object], str]] = [
        (lambda: generate(open_any(path).release, new), "release must be .* not of type Release"),  # type: ignore[arg-type]
        (lambda: generate(None, new), "release must be .* NoneType"),  # type: ignore[arg-type]
        (lambda: generate(tmp_path / "missing.h5", new), "no such file"),
        (lambda: generate(path, None), "folder must be the path .* NoneType"),  # type: ignore[arg-type]
        (lambda: generate(path, path), "is a file: choose another"),
        (lambda: generate(path, tmp_path), "more than an earlier result"),
        (lambda: generate(path, new, settings=settings, device="tpu"), "device='tpu': "),
        (lambda: generate(path, new, settings=settings, device=None), "device must be "),  # type: ignore[arg-type]
        (lambda: load_generator(None), "generator must be the path .* NoneType"),  # type: ignore[arg-type]
        (lambda: load_generator(tmp_path), "no such file"),
        (lambda: sample_to(new, made, count=3), "load_generator .* not .*Path"),  # type: ignore[arg-type]
        (lambda: sample_to(new, generator, count=-1), "count=-1: a whole number"),
        (lambda: sample_to(new, generator, count=3, safe_csv=True), "no CSV is written"),
        (lambda: points_to(new, generator, 3), "PointSettings are wanted"),  # type: ignore[arg-type]
        (lambda: Synthetic(made, generator).sample(3, seed=-1), "seed=-1: a whole number"),
        (lambda: TrainingSettings(steps=0), "steps=0: a whole number from 1 "),
        (lambda: TrainingSettings(seed=2**32), "seed=4294967296: a whole number from 0 "),
        (lambda: TableSettings(learning_rate=float("nan")), "learning_rate=nan: a number above 0"),
        (lambda: TableSettings(marginals_loss=-1), "marginals_loss=-1: a number above 0"),
        (lambda: PointSettings("3"), "per_class='3': a whole number from 1 "),  # type: ignore[arg-type]
        (lambda: PointSettings(3, ridge=1001), "ridge=1001: a number above 0, at most 1000, is "),
        (lambda: PointSettings(3, bias_variance=1001), "bias_variance=1001: .* at most 1000, is "),
    ]
    for call, message in wrong:
        with pytest.raises(DpntkError, match=message) as refusal:
            call()
        assert "\n" not in str(refusal.value)
        assert len(str(refusal.value)) < 300
    assert not new.exists()


@pytest.mark.parametrize("release", ["table"], indirect=True)
def test_a_strangers_release_is_not_opened_by_its_path(
    release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "somebody else"))
    with pytest.raises(UntrustedSigner):
        generate(release, tmp_path / "a")


@pytest.mark.parametrize("release", ["images"], indirect=True)
def test_single_choices_leave_all_others_to_the_release(release: Path, tmp_path: Path) -> None:
    opened = open_release(release)
    usual = default_settings(opened)
    assert usual.steps < TrainingSettings().steps  # there is much noise
    assert chosen_settings(opened, {"seed": 1}) == replace(usual, seed=1)
    with_cnn = chosen_settings(opened, {"generator": "cnn", "seed": 1})
    assert (with_cnn.steps, with_cnn.seed) == (usual.steps, 1)
    by_name = generate(release, tmp_path / "a", settings={"steps": 2, "batch": 6})
    in_full = generate(release, tmp_path / "b", settings=SETTINGS["images"])
    for file in by_name.path.iterdir():
        assert file.read_bytes() == (in_full.path / file.name).read_bytes()


def test_numbers_of_numpy_are_plain_in_what_is_written(tmp_path: Path) -> None:
    release = write_small_release("images", tmp_path / "release.h5")
    settings = TrainingSettings(np.int64(2), np.int32(6), np.uint8(1), np.float32(0.01))  # type: ignore[arg-type]
    made = generate(release, tmp_path / "a", count=np.int64(5), settings=settings)  # type: ignore[arg-type]
    assert len(made.sample(np.int64(3))[1]) == 3  # type: ignore[arg-type]
    with pytest.raises(OutputError, match="is a file"):
        generate(release, tmp_path / "a" / "images.npz", settings=settings)


def test_classes_that_cannot_be_told_from_noise_are_named(
    dpntk: Command, embedding_file: Path, tmp_path: Path
) -> None:
    """200 records of three classes: with epsilon 0.03 all of them, however the noise falls."""
    for epsilon, named in ((8, False), (0.03, True)):
        assert (
            dpntk("release", embedding_file, "--eps", epsilon, "--compose", "--overwrite").code == 0
        )
        assert ("hardly told from noise: a, b, c" in dpntk("inspect").stdout) is named
        made = dpntk("generate", "--steps", 2, "--batch", 6, "-n", 6)
        assert made.code == 0
        assert ("says hardly more than noise does: a, b, c" in made.stderr) is named
        origin = json.loads((tmp_path / "synthetic/provenance.json").read_text())
        assert origin.get("indistinct") == (["a", "b", "c"] if named else None)


def test_noise_on_counts_alone_makes_no_class_indistinct(tmp_path: Path) -> None:
    """800 records at epsilon 1, whose counts are off by 22: ten classes of 80, or one of 8."""
    opened = open_any(write_small_release("images", tmp_path / "release.h5"))
    assert isinstance(opened.release, Release)
    assert isinstance(opened.release.schema, ImageSchema)
    guarantee = replace(opened.release.guarantee, sigma=5.44, records=800, count_weight=0.25)
    schema = replace(opened.release.schema, classes=tuple("abcdefghij"))
    for counts, named in (
        ([80, 62, 105, 52, 90, 97, 71, 84, 101, 58], ()),
        ([8, 30, 180, 20, 200, 60, 150, 52, 40, 60], ("a", "b", "d", "i")),
    ):
        shares = np.array(counts) / 800
        release = replace(
            opened.release, schema=schema, class_weights=shares, guarantee=guarantee
        )  # fmt: skip
        assert release.indistinct == named


def test_more_classes_than_a_picture_shows_are_said(dpntk: Command, tmp_path: Path) -> None:
    records, _ = draw_records(60)
    np.savez(tmp_path / "data.npz", x=records.reshape(-1, SIDE, SIDE), y=np.arange(60) % 26)
    assert dpntk("embed", "data.npz", "--classes", 26, "--width", 5).code == 0
    assert dpntk("release", "--eps", 20, "--delta", 1e-3).code == 0
    shown = "look at synthetic/preview.png, of the first 20 of 26 classes"
    made = dpntk("generate", "--steps", 2, "--batch", 52, "-n", 60)
    assert made.stderr.splitlines()[-1] == shown
    again = dpntk("generate", "--from", "synthetic/generator.safetensors", "-n", 60)
    assert again.stderr.splitlines()[-1] == shown
    with Image.open(tmp_path / "synthetic" / "preview.png") as preview:
        assert preview.height == 20 * (56 + 2) + 2


def test_of_many_classes_of_low_signal_the_first_are_named(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    opened = open_any(write_small_release("images", tmp_path / "release.h5"))
    assert isinstance(opened.release, Release)
    assert isinstance(opened.release.schema, ImageSchema)
    names = tuple(f"class {number}" for number in range(300))
    many = replace(
        opened.release,
        schema=replace(opened.release.schema, classes=names),
        class_weights=np.full(300, 1e-9),
    )
    warn_of_noise(many)
    (said,) = capfd.readouterr().err.splitlines()
    assert "noise does: class 0, class 1, " in said
    assert ", class 9 and 290 more: what would help" in said
