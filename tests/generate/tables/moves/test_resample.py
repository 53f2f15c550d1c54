"""Rows of a low-signal class take values of others: what that changes, and what stays together."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from dpntk.common.features.marginals.map import GroupChoice, MarginalFeatures
from dpntk.common.runtime.threads import Each
from dpntk.common.schema.columns.column import Column
from dpntk.common.schema.encoding import blocks_of
from dpntk.common.schema.table import TableSchema
from dpntk.embed import SourceOptions, TangentOptions, embed
from dpntk.generate.tables import refinement as refinement_module
from dpntk.generate.tables.dependence.table_departures import ReleasedCounts
from dpntk.generate.tables.energies.count import CountEnergy
from dpntk.generate.tables.energies.goal import Goal
from dpntk.generate.tables.moves.resample import ResamplingMoves
from dpntk.generate.tables.refinement import Refinement, refinement_of
from dpntk.release import PrivacyParameters
from dpntk.release.publishing.pipeline import unrecorded_release
from tests.helpers.tables import PEOPLE, encoded_people

WANTED = ((0, [1, 2, 6]), (3, [0, 4]), (1, [0, 5, 6]), (2, [3]), (0, [0, 1]))
"""Columns, and which rows take a value of each, one after another."""


def test_gains_of_tables_are_differences_of_the_energy_and_cells_follow(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Against cells counted anew, of numbers and categories, in few cells and in many."""
    groups = [("age", "pay"), ("town", "age", "grade")]
    features = MarginalFeatures.of(PEOPLE, groups=groups, fine=True)
    numbers = [column for column in features.columns if column.cells]
    few = {each: replace(each, merged=(0, 9, 40)) for each in numbers}
    features = features.choosing(GroupChoice([0, 1], 0.5, {}), GroupChoice([0], 0.3, few))
    random = np.random.default_rng(0)
    tables = (*features.coarse, *features.groups)
    rows, others = encoded_people(7, random), encoded_people(9, random)
    shares = random.random(sum(table.dimension for table in tables))
    energy = CountEnergy(ReleasedCounts(tables, 255, shares, np.full(3, 1e-3)), rows)
    theta = torch.from_numpy(random.normal(size=len(shares))) * energy._scale
    monkeypatch.setattr(energy, "_theta", theta)

    def of_rows(rows: torch.Tensor) -> torch.Tensor:
        return energy.coefficients[energy.cells(energy.codes(rows))].sum(dim=0)

    copies = energy.copy_gains(rows, others)
    for column, takers in WANTED:
        block = blocks_of(PEOPLE)[column]
        source = torch.from_numpy(random.integers(9, size=7))
        then = rows.clone()
        then[:, block.place] = others[source][:, block.place]
        some = torch.tensor([6, 0, 3, 1])
        gain = torch.as_tensor(copies.gain(block, some, source[some]))
        change = (of_rows(then) - of_rows(rows))[some]
        assert torch.allclose(gain, change, rtol=1e-4, atol=1e-3)
        assert float(gain.abs().max()) > 0.1
        chosen = torch.tensor(takers)
        rows[chosen] = then[chosen]
        copies.accept(block, chosen, source[chosen])


RARE = TableSchema(
    (
        *(Column.continuous(name, -4.0, 4.0) for name in ("a", "b", "c")),
        Column.boolean("ill", ["no", "yes"]),
    ),
    "ill",
)
MANY, FEW = 30_000, 300


def patients() -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """The first two numbers go together in both classes; of the few, all are larger."""
    random = np.random.default_rng(0)
    values = random.normal(size=(MANY + FEW, 3))
    values[:, 1] = 0.95 * values[:, 0] + (1 - 0.95**2) ** 0.5 * values[:, 1]
    ill = np.arange(len(values)) >= MANY
    values[ill] = (values[ill] * 0.7 + 1.2).clip(-4, 4)
    return values, ill


