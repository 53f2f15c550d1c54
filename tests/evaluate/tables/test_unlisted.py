"""Real rows may hold categories that the schema does not list: they count as a difference."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dpntk.common.errors import DataError
from dpntk.common.schema.columns.codes import MISSING, UNLISTED
from dpntk.common.schema.columns.column import Column
from dpntk.common.schema.table import TableSchema
from dpntk.embed import SourceOptions, embed
from dpntk.evaluate import TableOptions, evaluate
from dpntk.evaluate.html.tables import view_tables
from dpntk.evaluate.tables.fidelity.distances import distances
from dpntk.evaluate.tables.table import Table, read_real_table

COUNTRY = Column.categorical("country", ["de", "fr"], missing=True)
SCHEMA = TableSchema(
    (COUNTRY, Column.integer("age", 0, 100), Column.categorical("job", ["a", "b", "c"])), "job"
)


pytestmark = pytest.mark.usefixtures("two_kinds")


def rows(countries: list[str | None], jobs: str = "ab") -> pd.DataFrame:
    count = len(countries)
    return pd.DataFrame(
        {
            "country": countries,
            "age": np.arange(count) % 50,
            "job": [jobs[i % len(jobs)] for i in range(count)],
        }
    )


def read(frame: pd.DataFrame, schema: TableSchema = SCHEMA) -> Table:
    return read_real_table(frame, "test", schema)


def test_they_are_a_cell_beside_that_of_missing_values(capsys: pytest.CaptureFixture[str]) -> None:
    test = read(rows(["de", "it", None, "es"]))
    assert test.columns["country"].tolist() == [0, UNLISTED, MISSING, UNLISTED]
    assert "in no category, counted as one more: country in 2 rows" in capsys.readouterr().err
    synthetic = read(rows(["de", "de", None, None]))
    # Of de, missing and not listed there are 2, 2, 0 and 1, 1, 2 of four.
    assert distances(synthetic, test).columns["country"] == 0.5
    assert set(distances(test, test).figures.values()) == {0}


def test_they_are_shown_by_themselves() -> None:
    bars = view_tables([read(rows(["de", "fr"])), read(rows(["de", "it"]))]).bars
    assert bars[0].rows == [("de", [0.5, 0.5]), ("fr", [0.5, 0.0]), ("(not listed)", [0.0, 0.5])]
    assert bars[2].rows == [("a", [0.5, 0.5]), ("b", [0.5, 0.5]), ("c", [0.0, 0.0])]


def test_a_record_of_one_is_in_no_category() -> None:
    one = Column.categorical("one", ["x"])
    ranked = Column.categorical("ranked", ["low", "high"], ordered=True)
    schema = TableSchema((one, ranked))
    frame = pd.DataFrame({"one": ["x", "y"], "ranked": ["high", "highest"]})
    assert read(frame, schema).records().tolist() == [[255, 255, 0, 255], [0, 0, 0, 0]]


def test_tables_are_evaluated_with_them_in_test_baseline_and_members() -> None:
    synthetic = rows(["de", "fr"] * 40, "abc")
    strange = rows(["de", "fr", "it", "es"] * 20, "abcd")
    options = TableOptions(schema=SCHEMA, members=strange)
    found = evaluate(synthetic, test=strange, baseline=strange, tables=options).to_json()
    of_synthetic, real = found["rows"][:2]
    assert of_synthetic["TVD 1-way"] == pytest.approx((0.5 + 0 + 0.25) / 3)
    assert real["TVD 1-way"] == real["TVD 3-way, 100 bins"] == 0
    # A class that is not listed is never predicted from synthetic rows, so it costs what it is.
    assert of_synthetic["F1 weighted"] < 0.75 < real["F1 weighted"]


def test_of_a_label_with_two_classes_they_are_refused() -> None:
    schema = replace(
        SCHEMA,
        label="country",
        columns=(replace(COUNTRY, missing=SCHEMA.columns[1].missing), *SCHEMA.columns[1:]),
    )
    with pytest.raises(DataError, match="row 2, column 'country': the value is none of its"):
        read(rows(["de", "it"]), schema)


def test_synthetic_rows_and_embeddings_refuse_them(tmp_path: Path) -> None:
    options = TableOptions(schema=SCHEMA)
    with pytest.raises(DataError, match="is none of its categories"):
        evaluate(rows(["de", "it"]), test=rows(["de", "fr"]), tables=options)
    with pytest.raises(DataError, match="is none of its categories"):
        embed(rows(["de", "it"]), source=SourceOptions(schema=SCHEMA))
