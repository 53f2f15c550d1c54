"""All rows of a person are protected together: what counts, what is said, and what is refused."""

from __future__ import annotations

import dataclasses
import json
import os
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from pyarrow import parquet

from dpntk.common.adjacency import Adjacency
from dpntk.common.errors import BudgetError, DataError, FormatError, MergeError, SchemaError
from dpntk.common.ledger import PrivacyBudget
from dpntk.common.runtime.ranks import Ranks
from dpntk.common.sources import Source, open_source, with_bounded_units
from dpntk.common.sources.options import SourceOptions
from dpntk.common.sources.tables.privacy_units import BoundedSource
from dpntk.embed import (
    Column,
    PrivacyUnit,
    TableSchema,
    TangentOptions,
    embed,
    load_embedding,
    merge,
    read_schema,
    save_embedding,
    save_schema,
)
from dpntk.embed.run.work_folder import NothingLeft, WorkFolder
from dpntk.embed.sums.data_sets import joint_ledger
from dpntk.embed.sums.file import Embedding
from dpntk.release import PrivacyParameters, open_any, own_key
from dpntk.release.file.validation import require_consistent
from dpntk.release.mechanism.composition import total_of
from dpntk.release.publishing.parameters import noise_for
from dpntk.release.publishing.pipeline import unrecorded_release
from tests.conftest import Command
from tests.conftest import refused as require_refused

UNIT = PrivacyUnit("patient", 3)
SCHEMA = TableSchema(
    (
        Column.integer("age", 0, 99),
        Column.categorical("town", ["Ulm", "Bonn"]),
        Column.boolean("ill", ["no", "yes"]),
    ),
    "ill",
    left_out=("patient",),
    privacy_unit=UNIT,
)
NARROW = TangentOptions(width=4)
PARAMETERS = PrivacyParameters(1.0, 1e-5, Adjacency.ADD_REMOVE)


def visits(persons: int = 40, seed: int = 0) -> pd.DataFrame:
    """Rows of patients in no order, of some of them more than count."""
    random = np.random.default_rng(seed)
    patient = random.integers(0, persons, 5 * persons)
    return pd.DataFrame(
        {
            "patient": [f"p{number}" for number in patient],
            "age": random.integers(0, 100, len(patient)),
            "town": random.choice(["Ulm", "Bonn"], len(patient)),
            "ill": random.choice(["no", "yes"], len(patient)),
        }
    )


