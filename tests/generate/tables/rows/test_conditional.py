"""Rows under a rare condition: all of them fulfil it, and they follow the law under it."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from dpntk.common.errors import GeneratorError
from dpntk.common.features.ntk.layers import Activation, Linear
from dpntk.common.schema.columns.column import Column
from dpntk.common.schema.encoding import Block, blocks_of
from dpntk.common.schema.rules.language import parse_condition
from dpntk.common.schema.table import TableSchema
from dpntk.common.sources import open_source
from dpntk.common.sources.options import SourceOptions
from dpntk.embed import TangentOptions, embed
from dpntk.generate.tables import refinement
from dpntk.generate.tables.columns.estimation import estimate_columns
from dpntk.generate.tables.energies.base import Energy
from dpntk.generate.tables.energies.relu_features import ReluFeatures
from dpntk.generate.tables.moves.conditioned import ConditionEnergy
from dpntk.generate.tables.moves.metropolis import try_swaps_with
from dpntk.generate.tables.moves.swap import SwapMoves
from dpntk.generate.tables.refinement import refinement_of
from dpntk.generate.tables.rows import conditional
from dpntk.generate.tables.rows.conditional import RARE, draw_where
from dpntk.generate.tables.rows.values import Values, records_of, values_of
from dpntk.generate.tables.sampling import Drawn, RowModel, draw_rows
from dpntk.release import PrivacyParameters
from dpntk.release.publishing.pipeline import unrecorded_release
from tests.conftest import make_hasty
from tests.helpers.networks import draw as draw_network
from tests.helpers.tables import PEOPLE, people

KINDS = ("oak", "elm", "yew")
TREES = TableSchema(
    (
        Column.categorical("kind", KINDS),
        Column.categorical("use", ("wood", "fruit", "none")),
        Column.boolean("old"),
        Column.integer("height", 0, 40),
        Column.integer("girth", 0, 99),
    )
).with_ranks()
RECORDS = 20_000
YEWS = 0.01
COUNT = 600
TRULY = {"none": 0.9, "old": 0.9}
"""Of yews, and of hardly any other trees."""


def trees() -> str:
    """Rows of which one in a hundred is a yew, which is old, low and of no use."""
    random = np.random.default_rng(0)
    yew = random.random(RECORDS) < YEWS
    kind = np.where(yew, "yew", random.choice(KINDS[:2], RECORDS))
    use = np.where(
        random.random(RECORDS) < np.where(yew, TRULY["none"], 0.1),
        "none",
        random.choice(["wood", "fruit"], RECORDS),
    )
    old = random.random(RECORDS) < np.where(yew, TRULY["old"], 0.2)
    height = random.normal(np.where(yew, 8, 25), 3, RECORDS).round().clip(0, 40).astype(int)
    girth = random.integers(0, 100, RECORDS)
    lines = ["kind,use,old,height,girth"]
    for row in zip(kind, use, old, height, girth, strict=True):
        lines.append(f"{row[0]},{row[1]},{str(row[2]).lower()},{row[3]},{row[4]}")
    return "\n".join(lines) + "\n"


Draw = Callable[..., Drawn]


@pytest.fixture(scope="module")
def draw(tmp_path_factory: pytest.TempPathFactory) -> Draw:
    """Draws so many rows under a condition, of one release; by a seed of one's own."""
    path = tmp_path_factory.mktemp("trees") / "a.csv"
    path.write_text(trees())
    embedding = embed(path, TangentOptions(width=20), SourceOptions(schema=TREES))
    made = unrecorded_release(embedding, PrivacyParameters(10.0, 1e-5))
    model = RowModel(TREES, None, estimate_columns(made, 0), refinement=refinement_of(made))

    def drawn(count: int, where: str, seed: int = 1) -> Drawn:
        return draw_rows(model, count, made.class_weights, seed, where)

    return drawn


