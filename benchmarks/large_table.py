"""What a large table costs, from its rows to synthetic ones: seconds and memory of each command.

The table is made up: a Parquet file with 20 dependent columns (eight numbers, ten codes of 2 to 40
categories, a date and a label), a tenth of the values missing in four of them. `dpntk embed`,
`release` and `generate` read and write it with default options, epsilon 1, each in a process of its
own, with as many threads as there are cores. Printed are seconds, seconds of processor time (which
exclude what other programs use), and the largest resident memory.

Run: python -m benchmarks.large_table [--rows 1000000]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from dpntk.common.schema.columns.column import Column
from dpntk.common.schema.columns.kinds import ColumnKind, Missing
from dpntk.common.schema.drafts.toml import save_schema
from dpntk.common.schema.table import TableSchema

SEED: Final = 0
PIECE: Final = 100_000
NUMBERS: Final = 8
SIZES: Final = (2, 2, 3, 3, 4, 5, 6, 8, 12, 40)
"""Categories of each column of them."""
FIRST: Final = 16_436
"""Of the days, counted from 1970."""
DAYS: Final = 3652
DPNTK: Final = Path(sys.executable).parent / "dpntk"


def schema() -> TableSchema:
    """Bounds and categories as somebody would declare who knows what the table is of."""
    numbers = [
        Column(
            f"number{n}", ColumnKind.CONTINUOUS, "float64", -5.0, 5.0,
            missing=Missing.INDICATOR if n < 2 else Missing.REFUSED,
        )
        for n in range(NUMBERS)
    ]  # fmt: skip
    codes = [
        Column.categorical(f"code{n}", [f"c{code}" for code in range(size)], missing=n < 2)
        for n, size in enumerate(SIZES)
    ]
    day = Column("day", ColumnKind.DATE, "date32", FIRST, FIRST + DAYS - 1)
    return TableSchema((*numbers, *codes, day, Column.boolean("label", ["no", "yes"])), "label")


def piece(rows: int, random: np.random.Generator) -> pa.Table:
    """Some rows: three hidden numbers of each decide what goes together."""
    hidden = random.normal(size=(rows, 3))
    columns: dict[str, pa.Array] = {}
    for n in range(NUMBERS):
        values = 0.8 * hidden[:, n % 3] + 0.6 * random.normal(size=rows)
        missing = random.random(rows) < 0.1 if n < 2 else None
        columns[f"number{n}"] = pa.array(values, mask=missing)
    for n, size in enumerate(SIZES):
        drawn = 0.7 * hidden[:, n % 3] + 0.7 * random.normal(size=rows)
        code = ((1 + np.tanh(drawn)) / 2 * size).astype(int).clip(0, size - 1)
        missing = random.random(rows) < 0.1 if n < 2 else None
        names = np.array([f"c{number}" for number in range(size)])
        columns[f"code{n}"] = pa.array(names[code].tolist(), mask=missing)
    later = (random.random(rows) ** 0.5 * DAYS).astype(np.int32)
    columns["day"] = pa.array(FIRST + later, pa.int32()).cast(pa.date32())
    ill = hidden @ [1.0, -0.7, 0.5] + random.normal(size=rows) > 1
    columns["label"] = pa.array(np.where(ill, "yes", "no").tolist())
    return pa.table(columns)


def write_table(path: Path, rows: int) -> None:
    """Write the table, a piece at a time."""
    random = np.random.default_rng(SEED)
    with parquet.ParquetWriter(path, piece(1, np.random.default_rng(SEED)).schema) as writer:
        for first in range(0, rows, PIECE):
            writer.write_table(piece(min(PIECE, rows - first), random))


def cost(*arguments: object) -> tuple[float, float, float]:
    """Run a command; returns seconds, those of processor time, and the peak in GiB."""
    start = time.perf_counter()
    command = [str(DPNTK), *map(str, arguments)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)  # noqa: S603
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{command[1]} failed")
    seconds = time.perf_counter() - start
    return seconds, used.ru_utime + used.ru_stime, used.ru_maxrss / 2**20


def main() -> None:
    """Print a table as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rows", type=int, default=1_000_000)
    rows = parser.parse_args().rows
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["XDG_CONFIG_HOME"] = str(folder / "config")
        data, declared = folder / "data.parquet", folder / "schema.toml"
        write_table(data, rows)
        save_schema(schema(), declared)
        embedding, release = folder / "embedding.h5", folder / "release.h5"
        found = {
            "embed": cost("embed", data, "--schema", declared, "-o", embedding),
            "release": cost("release", embedding, "--eps", 1, "-o", release),
            "generate": cost("generate", release, "-o", folder / "synthetic"),
        }
    print("| | seconds | of processor time | peak, GiB |\n|---|---|---|---|")
    for command, (seconds, processor, peak) in found.items():
        print(f"| {command} | {seconds:.0f} | {processor:.0f} | {peak:.2f} |")
    seconds, processor, _ = map(sum, zip(*found.values(), strict=True))
    peak = max(peak for _, _, peak in found.values())
    print(f"| all | {seconds:.0f} | {processor:.0f} | {peak:.2f} |")


if __name__ == "__main__":
    main()
