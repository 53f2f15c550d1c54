"""A table on its whole path, as a user runs it, and what may not depend on its rows."""

from __future__ import annotations

import io
import json
import os
import secrets
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv
import pytest
from pyarrow import parquet

from dpntk.common.schema.columns.made import MadeColumn
from dpntk.common.schema.drafts.toml import save_schema
from dpntk.common.schema.table import TableSchema
from dpntk.common.sources.options import SourceOptions
from dpntk.embed import Embedding, TangentOptions, embed
from dpntk.release import PrivacyParameters
from dpntk.release.file.writer import serialise
from dpntk.release.mechanism.gaussian import NoiseScale, NoisySums
from dpntk.release.publishing import measurement, parameters
from dpntk.release.publishing.pipeline import unrecorded_release
from tests.conftest import Command, refused
from tests.helpers.neighbours import Integers
from tests.helpers.tables import PEOPLE, people


def confirm(path: Path) -> None:
    path.write_text(path.read_text().replace("confirmed = false", "confirmed = true"))


def test_from_a_table_to_a_table_that_is_like_it(
    dpntk: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.csv").write_text(people(1500))
    drafted = dpntk("schema", "a.csv", "--label", "ill")
    assert drafted.code == 0, drafted.stderr
    assert (tmp_path / "schema.toml").stat().st_mode & 0o777 == 0o600
    refused(dpntk("embed", "a.csv", "--schema", "schema.toml"), "schema.toml: not confirmed: ")
    confirm(tmp_path / "schema.toml")
    made = dpntk("embed", "a.csv", "--schema", "schema.toml", "--width", "30")
    assert made.code == 0, made.stderr
    assert "1,500 rows of 6 columns in 2 classes" in made.stderr
    assert dpntk("release", "--eps", "20", "--delta", "1e-4").code == 0
    label = dpntk("inspect", "release.h5").stdout
    assert "1,500 rows of 6 columns, ill in 2 classes: no, yes" in " ".join(label.split())
    assert ", on encoded rows" in label
    described = json.loads(dpntk("inspect", "--json", "release.h5").stdout)
    assert described["feature_map"]["features"] == "joint"
    generated = dpntk("generate", "release.h5", "--steps", "150")
    assert generated.code == 0, generated.stderr
    assert "--steps: of no effect" in generated.stderr
    assert "loss" not in generated.stderr

    made_table = arrow_csv.read_csv("synthetic/table.csv").to_pydict()
    assert list(made_table) == ["id", "age", "pay", "grade", "town", "ill"]
    age, ill = np.array(made_table["age"]), np.array(made_table["ill"])
    bonn = np.array(made_table["town"]) == "Bonn"
    assert 0.25 < (ill == "yes").mean() < 0.35
    assert abs(age[ill == "yes"].mean() - 70) < 8
    assert abs(age[ill == "no"].mean() - 30) < 8
    assert bonn[ill == "yes"].mean() > 0.7
    assert bonn[ill == "no"].mean() < 0.3
    provenance = json.loads(Path("synthetic/provenance.json").read_text())
    assert provenance["release"]["private"] is True
    assert provenance["schema"]["label"] == "ill"

    monkeypatch.setattr("dpntk.generate.tables.refinement._USUAL_ROWS", 1000)
    for rows in (9, 8):  # the second replaces the first
        again = dpntk("generate", "--from", "synthetic", "-n", rows, "-o", "more")
        assert again.code == 0, again.stderr
        assert arrow_csv.read_csv("more/table.csv").num_rows == rows
    Path("more/schema.toml").write_text("mine")
    usual = dpntk("generate", "--from", "synthetic", "-o", "usual")
    assert usual.code == 0, usual.stderr
    assert arrow_csv.read_csv("usual/table.csv").num_rows == 1500
    third = dpntk("generate", "--from", "synthetic", "-n", "7", "-o", "more")
    refused(third, "more holds more than an earlier result, such as schema.toml: move it")
    assert Path("more/schema.toml").read_text() == "mine"
    assert arrow_csv.read_csv("more/table.csv").num_rows == 8
    for option in ("--steps", "--batch", "--lr"):
        useless = dpntk("generate", "--from", "synthetic/generator.safetensors", option, "9")
        assert useless.code == 2
        assert f"{option} is for training" in useless.stderr
    for options in (("--signer", "nobody"), ("--allow-unsigned",), ("--device", "cuda")):
        useless = dpntk("generate", "--from", "synthetic", *options, "-o", "unwanted")
        assert useless.code == 2
        assert options[0] in useless.stderr
    assert not Path("unwanted").exists()


def test_parts_of_a_table_are_merged_as_rows(dpntk: Command, tmp_path: Path) -> None:
    for name, seed in (("a", 1), ("b", 2)):
        (tmp_path / f"{name}.csv").write_text(people(60, seed))
    dpntk("schema", "a.csv")
    options = ["--schema", "schema.toml", "--accept-from-data", "--width", "5"]
    for name in ("a", "b"):
        assert dpntk("embed", f"{name}.csv", *options, "-o", f"{name}.h5").code == 0
    assert "merged 2 embeddings: 120 rows of" in dpntk("merge", "a.h5", "b.h5").stderr


def test_the_draft_leaves_out_what_tells_rows_apart(dpntk: Command, tmp_path: Path) -> None:
    """Names and numbers with a comma are no categories, however few rows there are."""
    rows = [f'p{i},"{i},5",{"ab"[i % 2]},x{i % 12}\n' for i in range(1, 29)]
    (tmp_path / "a.csv").write_text("name,pay,kind,site\n" + "".join(rows))
    drafted = dpntk("schema", "a.csv", "--label", "kind")
    assert "nor a few texts: name\n" in drafted.stderr
    assert "(if they are, say --decimal ,): pay\n" in drafted.stderr
    schema = (tmp_path / "schema.toml").read_text()
    assert 'left_out = ["name", "pay"]' in schema
    assert '"x11"' in schema
    assert "p11" not in schema


def test_the_draft_leaves_out_what_is_not_read_of_a_parquet_file(
    dpntk: Command, tmp_path: Path
) -> None:
    columns = {
        "age": pa.array([None, *range(29)], pa.int8()),
        "town": pa.array(["Ulm", "Bonn", None] * 10).dictionary_encode(),
        "seen": pa.array([0] * 30, pa.timestamp("us")),
        "visits": pa.array([[1, 2]] * 30),
        "nothing": pa.nulls(30),
    }
    parquet.write_table(pa.table(columns), tmp_path / "a.parquet")
    drafted = dpntk("schema", "a.parquet")
    for reason in ("are the same: seen\n", "nor a few texts: visits\n", "a value: nothing\n"):
        assert reason in drafted.stderr
    options = ["--schema", "schema.toml", "--accept-from-data", "--width", "5"]
    made = dpntk("embed", "a.parquet", *options)
    assert "embedded 30 rows of 2 columns" in made.stderr


def test_what_was_looked_up_is_said_in_every_release(dpntk: Command, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(people(100))
    dpntk("schema", "a.csv", "--label", "ill")
    options = ["--schema", "schema.toml", "--accept-from-data", "--width", "5"]
    assert dpntk("embed", "a.csv", *options).code == 0
    assert dpntk("release", "--eps", "5", "--delta", "1e-3").code == 0
    statement = json.loads(dpntk("inspect", "--json", "release.h5").stdout)["statement"]
    what = (
        "kinds, types, scales, steps, formats, bounds, categories, and whether values are missing"
    )
    assert f"Looked up in the records: {what}, of id, age, pay" in statement


@pytest.mark.parametrize(
    "options",
    [
        ["--arch", "fc_2l", "--width", "9_5"],
        ["--arch", "cnn_1l", "--width", "3"],
        ["--arch", "cnn_2l", "--width", "3_4"],
        ["--width", "9", "--marginals", "0"],
        ["--width", "9", "--pairs", "age,town", "--pairs", "pay,age"],
        ["--width", "9", "--pairs", "all"],
        ["--features", "rff", "--frequencies", "50"],
        ["--features", "hermite"],
    ],
    ids=str,
)
def test_every_map_and_no_label_go_the_whole_path(
    dpntk: Command, tmp_path: Path, options: list[str], hasty_rows: None
) -> None:
    (tmp_path / "a.csv").write_text(people(60))
    dpntk("schema", "a.csv")
    confirm(tmp_path / "schema.toml")
    made = dpntk("embed", "a.csv", "--schema", "schema.toml", *options)
    assert made.code == 0, made.stderr
    assert dpntk("release", "--eps", "5", "--delta", "1e-3").code == 0
    assert dpntk("inspect", "release.h5").code == 0
    generated = dpntk("generate", "release.h5", "--steps", "5", "-n", "30")
    assert generated.code == 0, generated.stderr
    assert arrow_csv.read_csv("synthetic/table.csv").num_rows == 30


def test_wrong_options_get_one_line(dpntk: Command, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(people(20))
    (tmp_path / "one.csv").write_text("a,b\n1,x\n2,x\n")
    (tmp_path / "semicolons.csv").write_text("a;b\n1;x\n2;y\n")
    dpntk("schema", "a.csv")
    confirm(tmp_path / "schema.toml")
    for arguments, message in (
        ("schema a.csv", "schema.toml"),
        ("schema a.csv -o s.toml --label sex", "--label sex: a.csv has no such column ('id, age"),
        (
            "schema semicolons.csv -o s.toml",
            "say with --separator what separates values ('a;b')",
        ),
        ("schema one.csv -o s.toml --label b", "label 'b': one class tells nothing"),
        ("schema a.csv -o s.toml --separator ;;", "separator ';;': it is one character"),
        ("embed a.csv", "drafts one; then give --schema schema.toml\n"),
        ("embed a.csv --accept-from-data", "means nothing without --schema"),
        ("embed a.csv --schema nothing.toml", "nothing.toml: there is no such file"),
        ("embed a.csv --schema schema.toml --front scattering", "is for images, not for tables"),
        ("embed a.csv --schema schema.toml --features rff --marginals 0.5", "--features ntk"),
        ("embed a.csv --schema schema.toml --pairs age,nothing", "--pairs age,nothing: two"),
        ("embed a.csv --schema schema.toml --image-size 9", "are for images"),
    ):
        refused(dpntk(*arguments.split()), message)
        assert not Path("embedding.h5").exists()


def test_a_target_that_cannot_be_one_gets_one_line(dpntk: Command, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(people(20))
    made_anew = replace(PEOPLE, left_out=(), made=(MadeColumn("id", "{number}", "int64"),))
    alone = TableSchema(PEOPLE.columns[:1], None, left_out=("id", "pay", "grade", "town", "ill"))
    for schema, name in ((PEOPLE, "people"), (made_anew, "anew"), (alone, "alone")):
        save_schema(schema, tmp_path / f"{name}.toml")
    numeric = "; numeric columns are age, pay"
    for arguments, message in (
        ("people.toml --target sex", f"--target sex: there is no such column{numeric}"),
        ("people.toml --target ill", "--target ill: it is the label"),
        ("people.toml --target id", f"--target id: the schema leaves it out{numeric}"),
        ("anew.toml --target id", f"--target id: it is made anew, not read{numeric}"),
        ("people.toml --target town", "--target town: its values are categories: make it the"),
        ("people.toml --target age --moments 0", "--target age: its products with other columns"),
        ("people.toml --target age --marginals 0", "--target age: it goes with a weight of"),
        (
            "people.toml --target age --features rff",
            "--target age: it goes with --features ntk, not rff",
        ),
        ("alone.toml --target age", "the table has no such products"),
    ):
        refused(dpntk("embed", "a.csv", "--schema", *arguments.split()), message)
        assert not Path("embedding.h5").exists()
    planned = dpntk(
        "plan", "--schema", "people.toml", "--target", "sex", "--records", "9", "--eps", "1"
    )
    refused(planned, "--target sex: there is no such column")


def test_a_target_is_named_wherever_features_are(dpntk: Command, tmp_path: Path) -> None:
    """It is public, and whoever reads plan or release is to know what was aimed at."""
    (tmp_path / "a.csv").write_text(people(60))
    save_schema(PEOPLE, tmp_path / "schema.toml")
    options = ("--schema", "schema.toml", "--width", "5", "--target", "age")
    said = "with a target 3 times as large (the target is age)"
    planned = dpntk("plan", *options, "--records", "60", "--eps", "1", "--json")
    assert json.loads(planned.stdout)["features"].endswith(said)
    assert dpntk("embed", "a.csv", *options).code == 0
    planned = dpntk("plan", "embedding.h5", "--eps", "1", "--json")
    assert json.loads(planned.stdout)["features"].endswith(said)
    assert dpntk("release", "--eps", "1", "--delta", "1e-3").code == 0
    assert said in " ".join(dpntk("inspect").stdout.split())
    shown = json.loads(dpntk("inspect", "--json").stdout)["feature_map"]
    assert shown["moments"]["target"] == [0, 3]
    # Sums without it are of other features.
    assert dpntk("embed", "a.csv", *options[:-2], "-o", "other.h5").code == 0
    refused(dpntk("merge", "embedding.h5", "other.h5", "-o", "both.h5"), "other.h5")


def embedded(path: Path, lines: list[str], pairs: tuple[str, ...]) -> Embedding:
    path.write_text("\n".join(["id,age,pay,grade,town,ill", *lines]) + "\n")
    schema: TableSchema = PEOPLE
    return embed(path, TangentOptions(width=7, pairs=pairs), SourceOptions(schema=schema))


@pytest.mark.parametrize("pairs", [(), ("age,pay", "grade,town")], ids=["columns", "pairs"])
def test_nothing_but_the_noisy_coordinates_reaches_the_release(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pairs: tuple[str, ...]
) -> None:
    """Two tables that differ in all ways, with the same noisy coordinates: the same bytes."""
    one = embedded(
        tmp_path / "a.csv",
        ["1,0,0,low,Ulm,no", "2,99,1000,mid,Bonn,yes", "3,5,,low,,no", "4,7,3,low,Rome,no"],
        pairs,
    )
    other = embedded(
        tmp_path / "b.csv",
        ["9,50,,high,Bonn,yes", "8,50,1,high,Bonn,yes", "7,50,1,high,Bonn,yes", "6,50,2,mid,,yes"],
        pairs,
    )
    assert not np.array_equal(one.sums, other.sums)

    def noisy(sums: Integers, counts: Integers | None, scale: NoiseScale) -> NoisySums:
        random = np.random.default_rng(len(sums))
        return NoisySums(random.integers(-(2**40), 2**40, sums.shape), counts)

    def noisy_counts(counts: Integers, scale: NoiseScale) -> Integers:
        return np.random.default_rng(0).integers(0, 2**40, counts.shape)

    monkeypatch.setattr(measurement, "add_noise", noisy)
    monkeypatch.setattr(measurement, "noisy_counts", noisy_counts)
    monkeypatch.setattr(secrets, "token_hex", lambda size: "0" * 2 * size)

    class Clock:
        @staticmethod
        def now(zone: object) -> Clock:
            return Clock()

        def isoformat(self, timespec: str) -> str:
            return "2026-01-01T00:00:00+00:00"

    monkeypatch.setattr(parameters, "datetime", Clock)
    bodies = [
        bytes(serialise(unrecorded_release(e, PrivacyParameters(1.0, 1e-3)))) for e in (one, other)
    ]
    assert bodies[0] == bodies[1]


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_files_may_have_names_that_are_no_text(dpntk: Command, tmp_path: Path, form: str) -> None:
    """Arrow opens none of them by its name."""
    name = os.fsdecode(b"b\xe4r")
    (tmp_path / f"{name}.csv").write_text(people(60))
    if form == "parquet":
        with (tmp_path / f"{name}.parquet").open("wb") as file:
            parquet.write_table(arrow_csv.read_csv(io.BytesIO(people(60).encode())), file)
    data = tmp_path / f"{name}.{form}"
    assert dpntk("schema", data, "--label", "ill", "-o", "s.toml").code == 0
    embedded = dpntk(
        "embed", data, "--schema", "s.toml", "--accept-from-data", "--width", 5, "-o", f"{name}.h5"
    )
    assert embedded.code == 0, embedded.stderr
    assert dpntk("release", f"{name}.h5", "--eps", 10, "--delta", 1e-3, "-o", "r.h5").code == 0
    generated = dpntk("generate", "r.h5", "-o", tmp_path / name)
    assert generated.code == 0, generated.stderr
    with (tmp_path / name / "table.parquet").open("rb") as file:
        assert len(parquet.read_table(file)) == 60
    evaluated = dpntk("evaluate", tmp_path / name, "--test", data)
    assert evaluated.code == 0, evaluated.stderr