def by_hand(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows that count, by another way than the one that is tested."""
    return frame[frame.groupby("patient").cumcount() < UNIT.rows]


def embedded(frame: pd.DataFrame | Path, schema: TableSchema = SCHEMA) -> Embedding:
    return embed(frame, NARROW, SourceOptions(schema))


def records_of(source: BoundedSource, *, size: int, start: int, stop: int) -> NDArray[np.uint8]:
    batches = list(source.batches(size, start, stop))
    assert all(len(batch.labels) == size for batch in batches[:-1])
    return np.concatenate([batch.records for batch in batches])


def test_the_first_rows_of_each_count_and_no_others(capfd: pytest.CaptureFixture[str]) -> None:
    frame = visits()
    made = embedded(frame)
    expected = by_hand(frame)
    over = int((frame.patient.value_counts() > UNIT.rows).sum())
    assert made.records == len(expected) < len(frame)
    said = f"{len(frame) - len(expected)} rows left out: {over} values of {frame.patient.nunique()}"
    assert said in capfd.readouterr().err
    alone = embedded(expected, dataclasses.replace(SCHEMA, privacy_unit=None))
    np.testing.assert_array_equal(made.sums, alone.sums)
    assert "patient" not in [column["name"] for column in made.schema.to_json()["columns"]]


def test_no_more_count_of_a_source_that_was_opened_before() -> None:
    frame = visits()
    made = embed(open_source(frame, SourceOptions(SCHEMA)), NARROW)
    np.testing.assert_array_equal(made.sums, embedded(frame).sums)


def test_the_same_rows_of_other_persons_are_other_data() -> None:
    """A pass over them is not continued: other rows count."""
    frame = visits()
    others = frame.assign(patient=frame.patient.to_numpy()[::-1])
    bounded = [with_bounded_units(open_source(f, SourceOptions(SCHEMA))) for f in (frame, others)]
    assert bounded[0].fingerprint() != bounded[1].fingerprint()


def test_files_and_frames_are_the_same_records(tmp_path: Path) -> None:
    frame = visits()
    parts = [frame[:37], frame[37:90], frame[90:]]
    for number, part in enumerate(parts):
        part.to_csv(tmp_path / f"{number}.csv", index=False)
    (tmp_path / "p").mkdir()
    for number, part in enumerate(parts):
        table = pa.Table.from_pandas(part, preserve_index=False)
        parquet.write_table(table, tmp_path / "p" / f"{number}.parquet")
    made = [embedded(tmp_path), embedded(tmp_path / "p"), embedded(frame)]
    for other in made[1:]:
        np.testing.assert_array_equal(made[0].sums, other.sums)
        np.testing.assert_array_equal(made[0].counts, other.counts)


def test_a_file_that_changes_after_its_rows_were_counted_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which rows count is known by their places: in another order more of a person's would."""
    frame, file = visits(), tmp_path / "a.csv"
    frame.to_csv(file, index=False)

    def then_changed(source: Source) -> Source:
        bounded = with_bounded_units(source)
        frame.sort_values("patient").to_csv(file, index=False)
        os.utime(file, (0, 0))  # however coarse the clock of the file system is
        return bounded

    monkeypatch.setattr("dpntk.embed.pipeline.with_bounded_units", then_changed)
    with pytest.raises(DataError, match="the data changed while they were read"):
        embedded(file)


def test_a_ceiling_does_not_tell_how_many_rows_there_are(dpntk: Command, tmp_path: Path) -> None:
    save_schema(SCHEMA, tmp_path / "s.toml")
    options = ("--schema", "s.toml", "--width", 2, "--budget-eps", 1)
    for rows in (99_999, 100_000):
        frame = pd.concat([visits()] * 500)[:rows].assign(patient=range(rows))
        frame.to_csv(tmp_path / "a.csv", index=False)
        made = dpntk("embed", "a.csv", *options, "-o", f"{rows}.h5")
        assert made.code == 0, made.stderr
        assert load_embedding(f"{rows}.h5").ledger.ceiling == PrivacyBudget(1.0, 1e-5)


@pytest.mark.parametrize(("start", "stop"), [(0, 1), (0, 113), (7, 64), (50, 51), (112, 113)])
def test_any_range_of_rows_that_count_can_be_read(start: int, stop: int) -> None:
    source = with_bounded_units(open_source(visits(), SourceOptions(SCHEMA)))
    assert isinstance(source, BoundedSource)
    assert len(source) == 113
    whole = records_of(source, size=1000, start=0, stop=len(source))
    part = records_of(source, size=5, start=start, stop=stop)
    np.testing.assert_array_equal(part, whole[start:stop])


def test_processes_that_share_the_work_write_what_one_writes(tmp_path: Path) -> None:
    data, output = tmp_path / "a.csv", tmp_path / "shared.h5"
    visits().to_csv(data, index=False)
    for rank in (1, 0):
        with WorkFolder(output, Ranks(rank, 2)) as work:
            try:
                shared = embed(data, NARROW, SourceOptions(SCHEMA), carry_out=work.carry_out)
            except NothingLeft:
                assert rank == 1
    np.testing.assert_array_equal(shared.sums, embedded(data).sums)


@pytest.mark.parametrize("person", ["p0", "p7", "p39"])
@pytest.mark.parametrize("at", ["front", "spread", "end"])
def test_all_rows_of_a_person_change_the_sums_by_less_than_the_noise_hides(
    person: str, at: str
) -> None:
    """Ten rows, the same as one another, before, between or behind those of the others."""
    others = visits()
    others = others[others.patient != person]
    own = pd.DataFrame({"patient": person, "age": 99, "town": "Ulm", "ill": "yes"}, index=range(10))
    first, last = {"front": (-1, -1), "spread": (0, len(others)), "end": (1e9, 1e9)}[at]
    order = np.concatenate([np.arange(len(others)), np.linspace(first, last, 10)])
    both = pd.concat([others, own])
    both = both.iloc[np.argsort(order, kind="stable")]
    made, without = embedded(both), embedded(others)
    scale = noise_for(made, PARAMETERS)
    counts = [int(c) * scale.count_weight for c in made.counts - without.counts]
    difference = [*(made.sums - without.sums).ravel().tolist(), *counts]
    distance = sum(value**2 for value in difference) ** 0.5
    assert 0.99 * scale.sensitivity < distance <= scale.sensitivity


def test_the_noise_is_as_many_times_larger_as_rows_count() -> None:
    made = embedded(visits())
    alone = dataclasses.replace(made, schema=dataclasses.replace(SCHEMA, privacy_unit=None))
    several, one = noise_for(made, PARAMETERS), noise_for(alone, PARAMETERS)
    assert abs(several.sensitivity - UNIT.rows * one.sensitivity) <= UNIT.rows
    assert several.noise_multiplier == one.noise_multiplier
    assert several.sigma >= several.noise_multiplier * several.sensitivity


def test_a_reader_refuses_noise_that_hides_fewer_rows() -> None:
    made = unrecorded_release(embedded(visits()), PARAMETERS)
    require_consistent(made.guarantee, made.feature_map, made.schema)
    more = dataclasses.replace(SCHEMA, privacy_unit=PrivacyUnit("patient", 4))
    for schema in (more, dataclasses.replace(SCHEMA, privacy_unit=None)):
        with pytest.raises(FormatError, match="sensitivity"):
            require_consistent(made.guarantee, made.feature_map, schema)


def test_an_exchange_would_change_how_many_rows_there_are() -> None:
    made = embedded(visits())
    with pytest.raises(BudgetError, match=r"add adjacency=Adjacency\.ADD_REMOVE"):
        noise_for(made, PrivacyParameters(1.0, 1e-5))
    exchanged = unrecorded_release(
        dataclasses.replace(made, schema=dataclasses.replace(SCHEMA, privacy_unit=None)),
        PrivacyParameters(1.0, 1e-5),
    )
    same = exchanged.guarantee.sensitivity * UNIT.rows, exchanged.guarantee.sigma * UNIT.rows
    claimed = dataclasses.replace(exchanged.guarantee, sensitivity=same[0], sigma=same[1])
    with pytest.raises(FormatError, match="add-remove only"):
        require_consistent(claimed, exchanged.feature_map, SCHEMA)


@pytest.mark.usefixtures("hasty_rows")
def test_from_the_commands_to_a_label(dpntk: Command, tmp_path: Path) -> None:
    visits().to_csv("a.csv", index=False)
    (tmp_path / "schema.toml").write_text(UNCONFIRMED)
    unit = ("--unit", "patient", "--rows-per-unit", 3)
    planned = dpntk("plan", "--schema", "schema.toml", "--records", 100, "--eps", 1, *unit,
                    "--adjacency", "add-remove", "--json")  # fmt: skip
    assert json.loads(planned.stdout)["privacy_unit"] == UNIT.to_json()
    made = dpntk("embed", "a.csv", "--schema", "schema.toml", "--width", 4, *unit)
    assert made.code == 0, made.stderr
    assert "dpntk release embedding.h5 --eps 1 --adjacency add-remove" in made.stderr
    (advised,) = re.findall(r"dpntk (plan .* --records) N \(what you would say", made.stderr)
    assert dpntk(*advised.split(), 100).code == 0
    exchanged = dpntk("release", "--eps", 100)
    assert exchanged.code == 1
    assert "add --adjacency add-remove" in exchanged.stderr
    assert dpntk("release", "--eps", 100, "--adjacency", "add-remove").code == 0
    opened = open_any(Path("release.h5"))
    assert opened.release.schema == load_embedding("embedding.h5").schema
    statement = opened.release.statement
    assert "for adding or taking away all rows of any one patient; the number of rows" in statement
    assert "For exchanging all rows of any one patient for those of another" in statement
    assert "all rows of any one patient: at most 3 of them count" in statement
    assert "one record" not in statement
    left_out = len(visits()) - len(by_hand(visits()))
    assert str(left_out) not in statement
    assert "at most 3 of them count" in " ".join(dpntk("inspect").stdout.split())
    assert dpntk("inspect", "--page", "page.html").code == 0
    page = " ".join(Path("page.html").read_text().split())
    assert "knows all rows but those of one patient, and" in page
    assert "Is one patient one person?" in page
    registry = dpntk("inspect", "--registry").stdout
    assert "All rows of one patient; at most 3 of them count" in " ".join(registry.split())
    assert dpntk("generate", "release.h5", "-n", 20).code == 0
    assert list(pd.read_csv("synthetic/table.csv").columns) == ["age", "town", "ill"]


UNCONFIRMED = """
label = "ill"
[[columns]]
name = "patient"
kind = "categorical"
dtype = "string"
categories = ["p1", "p2"]
confirmed = false
[[columns]]
name = "age"
kind = "integer"
dtype = "int64"
lower = 0
upper = 99
[[columns]]
name = "town"
kind = "categorical"
dtype = "string"
categories = ["Ulm", "Bonn"]
[[columns]]
name = "ill"
kind = "boolean"
dtype = "string"
categories = ["no", "yes"]
"""


def test_a_schema_says_it_too(tmp_path: Path) -> None:
    path = tmp_path / "schema.toml"
    path.write_text(f'{UNCONFIRMED}[privacy_unit]\ncolumn = "patient"\nrows = 3\n')
    with pytest.raises(SchemaError, match="it is in no record"):
        read_schema(path)
    path.write_text(UNCONFIRMED)
    known = read_schema(path, privacy_unit=UNIT)
    assert known.privacy_unit == UNIT
    assert known.left_out == ("patient",)
    assert TableSchema.from_json(known.to_json()) == known
    with pytest.raises(SchemaError, match="another privacy unit"):
        known.with_privacy_unit(PrivacyUnit("patient", 2))
    with pytest.raises(SchemaError, match="does not know column 'person'"):
        read_schema(path, accept_from_data=True, privacy_unit=PrivacyUnit("person", 2))
    for wrong in (0, -1, 10_001, 1.0, True, None, "3"):
        document = known.to_json() | {"privacy_unit": {"column": "patient", "rows": wrong}}
        with pytest.raises(SchemaError, match="a whole number"):
            TableSchema.from_json(document)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--unit", "patient"), "--unit patient: declare with --rows-per-unit"),
        (("--rows-per-unit", 2), "--rows-per-unit means nothing without --unit"),
        (("--unit", "person", "--rows-per-unit", 2), "a.csv: there is no column 'person'"),
        (("--unit", "ill", "--rows-per-unit", 2), "label 'ill'"),
    ],
)
def test_what_cannot_be_a_unit(
    dpntk: Command, tmp_path: Path, options: tuple[object, ...], words: str
) -> None:
    visits(5).to_csv("a.csv", index=False)
    left_out = 'left_out = ["patient", "person"]'
    text = UNCONFIRMED.split("[[columns]]\n", 2)
    (tmp_path / "schema.toml").write_text(f"{left_out}\n{text[0]}[[columns]]\n{text[2]}")
    require_refused(dpntk("embed", "a.csv", "--schema", "schema.toml", *options), words)
    assert not Path("embedding.h5").exists()


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (["a", None, "b"], "row 2, column 'patient': there is no value"),
        (["a", "b", "  "], "row 3, column 'patient': there is no value"),
        (["a", "b", ""], "row 3, column 'patient': there is no value"),
        ([1.0, 2.0, 2.0], "is double"),
    ],
)
def test_a_row_has_to_say_whose_it_is(values: list[object], words: str) -> None:
    frame = pd.DataFrame({"patient": values, "age": 1, "town": "Ulm", "ill": "no"})
    with pytest.raises((DataError, SchemaError), match=words):
        embedded(frame)


