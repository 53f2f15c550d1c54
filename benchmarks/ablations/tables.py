"""What the choices in the table generator are worth: one table, for a data set.

The training part without a fifth of its rows is embedded and released (replace-one), once for each
choice of features. Every variant makes as many rows, and the classifiers of `dpntk evaluate` that
learn from them are tested on the fifth that was held out. The test part is not read. Differences of
.01 to .02 between single runs are noise.

Run: python -m benchmarks.ablations.tables NAME=PATH:LABEL TABLE [--epsilon E] [--rows N]
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from pyarrow import parquet

from dpntk.common.schema.table import TableSchema
from dpntk.common.sources.options import SourceOptions
from dpntk.embed import FeatureOptions, TangentOptions, embed, save_embedding
from dpntk.evaluate.tables.options import MOST_RECORDS
from dpntk.evaluate.tables.report import figures_of
from dpntk.evaluate.tables.table import Table, read_real_table
from dpntk.evaluate.tables.task import task_for
from dpntk.evaluate.tables.utility import evaluate_tables
from dpntk.generate import TableSettings
from dpntk.generate.kernels.mean_embedding import pooled_mean
from dpntk.generate.tables import reweighting
from dpntk.generate.tables.marginals.released import marginals_of
from dpntk.generate.tables.moves import resample
from dpntk.generate.tables.pipeline import model_of_columns
from dpntk.generate.tables.sampling import RowModel, corrected_rows, draw_rows
from dpntk.generate.tables.training import train_table
from dpntk.release import PrivacyParameters, Release, open_release, release

from ..tables import Data, delta_for, prepare

SEED = 0
HELD_OUT = 0.2
REAL = "the records"


@dataclass(frozen=True)
class Variant:
    """What differs from the defaults.

    Attributes:
        features: of `embed`.
        settings: of `TableSettings`.
        constants: module and name to value.
        matched: whether columns are moved to the released marginals.
        reweighted: whether rows are drawn by their weights, not all alike.
        refined: whether rows are put together anew by a Markov chain.
    """

    features: FeatureOptions = field(default_factory=TangentOptions)
    settings: Mapping[str, Any] = field(default_factory=dict)
    constants: Mapping[tuple[ModuleType, str], float] = field(default_factory=dict)
    matched: bool = True
    reweighted: bool = True
    refined: bool = True


TABLES: dict[str, dict[str, Variant]] = {
    "steps": {
        "generator": Variant(matched=False, reweighted=False, refined=False),
        "marginals matched": Variant(reweighted=False, refined=False),
        "reweighted": Variant(refined=False),
        "refined": Variant(),
    },
    "marginals": {
        "no marginals": Variant(TangentOptions(marginals=0.0)),
        **{
            f"weight {weight:g} in the release, {loss:g} in training": Variant(
                TangentOptions(marginals=weight), {"marginals_loss": float(loss)}, refined=False
            )
            for weight in (0.4, 0.7)
            for loss in (1, 10, 30, 100)
        },
        "all pairs, weight 0.6": Variant(TangentOptions(marginals=0.6, pairs=("all",))),
    },
    "moments": {
        f"weight {weight:g}": Variant(TangentOptions(moments=weight)) for weight in (0.0, 0.2, 0.3)
    },
    "training": {
        "1,500 steps of 400": Variant(refined=False),
        "3,000 steps": Variant(settings={"steps": 3000}, refined=False),
        "batches of 1,000": Variant(settings={"batch": 1000}, refined=False),
    },
    "reweighting": {
        f"k = {k:g}": Variant(constants={(reweighting, "CAUTION"): k}, refined=False)
        for k in (0.05, 0.15, 0.25, 0.6, 1)
    },
    "resampling": {
        f"k = {k:g}": Variant(constants={(resample, "CAUTION"): k})
        for k in (0.03, 0.05, 0.07, 0.1, 0.15, 0.3)
    },
}


def split(data: Data, rows: int | None, folder: Path) -> tuple[Path, Path]:
    """The training part, but for a fifth of its rows, and that fifth; both as files."""
    whole = parquet.read_table(data.train)
    order = np.random.default_rng(SEED).permutation(len(whole))
    held_out = round(HELD_OUT * len(whole))
    parts = folder / "fitted.parquet", folder / "held-out.parquet"
    parquet.write_table(whole.take(order[held_out:][:rows]), parts[0])
    parquet.write_table(whole.take(order[:held_out]), parts[1])
    return parts


def released(train: Path, schema: TableSchema, features: FeatureOptions, eps: float) -> Release:
    """A release of rows, by way of the files that users have."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        embedding = embed(train, features, SourceOptions(schema=schema))
        save_embedding(embedding, folder / "embedding.h5")
        parameters = PrivacyParameters(eps, delta_for(embedding.records))
        release(folder / "embedding.h5", folder / "release.h5", parameters)
        return open_release(folder / "release.h5").release


