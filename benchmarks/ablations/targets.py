"""What naming a numeric target is worth: predictions on real rows, with and without it.

Without arguments, the table is made up: six numbers of pairwise correlation .3, two columns of
categories, and a target that all but two of these predict with an R2 of .83. Of a given table,
whose schema has no label, a fifth of the rows is held out for the test. Ridge regression and a
forest learn from synthetic rows. Printed are mean and standard deviation of their R2 over releases.

Run: python -m benchmarks.ablations.targets [TABLE.csv SCHEMA.toml COLUMN] [--rows N] [--releases N]
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import Ridge
from sklearn.metrics import r2_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dpntk import Synthesizer
from dpntk.common.schema.columns.column import Column
from dpntk.common.schema.columns.kinds import ColumnKind
from dpntk.common.schema.drafts.toml import read_schema
from dpntk.common.schema.table import TableSchema
from dpntk.embed import TangentOptions

SEED: Final = 0
DELTA: Final = 1e-5
TARGET: Final = "y"
HELD_OUT: Final = 3000
MADE_UP: Final = TableSchema(
    (
        *(Column(f"x{n}", ColumnKind.CONTINUOUS, "float64", -2.0, 2.0) for n in range(6)),
        Column("c", ColumnKind.CATEGORICAL, "string", categories=("a", "b", "c")),
        Column("d", ColumnKind.CATEGORICAL, "string", categories=("u", "v")),
        Column(TARGET, ColumnKind.CONTINUOUS, "float64", -3.0, 3.0),
    ),
    None,
)


def made_up(rows: int) -> pd.DataFrame:
    """Rows of the made-up table."""
    random = np.random.default_rng(SEED)
    x = (
        random.standard_normal((rows, 6))
        @ np.linalg.cholesky(np.full((6, 6), 0.3) + 0.7 * np.eye(6)).T
    )
    c, d = random.integers(0, 3, rows), random.integers(0, 2, rows)
    y = x @ [1.0, -0.8, 0.6, 0.4, 0, 0] + 0.8 * (c - 1) + 0.6 * d + 0.5 * np.maximum(x[:, 1], 0)
    y += random.standard_normal(rows) * np.sqrt(0.9 * y.var() * (1 / 0.83 - 1))
    table = pd.DataFrame(x.clip(-2, 2), columns=[f"x{n}" for n in range(6)])
    table["c"], table["d"] = np.array(list("abc"))[c], np.array(list("uv"))[d]
    table[TARGET] = ((y - y.mean()) / y.std()).clip(-3, 3)
    return table


def r2(rows: pd.DataFrame, test: pd.DataFrame, target: str) -> list[float]:
    """Of ridge regression and of a forest that learn from some rows, on others."""
    inputs = [pd.get_dummies(table.drop(columns=[target])).astype(float) for table in (rows, test)]
    inputs[0] = inputs[0].reindex(columns=inputs[1].columns, fill_value=0.0)
    models: list[Any] = [
        make_pipeline(StandardScaler(), Ridge()),
        RandomForestRegressor(100, min_samples_leaf=5, random_state=SEED),
    ]
    return [
        r2_score(test[target], model.fit(inputs[0], rows[target]).predict(inputs[1]))
        for model in models
    ]


def main() -> None:
    """Print a table as Markdown, row by row."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("table", nargs="*", metavar="TABLE.csv SCHEMA.toml COLUMN")
    parser.add_argument("--rows", type=int, default=3000)
    parser.add_argument("--releases", type=int, default=3)
    parser.add_argument("--epsilon", type=float, default=1.0)
    arguments = parser.parse_args()
    if arguments.table:
        path, of_schema, target = arguments.table
        schema = read_schema(Path(of_schema))
        table = pd.read_csv(path).sample(frac=1, random_state=SEED)
        held_out = len(table) // 5
    else:
        schema, target, held_out = MADE_UP, TARGET, HELD_OUT
        table = made_up(arguments.rows + held_out)
    test, train = table[:held_out], table[held_out:][: arguments.rows]
    print("| | ridge | forest |\n|---|---|---|")
    print("| the records |", " | ".join(f"{value:.2f}" for value in r2(train, test, target)), "|")
    for named in (None, target):
        found = []
        for number in range(arguments.releases):
            with tempfile.TemporaryDirectory() as folder:
                synthesizer = Synthesizer(
                    arguments.epsilon, DELTA, schema, folder, features=TangentOptions(target=named)
                ).fit(train)
                found.append(r2(synthesizer.sample(len(train), seed=number), test, target))
        means, deviations = np.mean(found, axis=0), np.std(found, axis=0)
        shown = (f"{m:.3f} ± {d:.3f}" for m, d in zip(means, deviations, strict=True))
        print(f"| {'with' if named else 'without'} a target |", " | ".join(shown), "|", flush=True)


if __name__ == "__main__":
    main()
