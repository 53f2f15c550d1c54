"""Rows that swap values get the correlations of a copula, as far as pairs say the same."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy.stats import rankdata

from dpntk.common.features.joint import parts_of
from dpntk.common.features.moments import MomentFeatures
from dpntk.common.features.ntk.map import TangentFeatures
from dpntk.common.schema.columns.column import Column
from dpntk.common.schema.encoding import blocks_of
from dpntk.common.schema.table import TableSchema
from dpntk.embed import TangentOptions
from dpntk.generate.tables.copulas.attenuation import ProductEvidence
from dpntk.generate.tables.copulas.copula import NoisyTable, PairCopulas
from dpntk.generate.tables.dependence.product_departures import (
    Departure,
    ReleasedMoments,
    mean_products,
)
from dpntk.generate.tables.energies.copula import CopulaEnergy
from dpntk.generate.tables.energies.relu_features import ReluFeatures
from dpntk.generate.tables.moves.metropolis import try_swaps

ROWS = 4000
SCHEMA = TableSchema(tuple(Column.continuous(name, 0.0, 1.0) for name in "abc"), None)
HALVES = np.full(2, 0.5)


def folded(correlation: float, pair: tuple[int, int]) -> NoisyTable:
    """Of the halves of two numbers of this correlation, without noise, whatever is said."""
    same = 0.25 + np.arcsin(correlation) / (2 * np.pi)
    shares = np.array([[same, 0.5 - same], [0.5 - same, same]])
    return NoisyTable(shares, 0.01, HALVES, HALVES, pair)


def copulas(correlations: Mapping[tuple[int, int], float]) -> PairCopulas:
    places = [block.first for block in blocks_of(SCHEMA)]
    return PairCopulas.of(
        [
            folded(value, (places[one], places[other]))
            for (one, other), value in correlations.items()
        ]
    )


def arranged(
    pairs: PairCopulas, rows: torch.Tensor, products: ProductEvidence | None = None
) -> torch.Tensor:
    """Rows after swaps by this energy alone."""
    main = parts_of(TangentOptions(width=4).draw(SCHEMA)).main
    assert isinstance(main, TangentFeatures)
    form, rows = ReluFeatures(main).linear_form(torch.zeros(main.dimension)), rows.clone()
    numbers = {block.first: -1 for block in blocks_of(SCHEMA)}
    energy = CopulaEnergy(pairs, numbers, rows, products)
    random = np.random.default_rng(3)
    for _ in range(150):
        energy.learn(rows)
        try_swaps(form, rows, blocks_of(SCHEMA), random, [energy])
    return rows


def independent(random: np.random.Generator) -> torch.Tensor:
    """Skewed numbers, of which the last has five values."""
    first, second = np.exp(random.normal(-2, 0.4, (2, ROWS))).clip(0, 1)
    last = random.choice([0.0, 0.1, 0.2, 0.5, 1.0], ROWS, p=[0.4, 0.3, 0.1, 0.1, 0.1])
    made = np.stack([first, second, last], axis=1)
    columns = [block.encode(made[:, n]) for n, block in enumerate(blocks_of(SCHEMA))]
    return torch.from_numpy((np.concatenate(columns, axis=1) / 255).astype(np.float32))


def ranks_go_together(rows: torch.Tensor) -> NDArray[np.float64]:
    numbers = [rows[:, block.first].numpy() for block in blocks_of(SCHEMA)]
    found: NDArray[np.float64] = np.corrcoef([rankdata(each) for each in numbers])
    return found


def gaussian(rows: torch.Tensor, matrix: NDArray[np.float64]) -> torch.Tensor:
    """The same values, given to Gaussian numbers in order: what rows are to look like."""
    draws = np.random.default_rng(5).multivariate_normal(np.zeros(3), matrix, ROWS)
    found = rows.clone()
    for column, block in enumerate(blocks_of(SCHEMA)):
        order = torch.from_numpy(np.argsort(draws[:, column]))
        values = rows[torch.argsort(rows[:, block.first])]
        found[order, block.place] = values[:, block.place]
    return found


def test_halves_that_go_together_give_all_ranks() -> None:
    """Also within the halves, and of a number of few values as much as it can have."""
    wanted = {(0, 1): 0.95, (0, 2): 0.6, (1, 2): 0.5}
    matrix = np.eye(3)
    for pair, value in wanted.items():
        matrix[pair] = matrix[pair[::-1]] = value
    rows = independent(np.random.default_rng(0))
    found, true = arranged(copulas(wanted), rows), gaussian(rows, matrix)
    assert np.abs(ranks_go_together(rows)).max(initial=0, where=~np.eye(3, dtype=bool)) < 0.05
    assert ranks_go_together(found) == pytest.approx(ranks_go_together(true), abs=0.03)
    assert np.array_equal(np.sort(found, axis=0), np.sort(rows, axis=0))


def evidence(rows: torch.Tensor, truth: torch.Tensor) -> ProductEvidence:
    """What a release of other rows with the same columns says of products, with little noise."""
    features = MomentFeatures.of(SCHEMA)
    assert features is not None
    z = ReleasedMoments(features, np.eye(features.factors), 0.0).factors(truth).double()
    released = ReleasedMoments(features, mean_products(z, z).numpy(), 1e-6)
    return ProductEvidence(released, Departure.of(released, rows), rows)


def test_where_products_deny_it_halves_do_not_give_all_ranks() -> None:
    """Numbers of which nothing goes together but their halves, and Gaussian ones."""
    rows, pairs = independent(np.random.default_rng(0)), {(0, 1): 0.5, (0, 2): 0.5, (1, 2): 0.5}
    truth, random = gaussian(rows, np.full((3, 3), 0.5) + np.eye(3) / 2), np.random.default_rng(1)
    halves = truth.clone()
    for block in blocks_of(SCHEMA)[:2]:
        above = truth[:, block.first] > truth[:, block.first].median()
        for side in (above.nonzero()[:, 0], (~above).nonzero()[:, 0]):
            halves[side, block.place] = truth[side[random.permutation(len(side))], block.place]
    found, of_halves = (
        ranks_go_together(arranged(copulas(pairs), rows, evidence(rows, each)))[0, 1]
        for each in (truth, halves)
    )
    assert found == pytest.approx(ranks_go_together(truth)[0, 1], abs=0.04)
    assert ranks_go_together(halves)[0, 1] < of_halves < found - 0.1


def test_pairs_that_contradict_one_another_are_met_halfway() -> None:
    """Two pairs say that three numbers go together, and the third that two of them do not."""
    rows = independent(np.random.default_rng(0))
    found = ranks_go_together(arranged(copulas({(0, 1): 0.9, (1, 2): 0.9, (0, 2): -0.2}), rows))
    assert found[0, 1] > 0.5
    assert found[1, 2] > 0.5
    assert abs(found[0, 2]) < 0.5


def test_what_nothing_is_known_of_has_no_coefficient() -> None:
    rows = independent(np.random.default_rng(0))
    found = ranks_go_together(arranged(copulas({(0, 1): 0.8}), rows))
    assert found[0, 1] == pytest.approx(0.79, abs=0.03)
    assert np.abs(found[2, :2]).max() < 0.05


def test_noise_alone_makes_nothing_go_together() -> None:
    """Tables that are all noise: the prior that is learnt from them leaves next to nothing."""
    random = np.random.default_rng(1)
    places = [block.first for block in blocks_of(SCHEMA)]
    tables = [
        NoisyTable(0.25 + random.normal(0, 0.05, (2, 2)), 0.05, HALVES, HALVES, (one, other))
        for one, other in ((places[0], places[1]), (places[0], places[2]), (places[1], places[2]))
        for _ in range(4)
    ]
    rows = independent(random)
    found = ranks_go_together(arranged(PairCopulas.of(tables), rows))
    assert np.abs(found - np.eye(3)).max() < 0.15
