"""The command `dpntk demo`: example data to try everything on."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Final

import click
import numpy as np
import pyarrow as pa
from pyarrow import csv

from ..display.console import console
from ..display.text import typed
from ..errors import OutputError
from ..storage.atomic import write_atomically, write_failures
from .default_paths import EMBEDDING
from .options import output_option

_ROWS: Final = {"train": 4_000, "test": 1_000}
_EVERY: Final = 5
"""One image in this many is a test image."""
_SCHEMA: Final = """\
# What is publicly known of the table: it would do for any hospital.
label = "readmitted"

[[columns]]
name = "age"
kind = "integer"
dtype = "int64"
lower = 0
upper = 120

[[columns]]
name = "sex"
kind = "categorical"
dtype = "string"
categories = ["f", "m", "x"]

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
transform = "log1p"

[[columns]]
name = "cost"
kind = "continuous"
dtype = "float64"
lower = 100.0
upper = 100000.0
transform = "log1p"
decimals = 2

[[columns]]
name = "readmitted"
kind = "boolean"
dtype = "string"
categories = ["no", "yes"]
"""


@click.command("demo")
@click.option("--table", is_flag=True, help="Made-up patients, and their schema.")
@output_option("The folder to make.", "demo")
def command(table: bool, output: Path) -> None:
    """Write a small example data set: images of digits or, with --table, made-up patients.

    It has a training and a test part, and is the same each time: the 1,797 digits of 8 x 8 pixels
    that come with scikit-learn, or 5,000 rows of six columns.
    """
    with write_failures(output):
        try:
            output.mkdir(parents=True)
        except FileExistsError as error:
            raise OutputError(
                f"{output} is there already: choose another folder with -o"
            ) from error
    if table:
        for seed, (part, rows) in enumerate(_ROWS.items()):
            write_atomically(output / f"{part}.csv", _as_csv(_patients(rows, seed)))
        write_atomically(output / "schema.toml", _SCHEMA.encode())
        data, options = output / "train.csv", f" --schema {typed(output / 'schema.toml')}"
    else:
        for part, content in _digits().items():
            write_atomically(output / f"{part}.npz", content)
        data, options = output / "train.npz", " --classes 10"
    embedding = typed(output / EMBEDDING)
    console.print(
        f"wrote {output}: data that are nobody's",
        f"next: dpntk embed {typed(data)}{options} -o {embedding}",
    )


def _patients(rows: int, seed: int) -> pa.Table:
    """Rows with dependent columns, about people who do not exist."""
    random = np.random.default_rng(seed)
    ward = random.choice(["medicine", "surgery", "maternity"], size=rows, p=[0.5, 0.3, 0.2])
    birth = ward == "maternity"
    sex = np.where(birth, "f", random.choice(["f", "m", "x"], size=rows, p=[0.48, 0.51, 0.01]))
    age = random.normal(np.where(birth, 31, 62), np.where(birth, 5, 16)).clip(0, 120)
    days = random.exponential(2 + age / 15).clip(0, 60)
    by_ward = np.select([ward == "surgery", birth], [9_000, 3_000], 1_500)
    cost = random.lognormal(np.log(by_ward + 700 * days), 0.4).clip(100, 100_000)
    readmitted = random.random(rows) < 1 / (1 + np.exp(4 - age / 25 - days / 8))
    return pa.table(
        {
            "age": age.astype(np.int64),
            "sex": sex,
            "ward": ward,
            "days": days.astype(np.int64),
            "cost": cost.round(2),
            "readmitted": np.where(readmitted, "yes", "no"),
        }
    )


def _as_csv(table: pa.Table) -> bytes:
    content = io.BytesIO()
    csv.write_csv(table, content)
    return content.getvalue()


def _digits() -> dict[str, bytes]:
    """Archives of images uint8 (n, 8, 8) and their classes."""
    from sklearn.datasets import load_digits  # takes a second, which --help and --table save

    digits = load_digits()
    images = np.rint(digits.images / 16 * 255).astype(np.uint8)
    is_test = np.arange(len(images)) % _EVERY == _EVERY - 1
    parts = {}
    for part, chosen in {"train": ~is_test, "test": is_test}.items():
        content = io.BytesIO()
        np.savez_compressed(content, x=images[chosen], y=digits.target[chosen])
        parts[part] = content.getvalue()
    return parts
