"""Rows under a rare condition, beside real held-out rows that satisfy it.

From one release of the training part (epsilon 1, all else as in benchmarks/tables.py), rows are
made under each of several conditions: "drawn and kept", as for common conditions, from at most
100,000 drawn rows, and "held to it", which is what `dpntk generate --where` does if a condition is
rare. "real records" are those of the training part. The distance from the test part's rows under
the condition is the mean total variation distance of columns and of pairs of columns
(`dpntk.evaluate`). There are few real rows under it, so "real records" are far from them, too:
nothing is expected to come nearer. Rows are distinct if they still differ with all numbers cut into
20 cells. The seed applies to training and to draws.

Finished runs are kept in benchmarks/results/conditions.json, so an interrupted table can be
resumed; the table is a section of benchmarks/results/README.md.

Run: python -m benchmarks.conditions NAME=PATH:LABEL [--conditions TEXT ...] [--rows N] [--seeds N]
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np

from dpntk.common.schema.rules.language import parse_condition
from dpntk.common.schema.table import TableSchema
from dpntk.common.sources.options import SourceOptions
from dpntk.common.sources.tables.frames import FrameSource
from dpntk.embed import TangentOptions, embed, save_embedding
from dpntk.evaluate.tables.baselines import rows_of
from dpntk.evaluate.tables.fidelity.marginals import binned, marginal_distance
from dpntk.evaluate.tables.table import Table, read_real_table
from dpntk.generate import generate, load_generator
from dpntk.generate.tables.export import SavedTableGenerator
from dpntk.release import PrivacyParameters, release

from .material.named import named_table
from .sections import Results, finished, keep, table_head, table_row
from .tables import SEPARATOR, Data, delta_for, prepare

RESULTS = Path(__file__).parent / "results/conditions.json"
REAL: Final = "real records"
KEPT: Final = "drawn and kept"
HELD: Final = "held to it"
METHODS: Final = (REAL, KEPT, HELD)
DRAWN: Final = 100_000
"""Rows that `dpntk generate` draws at the most to keep those that fulfil a condition."""
ADULT: Final = (
    "education = Preschool",
    "native_country = Germany",
    'occupation = "Priv-house-serv"',
    'race = "Amer-Indian-Eskimo"',
    "education = Doctorate",
    "age >= 80",
    "hours_per_week >= 80",
    "capital_gain >= 20000",
    "education = Doctorate and sex = Female",
    'marital_status = Widowed and income = ">50K"',
    "native_country = Mexico",
    'workclass = "Federal-gov" and sex = Female and income = ">50K"',
)
"""Of Adult, which 0.15 to 2 % of real records fulfil; chosen by that, before any distance was seen.
"""
_FIGURES: Final = ("rows", "TVD 1-way", "TVD 2-way", "distinct")


def fulfilling(table: Table, where: str) -> Table:
    """The rows of a table that fulfil a condition."""
    condition = parse_condition(where, table.schema.by_name)
    return rows_of(table, np.flatnonzero(condition.truth(table.columns).holds))


def distinct(table: Table) -> float:
    """The share of rows that are left of each kind one, numbers cut into cells."""
    cells = np.stack([binned(table, column) for column in table.schema.columns], axis=1)
    return len(np.unique(cells, axis=0)) / len(table)


def figures_of(rows: Table, test: Table) -> dict[str, float]:
    """How many rows there are, and if there are any, how far they are from held-out ones.

    Args:
        rows: under a condition.
        test: real ones under the same condition.
    """
    found: dict[str, float] = {"rows": len(rows), "held-out rows": len(test)}
    if not len(rows):
        return found
    for ways in (1, 2):
        distance = marginal_distance(rows, test, ways)
        assert distance is not None
        found[f"TVD {ways}-way"] = distance
    return {**found, "distinct": distinct(rows)}


def trained(data: Data, seed: int, folder: Path) -> SavedTableGenerator:
    """A generator of a release of the training part, with the default settings."""
    source = SourceOptions(schema=data.schema)
    embedding = embed(data.train, TangentOptions(seed=seed), source)
    save_embedding(embedding, folder / "embedding.h5")
    parameters = PrivacyParameters(1.0, delta_for(embedding.records))
    release(folder / "embedding.h5", folder / "release.h5", parameters)
    generate(folder / "release.h5", folder / "synthetic", count=1_000, settings={"seed": seed})
    saved = load_generator(folder / "synthetic")
    assert isinstance(saved, SavedTableGenerator)
    return saved


def drawn(saved: SavedTableGenerator, count: int, seed: int, where: str = "") -> Table:
    """Rows of a generator, as a table to evaluate."""
    schema: TableSchema = saved.model.schema
    return Table(
        schema, FrameSource.open(saved.draw(count, seed, where).table, schema).values(), {}
    )


def all_drawn(saved: SavedTableGenerator, where: str, seed: int) -> Table:
    """As many rows as there may be to keep some of: of the classes that may fulfil a condition."""
    schema = saved.model.schema
    condition = parse_condition(where, schema.by_name)
    codes = range(len(schema.classes)) if schema.label is not None else ()
    possible = [condition.possible(schema.by_name, {str(schema.label): code}) for code in codes]
    weights = saved.class_weights * (possible or [True])
    return drawn(replace(saved, class_weights=weights / weights.sum()), DRAWN, seed)


def measured(
    data: Data,
    conditions: list[str],
    count: int,
    seed: int,
    folder: Path,
    known: Results,
    name: str,
) -> Iterator[tuple[str, dict[str, float]]]:
    """Runs that are not known yet, one by one, by their names.

    Args:
        data: to release and to compare with.
        conditions: on its rows.
        count: how many rows under each.
        seed: of all.
        folder: to write to.
        known: runs that are done.
        name: of the data set.
    """
    keys = {
        (method, where): SEPARATOR.join((name, where, method, str(seed)))
        for method in METHODS
        for where in conditions
    }
    if not any(key not in known for key in keys.values()):
        return
    train = read_real_table(data.train, "train", data.schema)
    test = read_real_table(data.test, "test", data.schema)
    saved = trained(data, seed, folder)
    label = data.schema.label
    of_all: dict[str, Table] = {}
    for (method, where), key in keys.items():
        if key in known:
            continue
        if method == HELD:
            rows = drawn(saved, count, seed, where)
        elif method == REAL:
            rows = fulfilling(train, where)
        else:
            of_label = where if label in parse_condition(where, data.schema.by_name).names else ""
            if of_label not in of_all:
                of_all[of_label] = all_drawn(saved, where, seed)
            rows = fulfilling(of_all[of_label], where)
            rows = rows_of(rows, np.arange(min(count, len(rows))))
        share = {"share": len(fulfilling(train, where)) / len(train)}
        yield key, {**share, **figures_of(rows, fulfilling(test, where))}


def section(results: Results) -> str:
    """All finished runs as Markdown: means over the seeds, and over conditions that all can do."""
    lines = [
        "# Rows under a rare condition",
        "",
        "How far rows that are made under a condition, and real ones of the training part, are",
        "from real held-out rows that fulfil it (epsilon 1; means over the seeds). The real ones",
        "are no nearer because both are few. Distinct: the share of rows that differ, with numbers",
        "cut into 20 cells.",
        "Means are over the conditions of which any rows were drawn and kept.",
        "Written by `benchmarks/conditions.py`.",
    ]
    runs: dict[str, dict[str, dict[str, list[dict[str, float]]]]] = {}
    for key, result in results.items():
        data, where, method, _ = key.split(SEPARATOR)
        runs.setdefault(data, {}).setdefault(where, {}).setdefault(method, []).append(result)
    for data, conditions in sorted(runs.items()):
        columns = table_head("condition", "of real", "method", *_FIGURES)
        lines += ["", f"## {data}", "", *columns]
        means: dict[str, list[list[float]]] = {}
        by_share = sorted(conditions.items(), key=lambda item: share_of(item[1]))
        for where, methods in by_share:
            share = f"{share_of(methods):.2%}"
            cells = {
                method: [[run[name] for run in methods[method] if name in run] for name in _FIGURES]
                for method in METHODS
                if method in methods
            }
            complete = len(cells) == len(METHODS) and all(all(row) for row in cells.values())
            for method, row in cells.items():
                figures = [statistics.fmean(values) if values else None for values in row]
                lines.append(table_row([f"`{where}`", share, method, *_cells(figures)]))
                if complete:
                    means.setdefault(method, []).append([value or 0.0 for value in figures])
        for method, rows in means.items():
            average = [statistics.fmean(column) for column in zip(*rows, strict=True)]
            texts = " | ".join(_cells([*average]))
            lines.append(f"| mean of {len(rows)} | | {method} | {texts} |")
    return "\n".join(lines) + "\n"


def share_of(methods: dict[str, list[dict[str, float]]]) -> float:
    """Of the records that were released, how many fulfil a condition."""
    return next(iter(methods.values()))[0]["share"]


def _cells(figures: list[float | None]) -> list[str]:
    count, *others = figures
    texts = ["" if value is None else f"{value:.3f}" for value in others]
    return [f"{count or 0:,.0f}", *texts]


def main() -> None:
    """Run what is missing, and write results and table after every run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("data", type=named_table, metavar="NAME=PATH:LABEL")
    parser.add_argument("--conditions", nargs="+", default=list(ADULT), metavar="TEXT")
    parser.add_argument("--rows", type=int, default=1_000)
    parser.add_argument("--seeds", type=int, default=1)
    arguments = parser.parse_args()
    name, place = arguments.data
    results = finished(RESULTS)
    with tempfile.TemporaryDirectory() as temporary:
        data = prepare(name, place, Path(temporary) / "data")
        for seed in range(arguments.seeds):
            folder = Path(temporary) / str(seed)
            folder.mkdir()
            asked = (arguments.conditions, arguments.rows, seed, folder, results, name)
            for key, figures in measured(data, *asked):
                results[key] = {name: round(value, 4) for name, value in figures.items()}
                keep(results, RESULTS, section(results))
                print(key, results[key], flush=True)


if __name__ == "__main__":
    main()
