"""The weights of marginals and of products of columns beside a network's features."""

from __future__ import annotations

from collections import Counter

import pytest

from dpntk.common.errors import SchemaError
from dpntk.common.features.joint import JointFeatures
from dpntk.embed import Column, TableSchema, TangentOptions
from tests.helpers.tables import PEOPLE


def drawn(marginals: float | None = None, moments: float | None = None) -> JointFeatures:
    found = TangentOptions(width="3", marginals=marginals, moments=moments).draw(PEOPLE)
    assert isinstance(found, JointFeatures)
    return found


@pytest.mark.parametrize(
    ("marginals", "moments", "weights"),
    [(0.2, None, (0.2, 0.3)), (None, 0.1, (0.4, 0.1)), (0.5, 0.6, (0.5, 0.6)), (0.9, 0, (0.9, 0))],
)
def test_what_is_chosen_counts_and_the_other_weight_is_the_usual_one(
    marginals: float | None, moments: float | None, weights: tuple[float, float]
) -> None:
    found = drawn(marginals, moments)
    assert (found.weight, found.moment_weight) == weights
    assert not found.weights_undecided


@pytest.mark.parametrize("moments", [None, 0])
def test_without_a_choice_a_release_chooses(moments: float | None) -> None:
    found = drawn(moments=moments)
    assert found.weights_undecided
    assert (found.weight, found.moment_weight) == (0.4, 0.3 if moments is None else 0)


def test_weights_that_leave_nothing_to_the_network_are_refused() -> None:
    both = r"marginals=0\.96 and moments=0\.3 leave nothing to the other features: their squares"
    with pytest.raises(SchemaError, match=both):
        drawn(0.96)


def test_if_not_all_pairs_fit_those_of_numbers_do() -> None:
    """A release measures all of them; they have more cells than those of two categories."""
    columns = [Column.continuous(f"x{n}", 0, 1) for n in range(60)]
    columns += [Column.categorical(f"c{n}", ["a", "b", "c"]) for n in range(60)]
    columns += [Column.categorical(f"o{n}", ["a", "b", "c"], ordered=True) for n in range(20)]
    options = TangentOptions(width="3")
    schema = TableSchema(tuple(columns)).with_ranks()
    assert options.encoding(TableSchema(tuple(columns))) == schema
    found = options.draw(schema)
    assert isinstance(found, JointFeatures)
    pairs = found.marginals.names_of_groups(schema)
    kinds = Counter("".join(sorted(name[0] for name in pair)) for pair in pairs)
    assert kinds["xx"] == 60 * 59 // 2
    assert kinds["ox"] == 60 * 20
    assert kinds["oo"] == 20 * 19 // 2
    assert 0 < kinds["cc"] < 60 * 59 // 2
