"""Tables of R's packages, out of an archive as pydataset has one."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest
from pyarrow import csv

from benchmarks.material import r_tables

ROWS = '"","id","age","sex"\n"1",7,30,"f"\n"2",8,41,"m"\n'


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package that would raise if its code were run, with an archive of all tables."""
    folder = tmp_path / "packages" / "pydataset"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("raise RuntimeError('its code was run')\n")
    with tarfile.open(folder / "resources.tar.gz", "w:gz") as packed:
        for name, of in r_tables.TABLES.items():
            entry = tarfile.TarInfo(f"resources/rdata/csv/{of}/{name}.csv")
            entry.size = len(ROWS)
            packed.addfile(entry, io.BytesIO(ROWS.encode()))
    monkeypatch.syspath_prepend(tmp_path / "packages")
    return folder


@pytest.mark.usefixtures("package")
def test_tables_are_written_without_the_numbers_of_their_rows(tmp_path: Path) -> None:
    r_tables.main(tmp_path / "made")
    assert {path.stem for path in (tmp_path / "made").iterdir()} == set(r_tables.TABLES)
    table = csv.read_csv(tmp_path / "made" / "Train.csv")
    assert table.to_pydict() == {"age": [30, 41], "sex": ["f", "m"]}


def test_without_the_package_one_line_says_so(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="pydataset is not installed"):
        r_tables.main(tmp_path)