def off(table: pa.Table) -> dict[str, float]:
    """How far trees are from being as yews are."""
    found = {name: table[name].to_numpy(zero_copy_only=False) for name in table.column_names}
    return {
        "none": abs(float((found["use"] == "none").mean()) - TRULY["none"]),
        "old": abs(float(found["old"].mean()) - TRULY["old"]),
        "height": abs(float(found["height"].mean()) - 8) / 40,
    }


@pytest.fixture(scope="module")
def yews(draw: Draw) -> pa.Table:
    with pytest.MonkeyPatch.context() as patch:
        make_hasty(patch)
        return draw(COUNT, "kind = yew").table


def test_rare_rows_fulfil_their_condition_and_differ(yews: pa.Table) -> None:
    assert yews.num_rows == COUNT
    assert set(yews["kind"].to_pylist()) == {"yew"}
    # 3 x 2 x a dozen heights x 100: by chance a tenth of so many would be alike.
    kinds = {tuple(row.values()) for row in yews.to_pylist()}
    assert len(kinds) > 0.7 * COUNT


@pytest.mark.usefixtures("hasty_rows")
def test_rare_rows_are_as_the_released_pairs_have_them(draw: Draw, yews: pa.Table) -> None:
    """Of two pools: rows of one are alike, and now and then off together."""
    other = draw(COUNT, "kind = yew", 2).table
    assert max(off(pa.concat_tables([yews, other])).values()) < 0.2


