"""Three columns of which no two depend on each other: found in the mean feature, and reproduced."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from torch import Tensor

from dpntk.common.features.joint import parts_of
from dpntk.common.features.ntk.map import TangentFeatures
from dpntk.common.schema.columns.column import Column
from dpntk.common.schema.encoding import blocks_of
from dpntk.common.schema.table import TableSchema
from dpntk.embed import TangentOptions
from dpntk.generate.tables.energies import interactions
from dpntk.generate.tables.energies.contrasts import Contrasts
from dpntk.generate.tables.energies.goal import Goal
from dpntk.generate.tables.energies.interaction import InteractionEnergy
from dpntk.generate.tables.energies.interactions import Interactions, direction, find_interactions
from dpntk.generate.tables.energies.relu_features import ReluFeatures
from dpntk.generate.tables.moves.swap import SwapMoves
from dpntk.generate.tables.rows.values import records_of
from tests.helpers.tables import PEOPLE, encoded_people

ROWS = 4000
SHARES = {"a": 0.5, "b": 0.2, "c": 0.95, "d": 0.4}
COINS = TableSchema(tuple(Column.categorical(name, ["no", "yes"]) for name in "abcdefg"), None)
MIXED = TableSchema(
    (
        Column.continuous("size", 0.0, 1.0),
        Column.categorical("colour", ["red", "green", "blue"]),
        *(Column.categorical(name, ["no", "yes"]) for name in SHARES),
    ),
    None,
)


def features_of(schema: TableSchema) -> ReluFeatures:
    main = parts_of(TangentOptions(width=100).draw(schema)).main
    assert isinstance(main, TangentFeatures)
    return ReluFeatures(main)


def coins(random: np.random.Generator, count: int = ROWS) -> np.ndarray:
    """Fair ones, (count, 7)."""
    return random.integers(2, size=(count, len(COINS.columns)))


def independent(rows: Tensor, random: np.random.Generator) -> Tensor:
    """Rows with the same columns, each in random order."""
    found = rows.clone()
    for block in blocks_of(COINS):
        found[:, block.place] = rows[random.permutation(len(rows)), block.place]
    return found


def coin_rows(values: np.ndarray) -> Tensor:
    columns = dict(zip((each.name for each in COINS.columns), values.T, strict=True))
    return torch.from_numpy(records_of(COINS, columns))


def goal_of(truth: Tensor, schema: TableSchema, noise: float, random: np.random.Generator) -> Goal:
    """The targets that a release of these rows would give."""
    features = features_of(schema)
    mean = features.mean(truth)
    noisy = mean + torch.from_numpy(random.normal(0, noise, len(mean))).float()
    return Goal(features, blocks_of(schema), noisy, noise)


def names_of(found: Interactions | None) -> list[set[str]]:
    if found is None:
        return []
    return [
        {found.contrasts[number].block.column.name for number in triple}
        for triple in found.triples.tolist()
    ]


def test_contrasts_are_standardised_and_leave_out_what_hardly_any_row_has() -> None:
    random = np.random.default_rng(0)
    values = {
        "size": random.random(ROWS),
        "colour": random.choice(3, ROWS, p=[0.6, 0.35, 0.05]),
        **{name: random.random(ROWS) < share for name, share in SHARES.items()},
    }
    rows = torch.from_numpy(records_of(MIXED, values))
    contrasts = Contrasts(blocks_of(MIXED), rows)
    blocks = {block.column.name: block for block in blocks_of(MIXED)}
    counts = {name: len(contrasts.of(block)) for name, block in blocks.items()}
    assert counts == {"size": 1, "colour": 2, "a": 1, "b": 1, "c": 0, "d": 1}
    found = contrasts(rows)
    assert torch.allclose(found.mean(dim=0), torch.zeros(6), atol=1e-5)
    assert torch.allclose(found.var(dim=0, correction=0), torch.ones(6), atol=1e-4)
    (of_size,) = contrasts.of(blocks["size"])
    above = rows[:, blocks["size"].first] > rows[:, blocks["size"].first].median()
    assert torch.equal(found[:, of_size] > 0, above)
    assert 0.45 < float(above.float().mean()) <= 0.5
    of_people = Contrasts(blocks_of(PEOPLE), encoded_people(1000, random))
    ordinal = next(block for block in blocks_of(PEOPLE) if block.column.name == "grade")
    assert len(of_people.of(ordinal)) == 3  # its rank among the grades is no category
    triples = contrasts.triples().tolist()
    assert len(triples) == 2 * 4 * 3 // 2 + 4  # one of two colours, or none
    assert all(len({contrasts[number].block.first for number in triple}) == 3 for triple in triples)


def test_a_direction_is_how_the_mean_feature_changes() -> None:
    """Against all rows that there are, weighted."""
    every = np.array(list(itertools.product((0, 1), repeat=len(COINS.columns))))
    rows, features = coin_rows(every), features_of(COINS)
    contrasts = Contrasts(blocks_of(COINS), rows)
    chosen = [0, 2, 5]
    product = contrasts(rows)[:, chosen].prod(dim=1)
    expected = (features.features(rows) * product[:, None]).mean(dim=0)
    random = np.random.default_rng(0)
    found = direction(features, [contrasts[number] for number in chosen], rows, random)
    assert torch.allclose(found, expected, atol=1e-6)
    assert found.norm() > 1e-3


def test_columns_of_an_exclusive_or_are_found() -> None:
    """Two of them, the weaker one last, and how strong each is."""
    random = np.random.default_rng(1)
    values = coins(random, 40_000)
    values[:, 2] = values[:, 0] ^ values[:, 1]
    often = random.random(len(values)) < 0.8  # their contrasts' mean product is .6
    values[:, 5] = values[:, 3] ^ values[:, 4] ^ ~often
    truth = coin_rows(values)
    goal = goal_of(truth, COINS, 6e-4, random)
    found = find_interactions(goal, independent(truth, random), random)
    assert found is not None
    assert names_of(found) == [{"a", "b", "c"}, {"d", "e", "f"}]
    assert found.wanted.tolist() == pytest.approx([1.0, 0.6], abs=0.2)
    assert found.variances.sqrt().tolist() == pytest.approx([0.049, 0.035], abs=0.006)


def test_noise_and_pairs_make_no_interactions() -> None:
    """Of fifteen noises each; one in a hundred may show something."""
    random = np.random.default_rng(2)
    values = coins(random)
    values[:, 1] = np.where(random.random(ROWS) < 0.9, values[:, 0], 1 - values[:, 0])
    together = coin_rows(values)
    shown = [
        names_of(find_interactions(goal_of(together, COINS, noise, random), together, random))
        for noise in (3e-4, 3e-3)
        for _ in range(15)
    ]
    assert sum(map(bool, shown)) <= 1


def test_nothing_is_looked_for_where_noise_would_hide_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even an exclusive or, of which nothing could be seen."""

    def compared(*_: object) -> Tensor:
        raise AssertionError

    random = np.random.default_rng(6)
    values = coins(random)
    values[:, 2] = values[:, 0] ^ values[:, 1]
    truth = coin_rows(values)
    rows = independent(truth, random)
    monkeypatch.setattr(interactions, "_mean_products", compared)
    assert find_interactions(goal_of(truth, COINS, 0.02, random), rows, random) is None
    with pytest.raises(AssertionError):
        find_interactions(goal_of(truth, COINS, 3e-3, random), rows, random)