def test_numbers_in_one_file_and_texts_in_another_are_refused(tmp_path: Path) -> None:
    for name, patient in (("a", ["1", "2"]), ("b", [1, 2])):
        columns = {"patient": patient, "age": [1, 2], "town": ["Ulm"] * 2, "ill": ["no"] * 2}
        parquet.write_table(pa.table(columns), tmp_path / f"{name}.parquet")
    with pytest.raises(SchemaError, match="holds whole numbers, and elsewhere texts"):
        embedded(tmp_path)


@pytest.mark.parametrize(
    ("values", "twins"),
    [
        (["p1", "p2", "p3", "p1"], 0),
        (["7.50", "7.5", "7-0", "70"], 0),
        (["p1", "P1 ", "p2", "p1"], 1),
        (["7", "7.0", "007", "8"], 2),
        (["\ufeffA 1", "A  1", "A\u200b1", "A-1"], 2),
        (["jos\u00e9", "jose\u0301", "jose", "\uff10"], 1),
        ([7, 70, 700, 7], 0),
    ],
)
def test_a_person_who_may_be_taken_for_two_is_said(
    values: list[object], twins: int, capfd: pytest.CaptureFixture[str]
) -> None:
    """Values are told apart to the letter: each of the two has as many rows that count."""
    columns = {"patient": pa.array(values), "age": [1] * 4, "town": ["Ulm"] * 4, "ill": ["no"] * 4}
    pieces = [pa.table(columns).slice(first, 2) for first in (0, 2)]
    whole = pa.concat_tables(pieces)  # two chunks
    source = with_bounded_units(open_source(whole, SourceOptions(SCHEMA)))
    assert len(source) == 4
    said = capfd.readouterr().err
    assert ("taken for different persons" in said) == bool(twins)
    assert not twins or f"patient: {twins} value" in said
    assert not any(str(value) in said for value in values if str(value)[0] in "pj")


