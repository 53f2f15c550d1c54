"""A table: made-up patients, released with epsilon 1, and how near the synthetic columns are.

Run: python examples/table.py FOLDER

FOLDER is made. The release is signed with this machine's key, which is made when it is first
needed.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import csv

from dpntk.embed import SourceOptions, embed, read_schema, save_embedding
from dpntk.evaluate import evaluate
from dpntk.generate import generate
from dpntk.release import PrivacyParameters, release

ROWS = 4000
SCHEMA = """
label = "readmitted"

[[columns]]
name = "age"
kind = "integer"
dtype = "int64"
lower = 0
upper = 120

[[columns]]
name = "ward"
kind = "categorical"
dtype = "string"
categories = ["medicine", "surgery", "maternity"]

[[columns]]
name = "days"
kind = "integer"
dtype = "int64"
lower = 0
upper = 60

[[columns]]
name = "readmitted"
kind = "boolean"
dtype = "string"
categories = ["no", "yes"]
"""
"""What is publicly known: bounds and categories that would do for any such table."""


def patients(seed: int) -> pa.Table:
    """Rows whose columns depend on one another."""
    random = np.random.default_rng(seed)
    ward = random.choice(["medicine", "surgery", "maternity"], size=ROWS, p=[0.5, 0.3, 0.2])
    age = random.normal(np.where(ward == "maternity", 31, 62), np.where(ward == "maternity", 5, 16))
    days = random.exponential(2 + age / 15)
    readmitted = random.random(ROWS) < 1 / (1 + np.exp(4 - age / 25 - days / 8))
    return pa.table(
        {
            "age": age.clip(0, 120).astype(np.int64),
            "ward": ward,
            "days": days.clip(0, 60).astype(np.int64),
            "readmitted": np.where(readmitted, "yes", "no"),
        }
    )


def main(folder: Path) -> None:
    """Write the data, then embed, release, generate and compare."""
    folder.mkdir(parents=True)
    csv.write_csv(patients(seed=0), folder / "train.csv")
    csv.write_csv(patients(seed=1), folder / "test.csv")
    (folder / "schema.toml").write_text(SCHEMA)
    schema = read_schema(folder / "schema.toml")

    # Sensitive, and never to be shared.
    save_embedding(
        embed(folder / "train.csv", source=SourceOptions(schema=schema)), folder / "embedding.h5"
    )

    # May be given to anybody. The embedding's ledger says what was spent.
    release(folder / "embedding.h5", folder / "release.h5", PrivacyParameters(epsilon=1.0))

    # Anywhere, as often as one likes.
    synthetic = generate(folder / "release.h5", folder / "synthetic")
    print(synthetic.sample(3))  # more rows: a DataFrame

    print(evaluate(synthetic, test=folder / "test.csv", baseline=folder / "train.csv"))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