@pytest.fixture(scope="module")
def refinements(tmp_path_factory: pytest.TempPathFactory) -> list[Refinement]:
    """Of six releases: what is asked of one, its noise may deny."""
    values, ill = patients()
    path = tmp_path_factory.mktemp("rare") / "a.csv"
    lines = ["a,b,c,ill"]
    lines += [
        f"{a:.4f},{b:.4f},{c:.4f},{'yes' if one else 'no'}"
        for (a, b, c), one in zip(values, ill, strict=True)
    ]
    path.write_text("\n".join(lines) + "\n")
    embedding = embed(path, TangentOptions(width=100), SourceOptions(schema=RARE))
    parameters = PrivacyParameters(1.0, 1e-5)
    made = [refinement_of(unrecorded_release(embedding, parameters)) for _ in range(6)]
    return [refinement for refinement in made if refinement is not None]


def encoded(values: NDArray[np.float64]) -> NDArray[np.float32]:
    columns = [block.encode(values[:, n]) for n, block in enumerate(blocks_of(RARE))]
    return (np.concatenate(columns, axis=1) / np.float32(255)).astype(np.float32)


def test_numbers_of_a_low_signal_class_go_together_as_those_of_all_do(
    refinements: list[Refinement],
) -> None:
    """Its rows begin with independent columns of all classes, and still get what is its own."""
    values, _ = patients()
    random = np.random.default_rng(1)
    apart = encoded(random.permuted(values, axis=0))
    rows = random.permutation(apart)
    places = [block.place.start for block in blocks_of(RARE)]
    assert abs(np.asarray(np.corrcoef(apart[:, places].T))[0, 1]) < 0.02
    correlations, means = [], []
    for refinement in refinements:
        assert [refinement.swaps(label) for label in (0, 1)] == [True, False]
        drawn = refinement.draw(1, 2000, lambda label, count: rows[:count].copy(), random)
        correlations.append(np.corrcoef(drawn[:, places].T))
        means.append(drawn[:, places].mean(axis=0))
    found = np.mean(correlations, axis=0)
    assert found[0, 1] > 0.6
    assert np.abs(found[[0, 1], 2]).max() < 0.5
    # On a scale from 0 to 1 the mean of all is .50, and that of the class .65.
    assert np.mean(means, axis=0).min() > 0.52


def test_tables_of_all_classes_count_along_a_tree(
    refinements: list[Refinement], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What many pairs say, each of them little, would add up where a row is far out in many."""
    asked: list[CountEnergy | None] = []

    def noted(
        goal: Goal,
        others: torch.Tensor,
        tables: CountEnergy | None,
        random: np.random.Generator,
        each: Each,
    ) -> ResamplingMoves:
        asked.append(tables)
        return ResamplingMoves(goal, others, tables, random, each)

    monkeypatch.setattr(refinement_module, "ResamplingMoves", noted)
    values, _ = patients()
    rows = encoded(values[:1000])
    refinements[0].draw(1, 10, lambda label, count: rows[:count].copy(), np.random.default_rng(0))
    (tables,) = asked
    assert tables is not None
    counted = tables.coefficients.split(tables._places.sizes.tolist())
    sides = [frozenset(side.start for side in table.sides) for table in tables._places.tables]
    along = {pair for pair, cells in zip(sides, counted, strict=True) if cells.any()}
    assert len(set(sides)) == 3
    assert len(along) == 2


def test_the_goal_of_all_classes_is_their_mean(refinements: list[Refinement]) -> None:
    """Weighted by how many records they have, which their noise says."""
    of_few = [refinement.noise[0] / refinement.noise[1] for refinement in refinements]
    assert np.mean(of_few) == pytest.approx(FEW / MANY, rel=0.2)
    refinement = refinements[0]
    shares = 1 / refinement.noise
    of_all, known = refinement.goal_of_all(), refinement.goal(0)
    assert of_all.noise == pytest.approx(known.noise * 2**0.5, rel=0.02)
    assert torch.linalg.vector_norm(of_all.mean - known.mean) < 0.1
    together = [refinement.goal(label).mean for label in (0, 1)]
    expected = (shares[0] * together[0] + shares[1] * together[1]) / shares.sum()
    assert torch.allclose(of_all.mean, expected.float(), atol=1e-5)
