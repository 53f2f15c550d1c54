"""How good the pairs of columns are that a release chooses to measure.

The exact counts of an embedding say how far each pair is from independent columns, class by class,
as a total variation. Printed is the sum of these distances over ten chosen pairs, as a share of the
sum over the best ten. Pairs are chosen by exact products, by products with the noise of a release
(mean over draws, and its standard error), and by nothing. No rows are generated.

Run: python -m benchmarks.ablations.choice NAME=PATH:LABEL --rows N [N ...] [--epsilon E]
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray
from pyarrow import parquet

from dpntk.common.features.joint import parts_of
from dpntk.common.schema.table import TableSchema
from dpntk.common.sources.options import SourceOptions
from dpntk.embed import Embedding, TangentOptions, embed
from dpntk.release import PrivacyParameters
from dpntk.release.publishing.layout import CHOSEN_PAIRS, layout_of_embedding
from dpntk.release.publishing.parameters import noise_for
from dpntk.release.publishing.selection import select_pairs

from ..material.named import named_table
from ..tables import delta_for, prepare

SEED: Final = 0
WIDTH: Final = 5
"""Of the network, whose features have no part in this: the noise is the same."""


def apart(embedding: Embedding) -> NDArray[np.float64]:
    """Of each pair, how far it is from independent columns in its class, in the mean, float64."""
    parts = parts_of(embedding.feature_map)
    start, found = parts.group_place.start, []
    for group in parts.groups:
        counts = embedding.sums[start : start + group.dimension].T.astype(float)
        start += group.dimension
        tables = counts.reshape(-1, *(side.dimension for side in group.sides)) / counts.sum()
        rows, columns = tables.sum(axis=2, keepdims=True), tables.sum(axis=1, keepdims=True)
        size = np.maximum(rows.sum(axis=1, keepdims=True), 1e-300)
        found.append(np.abs(tables - rows * columns / size).sum() / 2)
    return np.array(found)


def shares(embedding: Embedding, epsilon: float, draws: int) -> list[float]:
    """What chosen pairs have: by exact products, by noisy ones, its standard error, by nothing."""
    parts, schema = parts_of(embedding.feature_map), embedding.schema
    assert isinstance(schema, TableSchema)
    parameters = PrivacyParameters(epsilon, delta_for(embedding.records))
    released = layout_of_embedding(embedding, noise_for(embedding, parameters), embedding.records)
    place = parts.moment_place
    noise, exact = (
        float(released.noise()[released.within(place)].max()),
        embedding.sums[place].astype(float),
    )
    of_pairs, random = apart(embedding), np.random.default_rng(SEED)
    best = float(np.sort(of_pairs)[-CHOSEN_PAIRS:].sum())

    def share(sums: NDArray[np.float64], noise: float) -> float:
        return float(of_pairs[select_pairs(parts, schema, sums, noise, CHOSEN_PAIRS)].sum()) / best

    noisy = [share(exact + random.normal(0, noise, exact.shape), noise) for _ in range(draws)]
    error = float(np.std(noisy)) / draws**0.5
    return [
        share(exact, 0.0),
        float(np.mean(noisy)),
        error,
        CHOSEN_PAIRS * float(of_pairs.mean()) / best,
    ]


def main() -> None:
    """Print a table as Markdown, row by row."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("data", type=named_table, metavar="NAME=PATH:LABEL")
    parser.add_argument("--rows", type=int, nargs="+", required=True)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--draws", type=int, default=40)
    arguments = parser.parse_args()
    print("| | rows | exact products | noisy ones | nothing |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as name:
        folder, (data, place) = Path(name), arguments.data
        prepared = prepare(data, place, folder / "data")
        whole = parquet.read_table(prepared.train)
        order = np.random.default_rng(SEED).permutation(len(whole))
        for rows in arguments.rows:
            parquet.write_table(whole.take(order[:rows]), folder / "rows.parquet")
            options = TangentOptions(width=WIDTH), SourceOptions(prepared.schema)
            embedding = embed(folder / "rows.parquet", *options)
            exact, noisy, error, nothing = shares(embedding, arguments.epsilon, arguments.draws)
            shown = f"{exact:.2f} | {noisy:.2f} ± {error:.2f} | {nothing:.2f}"
            print(f"| {data} | {rows:,} | {shown} |", flush=True)


if __name__ == "__main__":
    main()
