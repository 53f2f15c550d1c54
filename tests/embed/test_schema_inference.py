"""What a draft says to its owner of the table that it is of."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from dpntk.embed import draft_schema


def test_a_label_that_is_missing_in_some_rows_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "a.csv"
    table.write_text("x,lg\n" + "".join(f"{i},{('AL', 'NL', 'NA')[i % 3]}\n" for i in range(30)))
    draft_schema(table, "lg")
    assert "lg: without a value in 10 rows, and a record needs a label" in capsys.readouterr().err
    draft_schema(table)
    assert "lg" not in capsys.readouterr().err

    (folder := tmp_path / "parts").mkdir()
    for name, labels in (("a", pa.nulls(7)), ("b", pa.array(["u", "v", None]))):
        rows = {"x": pa.array(range(len(labels))), "lg": labels}
        parquet.write_table(pa.table(rows), folder / f"{name}.parquet")
    draft_schema(folder, "lg")
    assert "lg: without a value in 8 rows" in capsys.readouterr().err