@pytest.mark.usefixtures("hasty_rows")
def test_rows_that_do_not_hear_of_their_condition_would_be_seen(
    draw: Draw, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mutant: rows are held to it, and nothing says what goes with it."""

    def deaf(self: SwapMoves, records: Tensor, others: Tensor, given: Energy) -> None:
        goal = self._goal
        columns = goal.some_columns(self._random)
        nothing = torch.zeros_like(goal.mean)
        form = goal.tangents.linear_form(nothing)
        try_swaps_with(form, records, others, columns, self._random, [given])

    monkeypatch.setattr(SwapMoves, "swap_with", deaf)
    rows = draw(COUNT, "kind = yew").table
    assert set(rows["kind"].to_pylist()) == {"yew"}
    found = off(rows)
    assert min(found.values()) > 0.3


@pytest.mark.usefixtures("hasty_rows")
def test_what_no_drawn_row_fulfils_is_made(draw: Draw) -> None:
    rows = draw(200, "kind = yew and height >= 34 and girth < 3").table.to_pydict()
    assert set(rows["kind"]) == {"yew"}
    assert min(rows["height"]) >= 34
    assert max(rows["girth"]) < 3
    assert len(set(rows["girth"])) > 1


@pytest.mark.usefixtures("hasty_rows")
def test_a_common_condition_is_not_rare(draw: Draw, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are then the same, to the last one, as if no condition were ever rare."""
    monkeypatch.setattr(refinement, "_USUAL_ROWS", 1000)  # so few are enough to be the same
    found = draw(300, "old = true").table
    monkeypatch.setattr(conditional, "RARE", -1.0)
    assert draw(300, "old = true").table.equals(found)


def test_the_law_under_a_condition_is_exact() -> None:
    """Two columns of which an energy is known: that of rows with one of them set is, too."""
    schema = TableSchema(tuple(Column.categorical(name, KINDS) for name in ("left", "right")), None)
    blocks, strength = blocks_of(schema), 1.5

    class Agreeing:
        """Rows of which both are the same are exp(strength) times as likely."""

        def learn(self, records: Tensor) -> None:
            raise AssertionError

        def swap_gains(self, records: Tensor) -> Agreeing:
            self._records = records
            return self

        def gain(self, block: Block, pairs: Tensor) -> Tensor:
            after = self._records.clone()
            one, other = self._records.chunk(2)
            after[:, block.place] = torch.cat([other[:, block.place], one[:, block.place]])
            energy = (self._same(after) - self._same(self._records)) * strength
            return energy.view(2, -1).sum(dim=0)[pairs]

        def accept(self, block: Block, chosen: Tensor) -> None: ...

        @staticmethod
        def _same(rows: Tensor) -> Tensor:
            return (rows[:, :3].argmax(dim=1) == rows[:, 3:].argmax(dim=1)).float()

    chance = math.exp(strength) / (math.exp(strength) + 2)
    random = np.random.default_rng(0)
    eye = torch.eye(3)
    left = random.integers(0, 3, 20_000)
    other = (left + random.integers(1, 3, len(left))) % 3
    right = np.where(random.random(len(left)) < chance, left, other)
    law = torch.cat([eye[left], eye[right]], dim=1)  # rows that follow it
    rows = torch.cat([eye[np.zeros(4000, int)], eye[np.ones(4000, int)]], dim=1)  # far from it
    before = law.clone()
    given = ConditionEnergy(parse_condition("left = oak", schema.by_name), schema, 0)
    tangents = ReluFeatures(draw_network((Linear(4), Activation("relu")), (6,)))
    form = tangents.linear_form(torch.zeros(tangents.mean(rows[:10]).shape))
    for _ in range(30):
        try_swaps_with(form, rows, law, blocks, random, [Agreeing(), given])
    assert bool(given.holds(rows).all())
    shares = rows[:, 3:].mean(dim=0)
    assert shares.tolist() == pytest.approx(
        [chance, (1 - chance) / 2, (1 - chance) / 2], abs=4 * 0.5 / math.sqrt(4000)
    )
    assert bool((law == before).all())


def test_values_and_encoded_rows_say_the_same(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(people(400))
    (batch,) = open_source(path, SourceOptions(schema=PEOPLE)).batches(1 << 20)
    records = (batch.records / np.float32(255)).astype(np.float32)
    values = values_of(PEOPLE, records, batch.labels)
    again = values_of(PEOPLE, records_of(PEOPLE, values), batch.labels)
    assert values.keys() == again.keys()
    for name, column in values.items():
        np.testing.assert_allclose(again[name], column, rtol=1e-5, err_msg=name)
    assert np.isnan(values["pay"]).any()
    some = values_of(PEOPLE, records, batch.labels, {"age"})
    assert some.keys() == {"age", "ill"}
    assert np.array_equal(some["age"], values["age"])


Made = tuple[Values, NDArray[np.bool_]]
WHERE = "height >= 30"


def heights(share: float, calls: list[int], count: int, *_: object) -> Made:
    """Trees of which so many are high."""
    calls.append(count)
    found = np.where(np.arange(count) < share * count, 35.0, 5.0)
    return {"height": found}, np.zeros(count, bool)


@pytest.mark.parametrize(("share", "rare"), [(RARE / 2, True), (2 * RARE, False)])
def test_only_of_a_rare_condition_rows_are_held_to_it(share: float, rare: bool) -> None:
    usual: list[int] = []
    under: list[int] = []

    def held(_: object, count: int, *others: object) -> Made:
        return heights(1.0, under, count)

    make = partial(heights, share, usual)
    values, repaired = draw_where(make, WHERE, TREES, np.ones(1), 2000, 0, held)
    assert values["height"].tolist() == [35.0] * 2000
    assert len(repaired) == 2000
    assert len(under) == rare
    assert (len(usual) == 1) == rare


def test_what_constraints_leave_next_to_nothing_of_is_refused() -> None:
    """It is not tried for ever; and a contradiction says what it contradicts."""
    under: list[int] = []

    def broken(_: object, count: int, *others: object) -> Made:
        return heights(0.01, under, count)

    def contradicted(*_: object) -> Made:
        raise GeneratorError("constraints: no")

    nothing = partial(heights, 0.0, [])
    with pytest.raises(GeneratorError, match=r"rows fulfil it, and 2,000 are wanted"):
        draw_where(nothing, WHERE, TREES, np.ones(1), 2000, 0, broken)
    assert len(under) == 1
    with pytest.raises(GeneratorError, match=r"where: condition 'height >= 30': constraints: no"):
        draw_where(nothing, WHERE, TREES, np.ones(1), 2000, 0, contradicted)
