"""How numbers that go together come back from few rows: ours, and a Gaussian copula.

Every run takes a table without a label, most of whose columns are numbers, and holds a quarter of
its rows out by the seed. It embeds and releases the others (epsilon 1, delta 1e-5, replace-one) and
generates as many with the default settings. The schema is what `dpntk schema` drafts from all rows:
it stands in for a data dictionary, and is outside the guarantee. The copula
(benchmarks/baselines/copula.py) gets the same promise and the same bounds.

"R2" is that of ridge regressions on held-out real rows, trained on the rows that were made: the
mean over those numbers for which real rows reach .2, each at least -1.

benchmarks/material/r_tables.py writes tables. Finished runs are kept in
benchmarks/results/correlations.json, so an interrupted table can be resumed; the table is a section
of benchmarks/results/README.md.

Run: python -m benchmarks.correlations NAME=FILE [NAME=FILE ...] [--seeds N] [--epsilon E]
     [--methods M ...]
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np

from dpntk.evaluate.tables.features import features_of
from dpntk.evaluate.tables.options import MOST_RECORDS
from dpntk.evaluate.tables.regressions import REGRESSIONS
from dpntk.evaluate.tables.report import figures_of
from dpntk.evaluate.tables.scores import R2, score_numbers
from dpntk.evaluate.tables.table import Table, read_real_table
from dpntk.evaluate.tables.task import task_for
from dpntk.evaluate.tables.utility import evaluate_tables

from .baselines.copula import copula_rows
from .material.named import named_folder
from .sections import finished, keep, table_head, table_row
from .tables import (
    SEPARATOR,
    Data,
    Run,
    default,
    delta_for,
    drafted,
    independent,
    read,
    real,
    split,
    written,
)

RESULTS = Path(__file__).parent / "results/correlations.json"
HELD_OUT = 0.25
PREDICTABLE = 0.2
FIGURES = (
    "TVD 1-way", "TVD 2-way", "TVD 3-way", "rank correlations off by", "associations off by", R2,
)  # fmt: skip


def copula(data: Data, run: Run) -> Table:
    """A Gaussian copula with the same promise."""
    train = real(data, run)
    return copula_rows(train, run.epsilon, delta_for(len(train)), run.seed)


METHODS: dict[str, Callable[[Data, Run], Table]] = {
    "real records": real,
    "independent columns": independent,
    "default": default,
    "Gaussian copula": copula,
}


def prepare(file: Path, seed: int, folder: Path) -> Data:
    """Split a table at random, and draft its schema.

    Args:
        file: a CSV or Parquet file.
        seed: of the split.
        folder: to make and to write to.
    """
    folder.mkdir()
    train, test = split(read(file), HELD_OUT, seed)
    return written(train, test, drafted(train, test, None), folder)


def r2_of(train: Table, test: Table, target: str) -> float:
    """R2 of a ridge regression for a column of numbers, from all other columns."""
    train, test = _known(train, target), _known(test, target)
    inputs, of_test = features_of(train, test, target)
    model = REGRESSIONS["ridge"].make(0).fit(inputs.scaled, train.columns[target])
    return score_numbers(test.columns[target], model.predict(of_test.scaled))[R2]


def _known(table: Table, target: str) -> Table:
    there = ~np.isnan(table.columns[target])
    return replace(table, columns={name: each[there] for name, each in table.columns.items()})


def predictable(data: Data) -> list[str]:
    """The columns of numbers for which real rows reach an R2 of `PREDICTABLE`."""
    train, test = (read_real_table(path, "train", data.schema) for path in (data.train, data.test))
    numbers = [column.name for column in data.schema.columns if column.kind.numeric]
    return [name for name in numbers if r2_of(train, test, name) >= PREDICTABLE]


def result_of(data: Data, run: Run, targets: Iterable[str]) -> dict[str, float]:
    """The figures of a run.

    Args:
        data: what to embed and test on.
        run: what to do.
        targets: the columns of `predictable`.
    """
    rows = METHODS[run.method](data, run)
    test = read_real_table(data.test, "test", data.schema)
    task = task_for(test, None, 1.0, MOST_RECORDS)
    found = evaluate_tables({run.method: [rows]}, test, task, run.seed)
    figures = figures_of(found[0], found, task)
    reached = [max(r2_of(rows, test, name), -1.0) for name in targets]
    shown = {name: figures[name] for name in FIGURES if name in figures}
    size = {"rows": len(rows), "columns": len(data.schema.columns)}
    return {**shown, **({R2: statistics.fmean(reached)} if reached else {}), **size}


def section(results: dict[str, dict[str, float]]) -> str:
    """All finished runs as Markdown: means over the seeds."""
    lines = [
        "# Correlations in few rows",
        "",
        "Tables of R without a label, most of whose columns are numbers, with drafted schemas; a",
        "quarter of the rows is held out. Epsilon 1 unless it says otherwise, delta 1e-5,",
        "replace-one; means over the seeds, which are also those of the split. R2: of ridge",
        f"regressions on held-out rows, mean over the numbers for which real rows reach"
        f" {PREDICTABLE:g}.",
        "Written by `benchmarks/correlations.py`.",
        "",
        *table_head("table", "rows, columns", "epsilon", "method", "seeds", *FIGURES),
    ]
    order = {method: number for number, method in enumerate(METHODS)}
    groups: dict[tuple[str, float, str], list[dict[str, float]]] = {}
    for key, result in results.items():
        name, method, epsilon, _ = key.split(SEPARATOR)
        groups.setdefault((name, float(epsilon), method), []).append(result)
    for table, noise, method in sorted(groups, key=lambda it: (it[0].lower(), it[1], order[it[2]])):
        runs = groups[table, noise, method]
        size = f"{runs[0]['rows']:,.0f}, {runs[0]['columns']:.0f}"
        cells = [table, size, f"{noise:g}", method, str(len(runs))]
        for figure in FIGURES:
            values = [run[figure] for run in runs if figure in run]
            cells.append(f"{statistics.fmean(values):.3f}" if values else "")
        lines.append(table_row(cells))
    return "\n".join(lines) + "\n"


def main() -> None:
    """Run what is missing, and write results and table after every run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("data", type=named_folder, nargs="+", metavar="NAME=FILE")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    arguments = parser.parse_args()
    results = finished(RESULTS)
    with tempfile.TemporaryDirectory() as name:
        for seed, (data, file) in itertools.product(range(arguments.seeds), arguments.data):
            runs = [Run(data, each, arguments.epsilon, seed) for each in arguments.methods]
            missing = [run for run in runs if run.key not in results]
            if missing:
                prepared = prepare(file, seed, Path(name) / f"{data}-{seed}")
                targets = predictable(prepared)
                for run in missing:
                    results[run.key] = result_of(prepared, run, targets)
                    keep(results, RESULTS, section(results))
            for run in runs:
                print(run.key, results[run.key], flush=True)


if __name__ == "__main__":
    main()