def test_persons_may_be_in_several_embeddings_so_they_are_not_merged(tmp_path: Path) -> None:
    for name, seed in (("a", 1), ("b", 2)):
        save_embedding(embedded(visits(seed=seed)), tmp_path / f"{name}.h5")
    with pytest.raises(MergeError, match="embed all data at once, as files of one folder"):
        merge([tmp_path / "a.h5", tmp_path / "b.h5"])


@pytest.mark.parametrize("together_first", [False, True])
def test_releases_for_unlike_units_are_never_added_up(
    dpntk: Command, tmp_path: Path, together_first: bool
) -> None:
    rows, path = dataclasses.replace(SCHEMA, privacy_unit=None), tmp_path / "embedding.h5"
    first, second = (SCHEMA, rows) if together_first else (rows, SCHEMA)
    save_embedding(embedded(visits(), first), path)
    made = dpntk("release", "--eps", 1, "--adjacency", "add-remove")
    assert made.code == 0, made.stderr
    with pytest.raises(SchemaError, match="another privacy unit"):
        save_embedding(embedded(visits(), second), path, overwrite=True)
    other = dataclasses.replace(first, privacy_unit=PrivacyUnit("patient", 2))
    if together_first:  # of the same persons: these add up
        save_embedding(embedded(visits(), other), path, overwrite=True)
        again = dpntk("release", "--eps", 1, "--adjacency", "add-remove", "--compose",
                      "-o", "b.h5")  # fmt: skip
        assert again.code == 0, again.stderr
        assert open_any(Path("b.h5")).release.guarantee.total_releases == 2


