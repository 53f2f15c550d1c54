"""Tables of few rows and much noise: ours compared with independent noisy columns, MST and AIM.

Every run draws a number of rows of the training part at random by the seed, embeds and releases
them (replace-one) and generates as many with the default settings. All else, classifiers and
distances included, is as in benchmarks/tables.py. "noisy columns" are one-way marginals class by
class, on which the whole budget is spent, each projected to the nearest shares; the columns of a
row are independent. Whatever does worse is worth nothing. --competitors adds MST and AIM, fitted to
the same rows (benchmarks/baselines/mst_aim.py).

Finished runs are kept in benchmarks/results/small_tables.json, so an interrupted table can be
resumed; the table is a section of benchmarks/results/README.md.

Run: python -m benchmarks.small_tables NAME=PATH:LABEL [NAME=PATH:LABEL ...] [--rows N ...]
     [--epsilons E ...] [--seeds N] [--methods M ...] [--competitors]
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from pyarrow import parquet

from dpntk.common.features.marginals.map import MarginalFeatures
from dpntk.common.numerics.simplex import to_simplex
from dpntk.common.sources.options import SourceOptions
from dpntk.embed import embed, save_embedding
from dpntk.evaluate.tables.table import Table, read_real_table
from dpntk.generate.fit.allocation import split_by_shares
from dpntk.generate.kernels.mean_embedding import released_mean
from dpntk.generate.tables.marginals.matching import independent_rows
from dpntk.generate.tables.marginals.released import marginals_of
from dpntk.generate.tables.sampling import to_table
from dpntk.release import PrivacyParameters, release

from . import tables
from .material.named import named_table
from .sections import finished, keep, table_head, table_row
from .tables import (
    ADD_REMOVE,
    COMPETITORS,
    SEPARATOR,
    Data,
    Run,
    default,
    default_add_remove,
    delta_for,
    prepare,
    result_of,
)

RESULTS = Path(__file__).parent / "results/small_tables.json"
ALL = 0
"""Rows: as many as there are."""
_FIGURES = ("ROC", "XGBoost ROC", "F1 weighted", "F1 macro", "TVD 1-way", "TVD 2-way", "seconds")


@dataclass(frozen=True)
class SmallRun:
    """One line of results/small_tables.json."""

    rows: int
    run: Run

    @property
    def key(self) -> str:
        """Its name in results/small_tables.json."""
        return SEPARATOR.join((str(self.rows), self.run.key))


def noisy_columns(data: Data, run: Run) -> Table:
    """One-way marginals class by class, and nothing else."""
    schema = data.schema
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        embedding = embed(data.train, MarginalFeatures.of(schema), SourceOptions(schema=schema))
        save_embedding(embedding, folder / "embedding.h5")
        parameters = PrivacyParameters(run.epsilon, delta_for(embedding.records))
        opened = release(folder / "embedding.h5", folder / "release.h5", parameters)
        given = opened.release
        noisy = marginals_of(released_mean(given), given.feature_map, schema)
        columns = tuple(
            replace(
                column,
                shares=np.stack([to_simplex(shares) for shares in column.shares]),
                noise=np.zeros_like(column.noise),
            )
            for column in noisy
        )
        counts = split_by_shares(embedding.records, given.class_weights)
        random = np.random.default_rng(run.seed)
        made = [
            independent_rows(int(count), label, columns, schema, random)
            for label, count in enumerate(counts)
            if count
        ]
        labels = np.repeat(np.arange(len(counts)), counts)
        rows = to_table(schema, np.concatenate(made), labels)
        parquet.write_table(rows, folder / "rows.parquet")
        return read_real_table(folder / "rows.parquet", "train", schema)


OURS: dict[str, Callable[[Data, Run], Table]] = {
    "default": default,
    ADD_REMOVE: default_add_remove,
    "noisy columns": noisy_columns,
}
METHODS = OURS | COMPETITORS


def some_of(data: Data, rows: int, seed: int, folder: Path) -> Data:
    """The data set with fewer rows to train on.

    Args:
        data: all of it.
        rows: how many; all if `ALL`, or if there are no more.
        seed: of the choice.
        folder: to write to.
    """
    table = parquet.read_table(data.train)
    if rows == ALL or rows >= len(table):
        return data
    chosen = np.random.default_rng(seed).choice(len(table), rows, replace=False)
    path = folder / f"{data.train.parent.name}-{rows}-{seed}.parquet"
    parquet.write_table(table.take(chosen), path)
    return replace(data, train=path)


def section(results: dict[str, dict[str, float]]) -> str:
    """All finished runs as Markdown: means over the seeds."""
    lines = [
        "# Small tables",
        "",
        'As under "Synthetic tables", of fewer rows and at more epsilons: means over the seeds.',
        '"noisy columns": one-way marginals by class with the whole budget, and nothing else.',
        "Written by `benchmarks/small_tables.py`.",
    ]
    groups: dict[str, dict[tuple[int, float, str], list[dict[str, float]]]] = {}
    for key, result in results.items():
        count, data, method, noise, _ = key.split(SEPARATOR)
        cell = (int(count), float(noise), method)
        groups.setdefault(data, {}).setdefault(cell, []).append(result)
    order = {method: number for number, method in enumerate(METHODS)}
    for data, cells in sorted(groups.items()):
        names = [
            name for name in _FIGURES if any(name in run for run in next(iter(cells.values())))
        ]
        columns = table_head("rows", "epsilon", "method", "seeds", *names)
        lines += ["", f"## {data}", "", *columns]
        most = float("inf")
        for rows, epsilon, method in sorted(
            cells, key=lambda cell: (cell[0] or most, cell[1], order[cell[2]])
        ):
            runs = cells[rows, epsilon, method]
            means = [statistics.fmean(run[name] for run in runs) for name in names]
            texts = [
                f"{mean:.0f}" if name == "seconds" else f"{mean:.3f}"
                for name, mean in zip(names, means, strict=True)
            ]
            some = f"{rows:,}" if rows else "all"
            lines.append(table_row([some, f"{epsilon:g}", method, str(len(runs)), *texts]))
    return "\n".join(lines) + "\n"


def main() -> None:
    """Run what is missing, and write results and table after every run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("data", type=named_table, nargs="+", metavar="NAME=PATH:LABEL")
    parser.add_argument("--rows", nargs="+", type=int, default=[1_000, 3_000, 10_000, ALL])
    parser.add_argument("--epsilons", nargs="+", type=float, default=[0.2, 1.0, 10.0])
    parser.add_argument("--seeds", type=int, default=5)
    tables.add_methods(parser, METHODS, OURS)
    arguments = parser.parse_args()
    methods = tables.methods_of(arguments)
    tables.METHODS.update(METHODS)
    results = finished(RESULTS)
    places = dict(arguments.data)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepared = {
            data: prepare(data, place, folder / str(number))
            for number, (data, place) in enumerate(places.items())
        }
        for seed, data, rows, epsilon, method in itertools.product(
            range(arguments.seeds), places, arguments.rows, arguments.epsilons, methods
        ):
            small = SmallRun(rows, Run(data, method, epsilon, seed))
            if small.key not in results:
                some = some_of(prepared[data], rows, seed, folder)
                results[small.key] = result_of(some, small.run, 1.0)
                keep(results, RESULTS, section(results))
            print(small.key, results[small.key], flush=True)


if __name__ == "__main__":
    main()
