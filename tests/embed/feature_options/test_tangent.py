"""The weights of marginals and of products of columns beside a network's features."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dpntk.common.errors import SchemaError
from dpntk.common.features.joint import JointFeatures
from dpntk.common.schema.table import TableSchema
from dpntk.embed import TangentOptions
from tests.helpers.tables import PEOPLE

UNLABELLED = replace(PEOPLE, label=None)


def weights(
    schema: TableSchema, marginals: float | None = None, moments: float | None = None
) -> tuple[float, float]:
    drawn = TangentOptions(width="3", marginals=marginals, moments=moments).draw(schema)
    assert isinstance(drawn, JointFeatures)
    return drawn.weight, drawn.moment_weight


def test_without_a_label_less_is_left_to_the_network() -> None:
    assert weights(PEOPLE) == (0.4, 0.3)
    assert weights(UNLABELLED) == (0.7, 0.5)


@pytest.mark.parametrize("schema", [PEOPLE, UNLABELLED])
def test_what_is_chosen_counts_and_the_other_weight_is_the_usual_one(schema: TableSchema) -> None:
    of_marginals, of_moments = weights(schema)
    assert weights(schema, marginals=0.2) == (0.2, of_moments)
    assert weights(schema, moments=0.1) == (of_marginals, 0.1)
    assert weights(schema, moments=0.0) == (of_marginals, 0.0)


def test_weights_that_leave_nothing_to_the_network_are_refused() -> None:
    assert weights(PEOPLE, marginals=0.9) == (0.9, 0.3)
    both = r"marginals=0\.9 and moments=0\.5 leave nothing to the other features: their squares"
    with pytest.raises(SchemaError, match=both):
        weights(UNLABELLED, marginals=0.9)
