"""How useful the synthetic tables are: one table, by the same code and settings for all.

Every run: embed the training part, release (epsilon 1, replace-one, delta 1e-5, or 1e-6 where there
are so many rows that 1e-5 would exceed one over their number), generate as many rows with the
default settings, train the classifiers of `dpntk evaluate` on them, and test these on the test
part, which nothing else sees. The seed applies to features, training and classifiers; the noise has
none. If a data set has no test part of its own, a fifth of its rows, drawn at random once, is used.

The schema is `schema.toml` in the data's folder, or the file in benchmarks/schemas that has the
name of the data set, made from its public description. If there is neither, it is what `dpntk
schema` drafts from all rows: then bounds and categories stand in for a data dictionary, and are
outside the guarantee.

--competitors adds MST and AIM, fitted to the same training part at the same epsilon and delta, but
under add-remove, which is what they guarantee (benchmarks/baselines/mst_aim.py).

Finished runs are kept in benchmarks/results/tables.json, so an interrupted table can be resumed;
the table is a section of benchmarks/results/README.md.

Run: python -m benchmarks.tables NAME=PATH:LABEL [NAME=PATH:LABEL ...] [--seeds N] [--methods M ...]
     [--epsilon E] [--keep-negatives NAME=RATE ...] [--competitors]
"""

from __future__ import annotations

import argparse
import itertools
import math
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
from pyarrow import parquet

from dpntk.common.adjacency import Adjacency
from dpntk.common.schema.csv_format import CsvFormat
from dpntk.common.schema.drafts.toml import read_schema
from dpntk.common.schema.table import TableSchema
from dpntk.common.sources.options import SourceOptions
from dpntk.common.sources.tables.csv import is_csv
from dpntk.common.sources.tables.table import find_tables
from dpntk.embed import embed, save_embedding
from dpntk.embed.feature_options.kinds import options_for
from dpntk.embed.inference.schema import draft_schema
from dpntk.evaluate.tables.baselines import independent_columns
from dpntk.evaluate.tables.options import MOST_RECORDS
from dpntk.evaluate.tables.report import figures_of
from dpntk.evaluate.tables.scores import HARD_PRC, HARD_ROC
from dpntk.evaluate.tables.table import Table, read_real_table, read_synthetic_table
from dpntk.evaluate.tables.task import task_for
from dpntk.evaluate.tables.utility import CONSTANT, Row, evaluate_tables
from dpntk.generate import generate
from dpntk.release import PrivacyParameters, release

from .baselines.mst_aim import CELLS, NAMES, environment, rows_of
from .material.named import named_table
from .sections import finished, keep, table_head, table_row

RESULTS = Path(__file__).parent / "results/tables.json"
SCHEMAS = Path(__file__).parent / "schemas"
SEPARATOR = " | "
TEST_SHARE = 0.2
SPLIT_SEED = 0


@dataclass(frozen=True)
class Data:
    """A data set as the runs need it.

    Attributes:
        train: a Parquet file.
        test: likewise, with other rows.
        schema: of both.
    """

    train: Path
    test: Path
    schema: TableSchema


@dataclass(frozen=True)
class Run:
    """One line of results/tables.json: what was run, and with which seed."""

    data: str
    method: str
    epsilon: float
    seed: int

    @property
    def key(self) -> str:
        """Its name in results/tables.json."""
        return SEPARATOR.join((self.data, self.method, f"{self.epsilon:g}", str(self.seed)))


