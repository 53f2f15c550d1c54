"""The weights of marginals and of products of columns beside a network's features."""

from __future__ import annotations

import pytest

from dpntk.common.errors import SchemaError
from dpntk.common.features.joint import JointFeatures
from dpntk.embed import TangentOptions
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