def test_nor_are_those_of_other_embeddings_of_the_records(dpntk: Command, tmp_path: Path) -> None:
    rows = dataclasses.replace(SCHEMA, privacy_unit=None)
    for name, schema in (("a", SCHEMA), ("b", rows)):
        save_embedding(embedded(visits(), schema), tmp_path / f"{name}.h5", data_set=name)
        released = dpntk("release", f"{name}.h5", "--eps", 1, "--adjacency", "add-remove",
                         "-o", f"{name}.r")  # fmt: skip
        assert released.code == 0, released.stderr
    ledgers = [load_embedding(tmp_path / f"{name}.h5").ledger for name in "ab"]
    with pytest.raises(BudgetError, match="another privacy unit"):
        total_of(joint_ledger(ledgers), 1e-5)
    one = load_embedding(tmp_path / "a.h5")
    save_embedding(one, tmp_path / "c.h5", data_set="b")
    again = ("release", "c.h5", "--eps", 1, "--adjacency", "add-remove", "--compose", "-o", "c.r")
    require_refused(dpntk(*again), "another privacy unit")


def test_bounds_are_found_for_the_same_unit(dpntk: Command, tmp_path: Path) -> None:
    visits(4000).to_csv("a.csv", index=False)
    private = UNCONFIRMED.replace("lower = 0\nupper = 99", 'bounds = "private"')
    (tmp_path / "schema.toml").write_text(private)
    unit = ("--unit", "patient", "--rows-per-unit", 3)
    looked = dpntk("embed", "a.csv", "--schema", "schema.toml", "--private-bounds", *unit)
    assert looked.code == 0, looked.stderr
    found = dpntk("bounds", "--schema", "schema.toml", "--eps", 1, "--adjacency", "add-remove")
    assert found.code == 0, found.stderr
    bounded = (tmp_path / "bounded.toml").read_text()
    assert "[privacy_unit]" in bounded
    made = dpntk("embed", "a.csv", "--schema", "bounded.toml", "--width", 4)
    assert made.code == 0, made.stderr
    (spent,) = load_embedding("embedding.h5").ledger.all_entries
    assert spent.privacy_unit == "patient"
    assert dpntk("release", "--eps", 1, "--adjacency", "add-remove").code == 0
    edited = re.sub(r"\[privacy_unit\].*\ncolumn.*\nrows.*\n", "", bounded)
    (tmp_path / "edited.toml").write_text(edited)
    require_refused(
        dpntk("embed", "a.csv", "--schema", "edited.toml", "-o", "c.h5"),
        "bounds were found for another privacy unit",
    )


def test_a_grid_does_not_tell_how_many_rows_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpntk.embed.pipeline.DEFAULT_CAPACITY", 50)
    with pytest.raises(SchemaError, match="declare with capacity"):
        embedded(visits())


def test_a_distillation_protects_single_records_alone(dpntk: Command) -> None:
    visits().to_csv("visits.csv", index=False)
    save_schema(SCHEMA, "schema.toml")
    own_key()
    refusal = dpntk("distill", "visits.csv", "--schema", "schema.toml", "--eps", 1)
    require_refused(refusal, "protects single records, not all rows of one patient")
    assert not Path("visits.csv.ledger.json").exists()