def through_files(
    data: Data, run: Run, features: str, adjacency: Adjacency = Adjacency.REPLACE_ONE
) -> Table:
    """Synthetic rows, by way of the files that users have."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        embedding = embed(
            data.train, options_for(features, seed=run.seed), SourceOptions(schema=data.schema)
        )
        save_embedding(embedding, folder / "embedding.h5")
        delta = delta_for(embedding.records)
        parameters = PrivacyParameters(run.epsilon, delta, adjacency=adjacency)
        release(folder / "embedding.h5", folder / "release.h5", parameters)
        generate(folder / "release.h5", folder / "synthetic", settings={"seed": run.seed})
        return read_synthetic_table(folder / "synthetic")


def delta_for(records: int) -> float:
    """1e-5, or less where that is not well below one in the number of records."""
    return min(1e-5, 10.0 ** math.floor(math.log10(0.5 / records)))


def default(data: Data, run: Run) -> Table:
    """What a user gets who chooses nothing."""
    return through_files(data, run, "ntk")


def default_add_remove(data: Data, run: Run) -> Table:
    """The same, of releases that protect what MST and AIM do: a row more or less."""
    return through_files(data, run, "ntk", Adjacency.ADD_REMOVE)


def rff(data: Data, run: Run) -> Table:
    """Random Fourier features: DP-MERF."""
    return through_files(data, run, "rff")


def hermite(data: Data, run: Run) -> Table:
    """Hermite features: DP-HP."""
    return through_files(data, run, "hermite")


def real(data: Data, _: Run) -> Table:
    """The training part itself: what there is to be had."""
    return read_real_table(data.train, "train", data.schema)


def independent(data: Data, run: Run) -> Table:
    """The training part with its columns shuffled: what one-way marginals are worth."""
    return independent_columns(real(data, run), run.seed)


def competitor(data: Data, run: Run, *, name: str) -> Table:
    """MST or AIM, at the same epsilon and delta."""
    train = real(data, run)
    with tempfile.TemporaryDirectory() as folder:
        return rows_of(train, name, run.epsilon, delta_for(len(train)), run.seed, Path(folder))


ADD_REMOVE = "default, add-remove"
COMPETITORS: dict[str, Callable[[Data, Run], Table]] = {
    f"{name}, add-remove": partial(competitor, name=name) for name in NAMES
}
OURS: dict[str, Callable[[Data, Run], Table]] = {
    "real records": real,
    "independent columns": independent,
    "default": default,
    ADD_REMOVE: default_add_remove,
    "rff (DP-MERF)": rff,
    "hermite (DP-HP)": hermite,
}
METHODS = OURS | COMPETITORS


def prepare(data: str, place: str, folder: Path) -> Data:
    """Write a data set's parts as Parquet, and find its schema or draft one.

    Args:
        data: name of the data set.
        place: PATH:LABEL, a file or a folder of train and test files, and the column to predict.
        folder: to make and to write to.
    """
    file, _, label = place.rpartition(":")
    path = Path(file)
    folder.mkdir()
    files = {s: [Path(str(file)) for file in find_tables(path, s)] for s in ("train", "test")}
    train, test = (pa.concat_tables(map(read, files[split])) for split in ("train", "test"))
    if files["train"] == files["test"]:
        train, test = split(train, TEST_SHARE, SPLIT_SEED)
    beside = path / "schema.toml"
    public = beside if beside.exists() else SCHEMAS / f"{data.lower()}.toml"
    schema = read_schema(public) if public.exists() else drafted(train, test, label)
    return written(train, test, schema, folder)


def split(rows: pa.Table, share: float, seed: int) -> tuple[pa.Table, pa.Table]:
    """The rows to train on, and a share of all, drawn at random, to test on."""
    order = np.random.default_rng(seed).permutation(len(rows))
    held_out = round(share * len(rows))
    return rows.take(order[held_out:]), rows.take(order[:held_out])


def drafted(train: pa.Table, test: pa.Table, label: str | None) -> TableSchema:
    """What `dpntk schema` drafts from all rows."""
    draft = draft_schema(pa.concat_tables([train, test]), label, csv=CsvFormat())
    return draft.settled("the benchmark's rows", accept_from_data=True)


def written(train: pa.Table, test: pa.Table, schema: TableSchema, folder: Path) -> Data:
    """The parts as Parquet files."""
    for name, rows in (("train", train), ("test", test)):
        parquet.write_table(rows, folder / f"{name}.parquet")
    return Data(folder / "train.parquet", folder / "test.parquet", schema)


def read(file: Path) -> pa.Table:
    """A file as pyarrow reads it; texts that say nothing stay texts."""
    return pyarrow.csv.read_csv(file) if is_csv(file) else parquet.read_table(file)


def result_of(data: Data, run: Run, kept_negatives: float) -> dict[str, float]:
    """The figures of a run, and the seconds that it took to make the rows.

    Args:
        data: what to embed and test on.
        run: what to do.
        kept_negatives: if below 1, hard labels are also scored as published tables scored them.
    """
    start = time.perf_counter()
    rows = METHODS[run.method](data, run)
    seconds = time.perf_counter() - start
    test = read_real_table(data.test, "test", data.schema)
    task = task_for(test, None, 1.0, MOST_RECORDS)
    found: list[Row] = evaluate_tables({run.method: [rows]}, test, task, run.seed)
    figures = {row.trained_on: figures_of(row, found, task) for row in found}
    if kept_negatives < 1:
        thinned = task_for(test, None, kept_negatives, MOST_RECORDS)
        for row in evaluate_tables({run.method: [rows]}, test, thinned, run.seed):
            for name in (HARD_ROC, HARD_PRC):
                title = f"{name}, {kept_negatives:g} of negatives"
                figures[row.trained_on][title] = figures_of(row, [row], thinned)[name]
    return {
        **figures[run.method],
        **{f"{CONSTANT} {name}": value for name, value in figures.get(CONSTANT, {}).items()},
        "seconds": round(seconds, 1),
    }


def section(results: dict[str, dict[str, float]]) -> str:
    """All finished runs as Markdown: mean and standard deviation over the seeds."""
    lines = [
        "# Synthetic tables",
        "",
        "Measured by `dpntk evaluate` on real held-out rows: means over twelve classifiers that",
        f"were trained on synthetic rows (at most {MOST_RECORDS:,}, drawn at random), mean and",
        "standard deviation over the seeds. Replace-one unless the method says otherwise; delta",
        "1e-5, with more than 50,000 rows 1e-6. Seconds to embed, release and generate, or to fit",
        "and draw. Schemas are those of `benchmarks/schemas`; MST and AIM (of dpmm) take numbers",
        f"in at most {CELLS} cells between the same bounds.",
        "Written by `benchmarks/tables.py`; all rows with the same settings.",
    ]
    groups: dict[str, dict[tuple[str, str], list[dict[str, float]]]] = {}
    for key, result in results.items():
        data, method, epsilon, _ = key.split(SEPARATOR)
        groups.setdefault(data, {}).setdefault((method, epsilon), []).append(result)
    order = {method: number for number, method in enumerate(METHODS)}
    for data, rows in sorted(groups.items()):
        figures = {
            name: value for runs in rows.values() for run in runs for name, value in run.items()
        }
        names = [name for name in figures if not name.startswith(CONSTANT) and name != "seconds"]
        lines += ["", f"## {data}", "", *table_head("method", "epsilon", "seeds", *names, "s")]
        for method, epsilon in sorted(rows, key=lambda row: (order[row[0]], float(row[1]))):
            runs = rows[method, epsilon]
            spent = method not in ("real records", "independent columns")
            cells = [method, epsilon if spent else "", str(len(runs))]
            for name in names:
                values = [run[name] for run in runs if name in run]
                mean = f"{statistics.mean(values):.3f}" if values else ""
                spread = f" ± {statistics.stdev(values):.3f}" if len(values) > 1 else ""
                cells.append(f"{mean}{spread}")
            seconds = statistics.median(run["seconds"] for run in runs)
            lines.append(table_row([*cells, f"{seconds:.0f}" if spent else ""]))
        constant = [
            f"{figures[f'{CONSTANT} {name}']:.3f}" if f"{CONSTANT} {name}" in figures else ""
            for name in names
        ]
        lines.append(f"| {CONSTANT} | | | {' | '.join(constant)} | |")
    return "\n".join(lines) + "\n"


def add_methods(
    parser: argparse.ArgumentParser, known: Iterable[str], usual: Iterable[str]
) -> None:
    """Add the options that say which methods are run."""
    parser.add_argument("--methods", nargs="+", choices=known, default=list(usual))
    parser.add_argument(
        "--competitors", action="store_true",
        help="add MST and AIM, by a package that is installed in an environment of its own",
    )  # fmt: skip


def methods_of(arguments: argparse.Namespace) -> list[str]:
    """Which methods are run; the environment of competitors is made if they are among them."""
    methods = list(arguments.methods)
    if arguments.competitors:
        methods += [name for name in COMPETITORS if name not in methods]
    if not COMPETITORS.keys().isdisjoint(methods):
        environment()
    return methods


def main() -> None:
    """Run what is missing, and write results and table after every run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("data", type=named_table, nargs="+", metavar="NAME=PATH:LABEL")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument(
        "--keep-negatives", nargs="+", default=[], metavar="NAME=RATE",
        help="also score hard labels as published tables did: Adult=0.4 Census=0.2 Credit=0.002",
    )  # fmt: skip
    add_methods(parser, METHODS, OURS)
    arguments = parser.parse_args()
    methods = methods_of(arguments)
    rates = dict(item.split("=", 1) for item in arguments.keep_negatives)
    results = finished(RESULTS)
    places = dict(arguments.data)
    with tempfile.TemporaryDirectory() as name:
        prepared: dict[str, Data] = {}
        for seed, data, method in itertools.product(range(arguments.seeds), places, methods):
            run = Run(data, method, arguments.epsilon, seed)
            if run.key not in results:
                if data not in prepared:
                    prepared[data] = prepare(data, places[data], Path(name) / str(len(prepared)))
                results[run.key] = result_of(prepared[data], run, float(rates.get(data, 1)))
                keep(results, RESULTS, section(results))
            print(run.key, results[run.key], flush=True)


if __name__ == "__main__":
    main()
