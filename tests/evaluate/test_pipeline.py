"""One way from synthetic records to figures, of whatever kind they are; and what it refuses."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from dpntk.common.errors import DataError, DpntkError, SchemaError
from dpntk.common.schema.drafts.draft import Draft
from dpntk.evaluate import Evaluation, ImageEvaluation, TableEvaluation, TableOptions, evaluate
from dpntk.evaluate.images.classifiers import CLASSIFIERS
from dpntk.evaluate.tables.classifiers import CLASSIFIERS as OF_TABLES
from dpntk.evaluate.tables.utility import Row, Run
from dpntk.generate import TableSettings, TrainingSettings, generate
from tests.conftest import Command
from tests.helpers.releases import KINDS, write_images, write_rows, write_small_release
from tests.helpers.tables import PEOPLE

SETTINGS = {
    "images": TrainingSettings(steps=2, batch=6),
    "table": TableSettings(steps=2, batch=4),
    "distilled set": None,
}
ONE = "logistic regression"


@pytest.fixture(autouse=True)
def few_classifiers(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that evaluating takes no time."""
    monkeypatch.setattr("dpntk.evaluate.images.utility.CLASSIFIERS", {ONE: CLASSIFIERS[ONE]})
    monkeypatch.setattr("dpntk.evaluate.tables.utility.installed", lambda _: {ONE: OF_TABLES[ONE]})
    monkeypatch.setattr("dpntk.evaluate.images.distilled._convnet", lambda *_: 0.25)


