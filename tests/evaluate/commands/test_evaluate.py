"""`dpntk evaluate` of tables: it writes what it shows, and refuses in one line."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path

import numpy as np
import pytest

from dpntk.common.schema.drafts.draft import Draft
from dpntk.evaluate.tables.attacks import ATTACK, ATTACK_HIGH, ATTACK_LOW, METHODS
from dpntk.evaluate.tables.fidelity.correlations import CORRELATIONS
from dpntk.evaluate.tables.fidelity.distances import METRICS, distances
from dpntk.evaluate.tables.scores import R2, RMSE, ROC
from dpntk.evaluate.tables.table import Table, read_real_table, read_synthetic_table
from tests.conftest import Command
from tests.helpers.rows import JOB, LABEL, SCHEMA, drawn


def write(rows: Table, path: Path) -> Path:
    jobs = [*JOB.categories, ""]
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["rich", "age", "job"])  # in another order than in the schema
        for age, job, label in zip(
            rows.columns["age"], rows.columns["job"], rows.labels, strict=True
        ):
            shown = "" if math.isnan(age) else f"{age:.0f}"
            writer.writerow([LABEL.categories[label], shown, jobs[job]])
    return path


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A folder with what `dpntk generate` wrote, a test part and a training part."""
    folder = tmp_path / "synthetic"
    folder.mkdir()
    write(drawn(300, 16), folder / "table.csv")
    release = {"private": True, "epsilon": 1.0, "digest": "0" * 64}
    document = {"schema": SCHEMA.to_json(), "release": release}
    (folder / "provenance.json").write_text(json.dumps(document))
    write(drawn(300, 17), tmp_path / "test.csv")
    write(drawn(300, 18), tmp_path / "train.csv")
    (tmp_path / "schema.toml").write_text(Draft(SCHEMA).to_toml())
    return tmp_path


def test_tables_are_read_back(files: Path) -> None:
    found = read_synthetic_table(files / "synthetic")
    original = drawn(300, 16)
    assert found.schema == SCHEMA
    assert found.provenance["release"]["epsilon"] == 1.0
    for name, values in original.columns.items():
        np.testing.assert_array_equal(found.columns[name], values)
    by_file = read_synthetic_table(files / "synthetic" / "table.csv", files / "schema.toml")
    assert distances(by_file, found).figures["TVD 2-way"] == 0
    assert len(read_real_table(files / "test.csv", "test", SCHEMA)) == 300