def model_of(release: Release, variant: Variant) -> RowModel:
    """What the rows of a variant are drawn from: of a network, unless they are refined."""
    if variant.refined and (known := model_of_columns(release, SEED)) is not None:
        return known
    schema = release.schema
    assert isinstance(schema, TableSchema)
    network = train_table(release, TableSettings(**{"seed": SEED, **variant.settings})).generator
    marginals = marginals_of(pooled_mean(release), release.feature_map, schema)
    marginals = marginals if variant.matched else ()
    candidates = corrected_rows(network, marginals, torch.Generator().manual_seed(SEED))
    chosen = reweighting.reweighting_of(release, candidates) if variant.reweighted else None
    return RowModel(schema, network, marginals, chosen)


def made(release: Release, variant: Variant, folder: Path) -> Table:
    """Rows as a variant makes them."""
    schema = release.schema
    assert isinstance(schema, TableSchema)
    with ExitStack() as stack:
        for (module, name), value in variant.constants.items():
            stack.enter_context(patch.object(module, name, value))
        rows = draw_rows(
            model_of(release, variant), release.guarantee.records, release.class_weights, SEED
        ).table
    parquet.write_table(rows, folder / "rows.parquet")
    return read_real_table(folder / "rows.parquet", "train", schema)


def figures(name: str, rows: Table, test: Table) -> dict[str, float]:
    """What classifiers learn from some rows, and how near their columns are to the real ones."""
    task = task_for(test, None, 1.0, MOST_RECORDS)
    found = evaluate_tables({name: [rows]}, test, task, SEED)
    return figures_of(found[0], found, task)


def show(name: str, found: Mapping[str, float]) -> None:
    """Print a row."""
    print(f"| {name} | {' | '.join(f'{value:.3f}' for value in found.values())} |", flush=True)


def main() -> None:
    """Print a table as Markdown, row by row."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("data", metavar="NAME=PATH:LABEL")
    parser.add_argument("table", choices=TABLES)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--rows", type=int, help="embed no more than so many")
    arguments = parser.parse_args()
    name, _, place = arguments.data.partition("=")
    releases: dict[FeatureOptions, Release] = {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        data = prepare(name, place, folder / "data")
        train, held_out = split(data, arguments.rows, folder)
        test = read_real_table(held_out, "test", data.schema)
        real = figures(REAL, read_real_table(train, "train", data.schema), test)
        print(f"| epsilon {arguments.epsilon:g} | {' | '.join(real)} |")
        print("|---" * (1 + len(real)) + "|")
        show(REAL, real)
        for variant_name, variant in TABLES[arguments.table].items():
            if variant.features not in releases:
                releases[variant.features] = released(
                    train, data.schema, variant.features, arguments.epsilon
                )
            rows = made(releases[variant.features], variant, folder)
            show(variant_name, figures(variant_name, rows, test))


if __name__ == "__main__":
    main()