def real(kind: str, path: Path) -> Path:
    """Real records of the kind."""
    if kind == "table":
        return write_rows(path.with_suffix(".csv"), 40)
    found = write_images(path.with_suffix(".npz"), 40)
    if kind == "distilled set":  # in two classes, as its release says
        with np.load(found) as stored:
            x, y = stored["x"], stored["y"]
        np.savez(found, x=x[y < 2], y=y[y < 2])
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_evaluated_and_says_what_the_command_says(
    kind: str, dpntk: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    release = write_small_release(kind, tmp_path / "release.h5")
    synthetic = generate(release, tmp_path / "synthetic", settings=SETTINGS[kind])
    test, baseline = real(kind, tmp_path / "test"), real(kind, tmp_path / "baseline")

    found = evaluate(synthetic, test=test, baseline=baseline, release=release, seed=3)
    assert isinstance(found, TableEvaluation if kind == "table" else ImageEvaluation)
    found.save(tmp_path / "by python.json")
    ours, real_ones = list(found.figures)[:2]
    assert ours.startswith("synthetic (epsilon ")
    assert real_ones == "real"
    assert all(0 <= value <= 1 for row in found.figures.values() for value in row.values())
    assert ("kernel regression" in found.figures[ours]) == (kind == "distilled set")

    done = dpntk(
        "evaluate", "--test", test, "--baseline", baseline, "--release", release, "--seed", 3
    )
    assert done.code == 0, done.stderr
    written = (tmp_path / "evaluation.json").read_bytes()
    assert written == (tmp_path / "by python.json").read_bytes()
    assert json.loads(written) == found.to_json()
    assert str(found) == done.stdout.rstrip("\n")
    done = dpntk("evaluate", "--test", test, "--seed", 3, "--json")
    assert json.loads(done.stdout) == json.loads((tmp_path / "evaluation.json").read_text())
    assert (tmp_path / "by python.json").stat().st_mode & 0o777 == 0o600


def test_an_evaluation_is_one_of_either_kind() -> None:
    with pytest.raises(TypeError, match="abstract"):
        Evaluation()  # type: ignore[abstract]


def test_mistakes_are_one_line(tmp_path: Path) -> None:
    (tmp_path / "images").mkdir()
    images, rows = tmp_path / "images", write_rows(tmp_path / "rows.csv")
    write_images(images / "images.npz")
    (tmp_path / "empty").mkdir()
    table = TableOptions()
    wrong: list[tuple[Callable[[], object], str]] = [
        (lambda: evaluate(None, test=rows), "synthetic must be the path .* NoneType"),  # type: ignore[arg-type]
        (lambda: evaluate([], test=rows), "synthetic: there are no records"),
        (lambda: evaluate(tmp_path / "missing", test=rows), "missing: there is no such folder"),
        (
            lambda: evaluate(tmp_path / "empty", test=rows),
            "there is neither images.npz nor a table in it",
        ),
        (lambda: evaluate(images, test=None), "test must be the path .* NoneType"),  # type: ignore[arg-type]
        (lambda: evaluate(images, test=images, baseline=3), "baseline must be the path .* int"),  # type: ignore[arg-type]
        (lambda: evaluate(images, test=images, release=3), "release must be the path .* int"),  # type: ignore[arg-type]
        (lambda: evaluate(images, test=images, seed=-1), "seed=-1: a whole number from 0"),
        (lambda: evaluate(images, test=images, tables=table), "there are no table options"),
        (lambda: evaluate([images, images], test=images), "evaluate images one by one"),
        (lambda: evaluate(rows, test=rows, tables=table), "give the schema with schema"),
        (lambda: evaluate(rows, test=rows, tables={}), "tables must be TableOptions, .* dict"),  # type: ignore[arg-type]
        (lambda: evaluate(rows, test=rows, tables=TableOptions(3)), "schema must be a TableSchema"),  # type: ignore[arg-type]
        (lambda: TableOptions(keep_negatives=2), "keep_negatives=2: a number above 0, at most 1,"),
        (lambda: TableOptions(train_records=0), "train_records=0: a whole number from 1"),
    ]
    for call, message in wrong:
        with pytest.raises(DpntkError, match=message) as refusal:
            call()
        assert "\n" not in str(refusal.value)
        assert len(str(refusal.value)) < 300


def test_what_points_give_stands_below_the_records_that_they_are_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_kernel = Row("by their kernel", (Run(4, 4, 4, {}),))
    monkeypatch.setattr("dpntk.evaluate.pipeline.regression_rows", lambda *_: [by_kernel])
    (tmp_path / "schema.toml").write_text(Draft(PEOPLE).to_toml())
    rows = write_rows(tmp_path / "rows.csv")
    found = evaluate(rows, test=rows, baseline=rows)
    assert isinstance(found, TableEvaluation)
    assert [row.trained_on for row in found.rows] == [
        "synthetic", "by their kernel", "real", "independent columns of real", "constant",
    ]  # fmt: skip


def test_tables_in_memory_have_the_figures_of_their_files(tmp_path: Path) -> None:
    """Read by pandas, by Arrow, and by dpntk: one table."""
    paths = [write_rows(tmp_path / f"{name}.csv", 40) for name in ("ours", "test", "real")]
    (tmp_path / "schema.toml").write_text(Draft(PEOPLE).to_toml())
    by_file = TableOptions(tmp_path / "schema.toml", members=paths[2])
    expected = evaluate(paths[0], test=paths[1], baseline=paths[2], tables=by_file)
    ours, test, baseline = (pd.read_csv(path) for path in paths)
    options = TableOptions(PEOPLE, members=baseline)
    found = evaluate(ours, test=pa.Table.from_pandas(test), baseline=baseline, tables=options)
    assert found.figures == expected.figures
    assert "real" in found.figures
    several = evaluate([ours, paths[0]], test=test, tables=options)
    assert isinstance(several, TableEvaluation)
    assert len(several.rows[0].runs) == 2


def test_what_is_wrong_with_tables_in_memory_is_said(tmp_path: Path) -> None:
    rows = pd.read_csv(write_rows(tmp_path / "rows.csv", 40))
    options = TableOptions(PEOPLE)
    with pytest.raises(SchemaError, match="do not say what their columns are"):
        evaluate(rows, test=rows)
    with pytest.raises(SchemaError, match="DataFrame"):
        evaluate(rows.drop(columns="age"), test=rows, tables=options)
    release = write_small_release("table", tmp_path / "release.h5")
    with pytest.raises(DataError, match="do not say that they come from"):
        evaluate(rows, test=rows, tables=options, release=release)
    with pytest.raises(DataError, match="DataFrame: a table in memory, and the others are images"):
        evaluate(tmp_path, test=rows)
    with pytest.raises(DataError, match="test must be the path"):
        evaluate(rows, test=7, tables=options)  # type: ignore[arg-type]


def arrays_in(path: Path) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    with np.load(path) as stored:
        return stored["x"], stored["y"]


def test_images_in_memory_have_the_figures_of_their_files(tmp_path: Path) -> None:
    release = write_small_release("images", tmp_path / "release.h5")
    synthetic = generate(release, tmp_path / "synthetic", settings=SETTINGS["images"])
    test, baseline = (real("images", tmp_path / name) for name in ("test", "baseline"))
    found = evaluate(synthetic, test=arrays_in(test), baseline=arrays_in(baseline), release=release)
    assert (
        found.figures == evaluate(synthetic, test=test, baseline=baseline, release=release).figures
    )
    ours = tmp_path / "synthetic" / "images.npz"
    found = evaluate(arrays_in(ours), test=arrays_in(test))
    assert found.figures == evaluate(ours, test=test).figures
    pixels = evaluate((arrays_in(ours)[0], None), test=(arrays_in(test)[0], None))
    assert "Frechet distance" in pixels.figures["synthetic"]


def test_what_is_wrong_with_images_in_memory_is_said(tmp_path: Path) -> None:
    images = arrays_in(write_images(tmp_path / "images.npz"))
    rows = write_rows(tmp_path / "rows.csv", 40)
    wrong: list[tuple[Callable[[], object], str]] = [
        (lambda: evaluate(rows, test=images), "arrays of images: the others are tables"),
        (lambda: evaluate(images, test=pd.read_csv(rows)), "DataFrame: a table in memory, and"),
        (lambda: evaluate(images, test=images, tables=TableOptions()), "no table options"),
        (
            lambda: evaluate(images, test=images, tables=TableOptions(PEOPLE)),
            "arrays of images: the others are tables",
        ),
        (lambda: evaluate(images, test=(images[0], images[1][:-1])), "labels"),
        (
            lambda: evaluate((images[0], np.ones_like(images[1])), test=images),
            "arrays of images: all records are of one class",
        ),
        (lambda: evaluate(images, test=images, test_labels=rows), "arrays of images"),
    ]
    for call, message in wrong:
        with pytest.raises(DpntkError, match=message) as refusal:
            call()
        assert "\n" not in str(refusal.value)