def test_the_command_writes_what_it_shows(
    dpntk: Command, files: Path, two_kinds: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    done = dpntk("evaluate", "--test", "test.csv", "--baseline", "train.csv")
    assert done.code == 0, done.stderr
    report = json.loads((files / "evaluation.json").read_text())
    rows = {row["trained_on"]: row for row in report["rows"]}
    assert list(rows) == [
        "synthetic (epsilon 1)", "real", "independent columns of real", "constant"
    ]  # fmt: skip
    real = rows["real"]
    assert real["TVD 1-way"] == distances(drawn(300, 18), drawn(300, 17)).figures["TVD 1-way"]
    each = [scores[ROC] for scores in real["runs"][0]["classifiers"].values()]
    assert real[ROC] == pytest.approx(sum(each) / len(each))
    for name, row in rows.items():
        assert name in done.stdout
        assert f"{row[ROC]:.3f}" in done.stdout
    assert report["positive"] in ("no", "yes")
    assert any("without XGBoost" in note for note in report["notes"])
    assert "20 bins" in report["distances"]["TVD 2-way"]
    assert set(report["distances"]) == {metric.name for metric in METRICS}
    assert set(real) >= {metric.name for metric in METRICS} - {CORRELATIONS.name}


def test_several_folders_give_a_mean_and_a_deviation(
    dpntk: Command, files: Path, two_kinds: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    arguments = ("--test", "test.csv", "--schema", "schema.toml")
    done = dpntk("evaluate", "train.csv", "test.csv", *arguments)
    assert done.code == 0, done.stderr
    row = json.loads((files / "evaluation.json").read_text())["rows"][0]
    one_way = distances(drawn(300, 18), drawn(300, 17)).figures["TVD 1-way"]
    assert row["TVD 1-way"] == pytest.approx(one_way / 2)  # the second is the test part itself
    assert row["TVD 1-way deviation"] == pytest.approx(one_way / np.sqrt(2))
    assert f"{one_way / 2:.3f} ± {one_way / np.sqrt(2):.3f}" in done.stdout


def test_attacks_are_shown_beside_controls(
    dpntk: Command, files: Path, two_kinds: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rows that were used are found out, and shuffled ones are not."""
    monkeypatch.setenv("COLUMNS", "250")
    baseline = ("--baseline", "train.csv")
    done = dpntk("evaluate", "--test", "test.csv", *baseline, "--members", "train.csv")
    assert done.code == 0, done.stderr
    assert "attacks check the implementation" in " ".join(done.stdout.split())
    report = json.loads((files / "evaluation.json").read_text())
    assert list(report["attacks"]) == list(METHODS)
    ours, real, *_ = report["rows"]
    assert real[ATTACK_LOW] > 0.6  # not more, for the real rows share many values
    assert ours[ATTACK_LOW] < 0.5 < ours[ATTACK_HIGH]
    assert f"{ours[ATTACK]:.3f}" in done.stdout
    assert (files / "evaluation.json").stat().st_mode & 0o777 == 0o600


def test_a_table_without_a_label_and_a_numeric_target(
    dpntk: Command, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "250")
    schema = (files / "schema.toml").read_text()
    assert 'label = "rich"' in schema
    (files / "schema.toml").write_text(schema.replace('label = "rich"', ""))
    arguments = ("evaluate", "train.csv", "--test", "test.csv", "--schema", "schema.toml")
    done = dpntk(*arguments)
    assert done.code == 0, done.stderr
    rows = json.loads((files / "evaluation.json").read_text())["rows"]
    assert [row["trained_on"] for row in rows] == ["synthetic", "independent columns of synthetic"]
    assert rows[0]["TVD 2-way"] < rows[1]["TVD 2-way"]
    assert R2 not in rows[0]
    hint = "nothing is predicted: --target names a column to predict"
    assert hint in " ".join(done.stderr.split())

    done = dpntk(*arguments, "--target", "age")
    assert done.code == 0, done.stderr
    assert hint not in " ".join(done.stderr.split())
    assert "target: age" in done.stdout
    assert "means over the regressions" in done.stdout
    report = json.loads((files / "evaluation.json").read_text())
    ours, shuffled, constant = report["rows"]
    assert ours[R2] > 0.4 > shuffled[R2]
    assert constant[R2] == pytest.approx(0)
    assert report["measure"].keys() == {R2, RMSE}
    done = dpntk(*arguments, "--target", "rich")
    assert done.code == 0, done.stderr
    assert json.loads((files / "evaluation.json").read_text())["rows"][0][ROC] > 0.7
    for wrong in (("--target", "pay"), ("--target", "age", "--positive", "yes")):
        assert dpntk(*arguments, *wrong).code == 1


def test_undersampled_figures_say_so(
    dpntk: Command, files: Path, two_kinds: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    done = dpntk("evaluate", "--test", "test.csv", "--positive", "yes", "--keep-negatives", "0.4")
    assert done.code == 0, done.stderr
    assert "only 0.4 of the other class's records kept" in done.stdout
    report = json.loads((files / "evaluation.json").read_text())
    assert report["kept_negatives"] == 0.4
    assert any("for comparison only" in note for note in report["notes"])


def test_what_cannot_be_evaluated_is_refused_in_one_line(dpntk: Command, files: Path) -> None:
    def error(*arguments: str) -> str:
        done = dpntk("evaluate", *arguments, "--test", "test.csv")
        assert done.code == 1
        assert done.stderr.count("\n") == 1
        assert not (files / "evaluation.json").exists()
        return done.stderr

    assert "no such folder" in error("missing", "--schema", "schema.toml")
    assert "no class 'rich'" in error("synthetic", "--positive", "rich")
    (files / "schema.toml").rename(files / "known.toml")
    assert "give the schema with --schema" in error("train.csv")
    (files / "synthetic" / "provenance.json").write_text("{")
    assert "damaged" in error("synthetic")
    (files / "synthetic" / "provenance.json").write_text('{"schema": {"kind": "table"}}')
    assert "its schema" in error("synthetic")
    (files / "synthetic" / "table.csv").unlink()
    assert "there is no table.parquet in it" in error("synthetic", "--schema", "known.toml")


def test_the_whole_path(dpntk: Command, files: Path, two_kinds: None) -> None:
    """What the other commands make is evaluated as it is, and its release is recognised."""
    for arguments in (
        ("embed", "train.csv", "--schema", "schema.toml", "--width", "16"),
        ("release", "--eps", "1", "--delta", "1e-3"),
        ("generate", "release.h5", "--steps", "3", "-o", "made"),
    ):
        done = dpntk(*arguments)
        assert done.code == 0, done.stderr
    done = dpntk("evaluate", "made", "--test", "test.csv", "--release", "release.h5")
    assert done.code == 0, done.stderr
    assert "made from release.h5" in done.stderr
    (first, *_) = json.loads((files / "evaluation.json").read_text())["rows"]
    assert first["trained_on"] == "synthetic (epsilon 1)"
    assert first["runs"][0]["records"] == 300
    foreign = dpntk("evaluate", "synthetic", "--test", "test.csv", "--release", "release.h5")
    assert foreign.code == 1
    assert "do not say that they come from release.h5" in foreign.stderr


def test_real_rows_that_are_tested_on_themselves_are_noted(
    dpntk: Command, files: Path, two_kinds: None
) -> None:
    """They score as nothing synthetic can, and whoever compares should know why."""
    same = "--baseline and --test hold the same records"
    for train, said in (("test.csv", True), ("train.csv", False)):
        done = dpntk("evaluate", "synthetic", "--test", "test.csv", "--baseline", train)
        assert done.code == 0, done.stderr
        assert (same in done.stderr) is said


def test_options_for_tables_are_refused_for_images(dpntk: Command, tmp_path: Path) -> None:
    (tmp_path / "synthetic").mkdir()
    done = dpntk("evaluate", "--test", "x", "--keep-negatives", "0.4")
    assert done.code == 2
    assert "--keep-negatives is for tables" in done.stderr
    done = dpntk("evaluate", "a", "b", "--test", "x")
    assert done.code == 2
    assert "several SYNTHETIC are for tables" in done.stderr
