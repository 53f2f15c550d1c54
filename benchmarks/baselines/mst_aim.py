"""MST and AIM beside ours: the package dpmm, in an environment of its own.

Both fit a graphical model to noisy marginals (McKenna, Miklau and Sheldon 2021, arXiv 2108.04978;
McKenna, Mullins, Sheldon and Miklau 2022, arXiv 2201.12677). They take codes: categories as the
schema lists them, numbers by their cell between the declared bounds, of which there are at most
`CELLS`; a generated number lies anywhere in its cell. Their guarantee is for adding or removing a
record, which asks for less noise than exchanging one. They are told how many rows to make.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import venv
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dpntk.common.schema.columns.codes import MISSING
from dpntk.common.schema.columns.column import Column
from dpntk.common.schema.columns.kinds import ColumnKind, Missing, Transform
from dpntk.common.schema.encoding import NumericEncoding
from dpntk.common.schema.table import TableSchema
from dpntk.evaluate.tables.table import Table

CELLS = 32
NAMES = ("MST", "AIM")
_HERE = Path(__file__).parent
_REQUIREMENTS = _HERE / "mst_aim.txt"
_SCRIPT = _HERE / "dpmm_rows.py"

Codes = NDArray[np.int64]


def environment() -> Path:
    """The Python that has dpmm; made in the user's cache the first time.

    Raises:
        SystemExit: this Python is too new for dpmm, or it cannot be installed.
    """
    if sys.version_info >= (3, 12):
        raise SystemExit("--competitors: dpmm runs under Python 3.10 and 3.11 only")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    version = hashlib.sha256(_REQUIREMENTS.read_bytes()).hexdigest()[:12]
    folder = cache / "dpntk-benchmarks" / f"competitors-{version}"
    ready, python = folder / "ready", folder / "bin" / "python"
    if not ready.exists():
        venv.create(folder, clear=True, with_pip=True)
        install = [str(python), "-m", "pip", "install", "-q", "-r", str(_REQUIREMENTS)]
        done = subprocess.run(install, check=False)  # noqa: S603
        if done.returncode:
            raise SystemExit(f"--competitors: {_REQUIREMENTS.name} cannot be installed (see above)")
        ready.touch()
    return python


def rows_of(train: Table, method: str, epsilon: float, delta: float, seed: int, at: Path) -> Table:
    """Rows that a competitor makes of a training part, as many as it has.

    Args:
        train: the rows to fit.
        method: one of `NAMES`.
        epsilon: under add-remove.
        delta: likewise.
        seed: of all but the noise, and of where in their cells numbers lie.
        at: a folder for files that pass to and fro.
    """
    codes, sizes = codes_of(train)
    job = {"method": method, "epsilon": epsilon, "delta": delta, "seed": seed, "sizes": sizes}
    (at / "job.json").write_text(json.dumps(job))
    np.save(at / "rows.npy", codes)
    files = [str(at / name) for name in ("job.json", "rows.npy", "made.npy")]
    subprocess.run([str(environment()), str(_SCRIPT), *files], check=True)  # noqa: S603
    return table_of(np.load(at / "made.npy"), train.schema, np.random.default_rng(seed))


def codes_of(table: Table) -> tuple[Codes, list[int]]:
    """Rows as codes, and how many codes each column has; the last one says that a value is missing.

    Returns:
        int64 (n, columns), and as many sizes.
    """
    codes, sizes = [], []
    for column in table.schema.columns:
        values = table.columns[column.name]
        if column.kind.numeric:
            encoding, cells = _encoding(column), _cells(column)
            share = encoding.share(np.where(np.isnan(values), encoding.bounds[0], values))
            code = np.rint(share.clip(0, 1) * (cells - 1)).astype(np.int64)
            code[np.isnan(values)] = cells
        else:
            code, cells = values.copy(), len(column.categories)
            code[values == MISSING] = cells
        codes.append(code)
        sizes.append(cells + (column.missing is not Missing.REFUSED))
    return np.stack(codes, axis=1), sizes


def table_of(codes: Codes, schema: TableSchema, random: np.random.Generator) -> Table:
    """The inverse of `codes_of`, but for where in its cell a number lies."""
    columns: dict[str, NDArray[np.float64] | Codes] = {}
    for column, code in zip(schema.columns, codes.T, strict=True):
        if not column.kind.numeric:
            columns[column.name] = np.where(code == len(column.categories), MISSING, code)
            continue
        cells = _cells(column)
        place = (code + random.uniform(-0.5, 0.5, len(code))) / (cells - 1)
        values = _encoding(column).at(place.clip(0, 1))
        if column.kind is ColumnKind.INTEGER:
            values = np.rint(values)
        columns[column.name] = np.where(code == cells, np.nan, values)
    return Table(schema, columns, {})


def _encoding(column: Column) -> NumericEncoding:
    return NumericEncoding(column, CELLS)


def _cells(column: Column) -> int:
    if column.kind is ColumnKind.INTEGER and column.transform is Transform.NONE:
        lower, upper = _encoding(column).bounds
        return min(CELLS, int(upper - lower) + 1)
    return CELLS
