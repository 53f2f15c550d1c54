"""Matrices that are none of correlations become such, and others stay as they are."""

from __future__ import annotations

import pytest
import torch

from dpntk.generate.tables.copulas.correlation_matrix import as_correlations


def test_a_matrix_of_correlations_stays_as_it_is() -> None:
    good = torch.tensor([[1, 0.5, 0.2], [0.5, 1, -0.3], [0.2, -0.3, 1]], dtype=torch.float64)
    assert torch.allclose(as_correlations(good), good)


@pytest.mark.parametrize("least", [0.03, 0.001])
def test_what_no_numbers_have_becomes_what_some_have(least: float) -> None:
    """The first goes with the second, and this with the third, which goes against the first."""
    wrong = torch.tensor([[1, 0.9, -0.5], [0.9, 1, 0.9], [-0.5, 0.9, 1]], dtype=torch.float64)
    assert float(torch.linalg.eigvalsh(wrong)[0]) < 0
    found = as_correlations(wrong, least)
    assert torch.allclose(found.diagonal(), torch.ones(3, dtype=torch.float64))
    assert torch.allclose(found, found.T)
    # Scaling the diagonal to 1 makes the least eigenvalue smaller, by at most the largest entry.
    assert float(torch.linalg.eigvalsh(found)[0]) > least / 2
    assert float(found[0, 1]) > 0.4 > 0 > float(found[0, 2]) - 0.2
