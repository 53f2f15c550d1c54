"""Who learns a label that depends on three columns at once but on no two of them.

There are ten columns of fair coin flips, and the label is the exclusive or of the first three
(20,000 rows, and 10,000 others to test on). Printed are XGBoost's ROC on real rows and the share of
rows whose label is right: for other real rows, for releases by default and with `--pairs triples`,
and for MST and AIM if they are named (add-remove, see `benchmarks/baselines/mst_aim.py`). A learner
that splits by one column at a time finds such a label only by chance, so each method has several
runs.

Run: python -m benchmarks.ablations.parity [--epsilon E] [--releases N] [--rows N] [--methods M ...]
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from dpntk.common.schema.columns.column import Column
from dpntk.common.schema.table import TableSchema
from dpntk.common.sources.options import SourceOptions
from dpntk.embed import TangentOptions, embed, save_embedding
from dpntk.evaluate.tables.learner import XGBOOST
from dpntk.evaluate.tables.scores import ROC
from dpntk.evaluate.tables.table import Table, read_real_table, read_synthetic_table
from dpntk.generate import TableSettings, generate
from dpntk.release import PrivacyParameters, release

from ..baselines.mst_aim import NAMES, rows_of
from ..tables import delta_for
from .tables import REAL, figures

SEED: Final = 0
COLUMNS: Final = 10
OF_THE_LABEL: Final = 3
TEST_ROWS: Final = 10_000
LABEL: Final = "odd"
SCHEMA: Final = TableSchema(
    (
        *(Column.categorical(f"x{n}", ["0", "1"]) for n in range(COLUMNS)),
        Column.categorical(LABEL, ["0", "1"]),
    ),
    LABEL,
)
OURS: Final = {"default": (), "--pairs triples": ("triples",)}


def write_rows(path: Path, count: int, seed: int) -> Table:
    """Draw rows, and read them as they would be from a file."""
    values = np.random.default_rng(seed).integers(0, 2, (count, COLUMNS))
    odd = values[:, :OF_THE_LABEL].sum(axis=1) % 2
    codes = np.column_stack([values, odd]).astype(str)
    names = [column.name for column in SCHEMA.columns]
    columns = [pa.array(column.tolist()) for column in codes.T]
    parquet.write_table(pa.table(dict(zip(names, columns, strict=True))), path)
    return read_real_table(path, "train", SCHEMA)


def made(train: Path, method: str, epsilon: float, seed: int, folder: Path) -> Table:
    """Synthetic rows, as many."""
    if method == REAL:
        count = parquet.read_metadata(train).num_rows
        return write_rows(folder / "rows.parquet", count, SEED + 2 + seed)
    if method in NAMES:
        rows = read_real_table(train, "train", SCHEMA)
        return rows_of(rows, method, epsilon, delta_for(len(rows)), seed, folder)
    features = TangentOptions(pairs=OURS[method], seed=seed)
    embedding = embed(train, features, SourceOptions(SCHEMA))
    save_embedding(embedding, folder / "embedding.h5")
    parameters = PrivacyParameters(epsilon, delta_for(embedding.records))
    release(folder / "embedding.h5", folder / "release.h5", parameters)
    generate(folder / "release.h5", folder / "synthetic", settings=TableSettings(seed=seed))
    return read_synthetic_table(folder / "synthetic")


def right(table: Table) -> float:
    """The share of rows whose label is the exclusive or."""
    odd = sum(table.columns[f"x{n}"] for n in range(OF_THE_LABEL)) % 2
    return float(np.mean(odd == table.columns[LABEL]))


def main() -> None:
    """Print a table as Markdown, row by row."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--releases", type=int, default=3)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument(
        "--methods", nargs="+", choices=[REAL, *OURS, *NAMES], default=[REAL, *OURS]
    )
    arguments = parser.parse_args()
    print("| | ROC | right labels |\n|---|---|---|")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        train = folder / "train.parquet"
        write_rows(train, arguments.rows, SEED)
        test = write_rows(folder / "test.parquet", TEST_ROWS, SEED + 1)
        for method in arguments.methods:
            for seed in range(arguments.releases):
                at = folder / f"{method} {seed}"
                at.mkdir()
                rows = made(train, method, arguments.epsilon, seed, at)
                roc = figures(method, rows, test)[f"{XGBOOST} {ROC}"]
                print(f"| {method} | {roc:.3f} | {right(rows):.3f} |", flush=True)


if __name__ == "__main__":
    main()
