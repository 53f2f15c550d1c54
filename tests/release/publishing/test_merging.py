"""Cells of a number in a pair of columns follow from what is released of the column."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch
from scipy.stats import norm

from dpntk.common.errors import SchemaError
from dpntk.common.features.marginals.cells import MarginalColumn, MarginalGroup
from dpntk.common.features.marginals.map import GroupChoice, MarginalFeatures
from dpntk.release.publishing.merging import MOST, first_parts, merged_cells, possible_sums

NUMBER = MarginalColumn(0, 1, 64, -1)
OTHER = MarginalColumn(1, 1, 30, 5)
WORDS = MarginalColumn(2, 3, 0, -1)
MARGINALS = MarginalFeatures((NUMBER, OTHER, WORDS), 6)


def shares_of(number: list[float]) -> list[int]:
    rest = [0] * (MARGINALS.dimension - len(number))
    return [round(1e9 * share) for share in number] + rest


def firsts(number: list[float]) -> tuple[int, ...]:
    return merged_cells(MARGINALS, np.array(shares_of(number)))[NUMBER].merged


def test_cells_hold_about_as_many_records_each() -> None:
    """As money is: nearly all between the first few of 64 points between the bounds."""
    shares = np.exp(-np.arange(64) / 6)
    shares /= shares.sum()
    found = firsts(shares.tolist())
    assert len(found) < 30
    sums = [shares[one:other].sum() for one, other in pairwise((*found, 64))]
    for size, (one, other) in zip(sums, pairwise((*found, 64)), strict=True):
        assert size <= 1 / MOST or other == one + 1
    for one, other in pairwise(sums):  # else they were one
        assert one + other > 1 / MOST


def test_what_many_have_in_common_is_a_cell_by_itself() -> None:
    shares = [0.5 / 63] * 64
    shares[40] = 0.5
    found = firsts(shares)
    assert {40, 41} <= set(found)


def test_noise_below_zero_counts_for_nothing() -> None:
    shares = [-1.0] * 64
    shares[7] = 1.0
    assert firsts(shares) == (0, 7, 8)
    assert firsts([-1.0] * 64) == tuple(range(64))  # nothing is known: nothing is merged


def test_words_and_missing_values_stay_as_they_are() -> None:
    found = merged_cells(MARGINALS, np.array(shares_of([1 / 64] * 64)))
    assert set(found) == {NUMBER, OTHER}
    assert found[OTHER].dimension == len(found[OTHER].merged) + 1


def test_every_value_has_one_cell_that_holds_its_neighbours() -> None:
    merged = MarginalColumn(1, 1, 30, 5, (0, 3, 4, 20))
    records = torch.zeros((257, 6), dtype=torch.int64)
    records[:256, 1] = torch.arange(256)
    records[256, 5] = 255
    before, after = OTHER.cell(records), merged.cell(records)
    expected = [[0] * 3, [1], [2] * 16, [3] * 10, [4]]  # of the 30 cells and that of missing values
    flat = [cell for part in expected for cell in part]
    assert after.tolist() == [flat[cell] for cell in before.tolist()]
    assert int(after.max()) == merged.dimension - 1


def grouped(*sides: MarginalColumn) -> MarginalFeatures:
    return MarginalFeatures(MARGINALS.columns, 6, (MarginalGroup(sides),))


def test_a_map_with_merged_cells_is_rebuilt() -> None:
    merged = MarginalColumn(1, 1, 30, 5, (0, 3, 4, 20))
    made = grouped(merged, WORDS)
    again = MarginalFeatures.from_spec(made.spec(), {})
    assert again == made
    assert again.unmerged == grouped(OTHER, WORDS)
    records = torch.randint(0, 256, (50, 6), generator=torch.Generator().manual_seed(0))
    assert torch.equal(again.hits(records), made.hits(records))


@pytest.mark.parametrize("firsts", [(1, 2), (0, 3, 3), (0, 4, 2), (0, 30)])
def test_cells_that_cannot_be_merged_so_are_refused(firsts: tuple[int, ...]) -> None:
    with pytest.raises(SchemaError):
        grouped(MarginalColumn(1, 1, 30, 5, firsts), WORDS)
    spec = grouped(MarginalColumn(1, 1, 30, 5, (0, 3)), WORDS).spec()
    with pytest.raises(SchemaError):
        MarginalFeatures.from_spec({**spec, "pairs_merged": [[1, *firsts]]}, {})


@pytest.mark.parametrize(
    "merging", [[[3, 0, 1]], [[1, 0, 3], [2, 0, 1]], [["1", 0]], [1], {}, [[1]]]
)
def test_merged_cells_of_what_is_in_no_pair_are_refused(merging: object) -> None:
    spec = grouped(MarginalColumn(1, 1, 30, 5, (0, 3)), WORDS).spec()
    with pytest.raises(SchemaError):
        MarginalFeatures.from_spec({**spec, "pairs_merged": merging}, {})


def test_a_side_is_a_column_of_the_table() -> None:
    with pytest.raises(SchemaError):
        grouped(MarginalColumn(1, 1, 29, 5), WORDS)
    with pytest.raises(SchemaError):
        MarginalFeatures((MarginalColumn(0, 1, 64, -1, (0, 5)),), 6)


@pytest.mark.parametrize("parts", [2, 3, 8])
def test_few_cells_hold_equal_parts_as_nearly_as_cells_allow(parts: int) -> None:
    """Skewed, between wide bounds, and with noise below 0 where there is nothing."""
    shares = np.where(np.arange(64) < 40, np.exp(-np.arange(64) / 9), -0.01)
    noisy = np.array(shares_of(shares.tolist()))
    found = merged_cells(MARGINALS, noisy, parts)[NUMBER].merged
    assert len(found) == parts
    held = shares.clip(0)
    so_far = np.concatenate([[0], held.cumsum()]) / held.sum()
    for number, first in enumerate(found):
        assert np.abs(so_far[first] - number / parts) == np.abs(so_far - number / parts).min()


@pytest.mark.parametrize("seed", range(5))
def test_noise_does_not_move_halves_of_a_skewed_number_to_the_middle(seed: int) -> None:
    """Noise on a cell is a twentieth of all: above 0 it adds up to more than there are records."""
    shares = np.exp(-np.arange(64) / 3)
    exact = np.concatenate([shares / shares.sum(), np.full(31, 1 / 31), np.full(3, 1 / 3)])
    noisy = exact + np.random.default_rng(seed).normal(0, 0.05, len(exact))
    likely = possible_sums(MARGINALS, np.rint(1e9 * noisy).astype(np.int64))
    median = merged_cells(MARGINALS, likely, 2)[NUMBER].merged[1]
    assert 0.25 < exact[:median].sum() < 0.8


def test_possible_sums_are_those_of_records() -> None:
    """None below 0, as many in each column, and what is possible already stays."""
    exact = np.concatenate([np.full(64, 1 / 64), np.full(31, 1 / 31), np.full(3, 1 / 3)])
    noise = np.random.default_rng(0).normal(0, 0.03, len(exact))
    found = possible_sums(MARGINALS, np.rint(1e9 * (exact + noise)).astype(np.int64))
    assert (found >= 0).all()
    sums = [found[place].sum() for place in MARGINALS.places]
    assert max(sums) - min(sums) < 100
    # What there are of the few cells counts for most.
    assert sums[0] / 1e9 == pytest.approx(1 + noise[-3:].sum(), abs=0.03)
    whole = np.rint(1e9 * exact).astype(np.int64)
    assert np.abs(possible_sums(MARGINALS, whole) - whole).max() <= 1
    nothing = -whole
    assert (possible_sums(MARGINALS, nothing) == nothing).all()


def test_what_most_have_in_common_leaves_fewer_cells() -> None:
    shares = [0.9] + [0.1 / 63] * 63
    assert merged_cells(MARGINALS, np.array(shares_of(shares)), 4)[NUMBER].merged == (0, 1)
    nothing = np.zeros(MARGINALS.dimension, dtype=np.int64)
    assert merged_cells(MARGINALS, nothing, 4)[NUMBER].merged == (0,)


def test_halves_are_told_by_what_is_released_of_columns() -> None:
    shares = np.array([3, 1, -2, 4] + [0] * 60)
    noisy = np.array(shares_of(shares.tolist()))
    merging = merged_cells(MARGINALS, noisy, 2)
    found = first_parts(MARGINALS, noisy, merging)
    assert set(found) == set(merging.values())
    border = merging[NUMBER].merged[1]
    assert found[merging[NUMBER]] == shares.clip(0)[:border].sum() / 8
    nothing = np.zeros(MARGINALS.dimension, dtype=np.int64)
    assert first_parts(MARGINALS, nothing, merged_cells(MARGINALS, nothing, 2)) == dict.fromkeys(
        merged_cells(MARGINALS, nothing, 2).values(), 0.0
    )


def both_ways() -> MarginalFeatures:
    """A pair of numbers in many cells, and in few."""
    few = {NUMBER: replace(NUMBER, merged=(0, 9)), OTHER: replace(OTHER, merged=(0, 4, 20))}
    many = {OTHER: replace(OTHER, merged=(0, 1, 2, 9))}
    pair = grouped(NUMBER, OTHER)
    return pair.choosing(GroupChoice([0], 0.5, many), GroupChoice([0], 0.3, few))


def hits_of(
    made: MarginalFeatures, beside_columns: tuple[MarginalColumn | MarginalGroup, ...]
) -> tuple[torch.Tensor, torch.Tensor]:
    """Of some records, by a map and by what it is rebuilt as; with the records."""
    again = MarginalFeatures.from_spec(made.spec(), {})
    assert again == made
    assert again.tables == (NUMBER, OTHER, WORDS, *beside_columns)
    records = torch.randint(0, 256, (50, 6), generator=torch.Generator().manual_seed(0))
    hits = made.hits(records)
    assert torch.equal(again.hits(records), hits)
    assert float((made.entries**2).sum()) == pytest.approx(1)
    assert made.unmerged == replace(grouped(NUMBER, OTHER), group_length=0.5)
    return records, hits


def test_a_map_with_pairs_in_few_cells_is_rebuilt_and_a_record_has_length_1() -> None:
    made = both_ways()
    records, hits = hits_of(made, (*made.coarse, *made.groups))
    assert hits.shape == (50, 5)
    for place, column in zip(made.places, hits.T, strict=True):
        assert bool(((column >= place.start) & (column < place.stop)).all())
    number, other = (side.cell(records) for side in made.coarse[0].sides)
    assert torch.equal(hits[:, 3] - made.places[3].start, number * 4 + other)
    assert made.entries[3:] == pytest.approx([0.3, 0.5])


@pytest.mark.parametrize(
    "wrong",
    [
        {"coarse": [[0, 1]]},
        {"coarse": [[0, 1, 2, 3]]},  # words
        {"coarse": [[0, 1, 0, 1]]},
        {"coarse": [[0, 1, 1, 1], [0, 1, 1, 1]]},
        {"coarse": []},
        {"coarse": None},
        {"coarse_merged": [[0, 1]]},
        {"coarse_merged": [[1, 0, 40]]},
        {"coarse_length": 0.9},  # more than the chosen pairs leave
        {"coarse_length": 0.0},
        {"coarse_length": "0.3"},
        {"coarse_length": None},
    ],
)
def test_pairs_in_few_cells_that_cannot_be_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(SchemaError):
        MarginalFeatures.from_spec({**both_ways().spec(), **wrong}, {})


def folded() -> MarginalFeatures:
    """A pair of numbers, and whether both are high or low, the second one missing now and then."""
    pair = replace(both_ways(), coarse=(), coarse_length=None)
    few = [replace(NUMBER, merged=(0, 9)), replace(OTHER, merged=(0, 20))]
    return replace(pair, coarse=(MarginalGroup(tuple(few), folded=True),), coarse_length=0.3)


def test_a_folded_pair_says_whether_both_are_in_the_same_part() -> None:
    made = folded()
    records, hits = hits_of(made, (*made.coarse, *made.groups))
    (pair,) = made.coarse
    records[::2, 5] = 0  # else the second is always missing
    hits = made.hits(records)
    number, other = (side.cell(records) for side in pair.sides)
    lacks = [side.missing >= 0 for side in pair.sides]
    assert pair.dimension == 2 + any(lacks)
    cells = hits[:, 3] - made.places[3].start
    known = (number < 2) & (other < 2)
    assert torch.equal(cells == 0, known & (number == other))
    assert torch.equal(cells == 1, known & (number != other))
    assert torch.equal(cells == 2, ~known)
    assert all(int((cells == cell).sum()) > 5 for cell in range(3))


@pytest.mark.parametrize(
    "wrong",
    [
        {"coarse_folded": False},
        {"coarse_folded": 1},
        {"coarse_merged": [[0, 0, 9], [1, 0, 4, 20]]},
        {"coarse_merged": []},
    ],
)
def test_what_cannot_be_folded_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(SchemaError):
        MarginalFeatures.from_spec({**folded().spec(), **wrong}, {})


def test_chosen_pairs_are_not_folded() -> None:
    made = folded()
    with pytest.raises(SchemaError):
        replace(made, groups=(replace(made.coarse[0]),))


@pytest.mark.parametrize("parts", [2, 3, 5])
def test_noise_on_correlations_is_that_of_the_best_guess(parts: int) -> None:
    """By least squares, of shares that noise has moved; and of both in the same half or not."""
    firsts = tuple(range(0, 30, 30 // parts))[:parts]
    sides = tuple(MarginalColumn(n, 1, 64, -1, merged=firsts) for n in range(2))
    group = MarginalGroup(sides, folded=parts == 2)
    bare = tuple(side.unmerged for side in sides)
    made = MarginalFeatures(bare, 2, (MarginalGroup(bare),), group_length=0.3)
    assert made.noise_on_correlations(0.1) == np.inf
    made = replace(made, coarse=(group,), coarse_length=0.5)
    random, noise = np.random.default_rng(0), 0.02
    edges = norm.pdf(norm.ppf(np.arange(parts + 1) / parts))
    slope = np.outer(edges[:-1] - edges[1:], edges[:-1] - edges[1:])
    if group.folded:
        slope = np.array([np.trace(slope), -np.trace(slope)])
    found = [
        (slope * random.normal(0, noise / 0.5, slope.shape)).sum() / (slope**2).sum()
        for _ in range(20_000)
    ]
    assert made.noise_on_correlations(noise) == pytest.approx(np.std(found), rel=0.03)


def by_level_too() -> MarginalFeatures:
    """A chosen pair, and the levels of one of its numbers."""
    levels = replace(OTHER, cells=256, count=3)  # with two soft bins
    pair = replace(grouped(NUMBER, OTHER), undecided=True, by_level=(levels,))
    return pair.choosing(GroupChoice([0], 0.5, {}), None, 0.3)


def test_a_map_with_levels_is_rebuilt_and_a_record_has_length_1() -> None:
    made = by_level_too()
    records, _ = hits_of(made, (*made.by_level, *made.groups))
    records[:9, [OTHER.start + 1, OTHER.start + 2]] = 0
    records[:9:2, OTHER.missing] = 0
    records[:3, OTHER.start + 1] = 255
    records[3:6, OTHER.start + 2] = 255
    records[:9, OTHER.start] = torch.tensor([0, 255, 7, 0, 255, 7, 0, 255, 7])
    levels = made.hits(records)[:, 3] - made.places[3].start
    there = records[:, OTHER.missing] == 0
    assert levels[:9][there[:9]].tolist() == [0, 0, 255, 1, 7]
    assert torch.equal(levels[9:][there[9:]], records[9:][there[9:], OTHER.start].clamp(1, 254))
    assert bool((levels[~there] == 256).all())
    assert made.entries[3:] == pytest.approx([0.3, 0.5])
    without = made.choosing(GroupChoice([0], 0.5, {}))
    assert "by_level" not in without.spec()


@pytest.mark.parametrize(
    "wrong",
    [
        {"by_level": [[OTHER.start, 3], [OTHER.start, 3]]},
        {"by_level": [[OTHER.start, 3], [NUMBER.start, 3]]},  # not in the order of the columns
        {"by_level": [[WORDS.start, 3]]},
        {"by_level": [[99, 3]]},
        {"by_level": [[str(OTHER.start), 3]]},
        {"by_level": [[OTHER.start, 2]]},  # a single bin
        {"by_level": [[OTHER.start, 6]]},  # beyond the record
        {"by_level": [[OTHER.start]]},
        {"by_level": [OTHER.start]},
        {"by_level": []},
        {"by_level": None},
        {"by_level_length": 0.9},  # more than the chosen pair leaves
        {"by_level_length": 0.0},
        {"by_level_length": "0.3"},
        {"by_level_length": None},
        {"pairs_length": None},
    ],
)
def test_levels_that_cannot_be_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(SchemaError):
        MarginalFeatures.from_spec({**by_level_too().spec(), **wrong}, {})


def test_pairs_in_few_cells_are_beside_chosen_ones() -> None:
    spec = both_ways().spec()
    alone = {name: value for name, value in spec.items() if not name.startswith("pairs")}
    with pytest.raises(SchemaError):
        MarginalFeatures.from_spec(alone, {})