def test_what_else_rows_lack_makes_no_interactions() -> None:
    """Four columns of a chain are put together from independent ones, with hardly any noise."""
    random = np.random.default_rng(5)
    values = coins(random, 20_000)
    for column in (1, 2, 3):
        same = random.random(len(values)) < 0.8
        values[:, column] = values[:, column - 1] ^ ~same
    truth = coin_rows(values)
    rows = independent(truth, random)
    assert find_interactions(goal_of(truth, COINS, 3e-5, random), rows, random) is None
    values[:, 6] = values[:, 4] ^ values[:, 5]
    truth = coin_rows(values)
    found = find_interactions(goal_of(truth, COINS, 3e-5, random), rows, random)
    assert names_of(found)[0] == {"e", "f", "g"}


def test_gains_are_differences_of_the_energy() -> None:
    """Of numbers and categories, before and after some rows have swapped."""
    random = np.random.default_rng(3)
    rows, blocks = encoded_people(2 * 50, random), blocks_of(PEOPLE)
    contrasts = Contrasts(blocks, rows)
    all_of = contrasts.triples()
    triples = all_of[torch.from_numpy(random.permutation(len(all_of))[:5])]
    coefficients = torch.tensor([0.5, -0.9, 0.2, 0.7, -0.3])
    energy = InteractionEnergy(Interactions(contrasts, triples, coefficients, torch.ones(5)))

    def of_rows(rows: Tensor) -> Tensor:
        products = contrasts(rows)[:, triples].prod(dim=2) @ coefficients
        return products[:50] + products[50:]

    gains, changed = energy.swap_gains(rows), 0
    for block in (*blocks, *blocks):
        then = rows.clone()
        then[:50, block.place], then[50:, block.place] = (
            rows[50:, block.place],
            rows[:50, block.place],
        )
        some = torch.from_numpy(random.permutation(50)[:20])
        gain = torch.as_tensor(gains.gain(block, some))
        change = (of_rows(then) - of_rows(rows))[some]
        assert torch.allclose(gain.expand(20), change, atol=1e-4)
        changed += int(change.abs().max() > 0.1)
        chosen = some[:7]
        for side in (chosen, chosen + 50):
            rows[side] = then[side]
        gains.accept(block, chosen)
    assert changed > 4


def test_rows_get_what_was_found() -> None:
    """By the chain that swaps values, with nothing else to go by."""
    random = np.random.default_rng(4)
    values = coins(random, 40_000)
    values[:, 2] = values[:, 0] ^ values[:, 1]
    truth = coin_rows(values)
    goal = goal_of(truth, COINS, 6e-4, random)
    rows = independent(truth, random)[:ROWS]
    before = rows.clone()
    SwapMoves(goal, random).fit(rows, lambda _, __: None)
    assert torch.equal(rows.sum(dim=0), before.sum(dim=0))
    a, b, c = (rows[:, block.first] > 0.5 for block in blocks_of(COINS)[:3])
    # Of two categories the first is looked at: it is 1 where an even number of them is.
    assert float(((a ^ b) != c).float().mean()) > 0.85
