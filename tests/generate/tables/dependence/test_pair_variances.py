"""Prior variances of pairs: against the best that can be done if they are known."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from dpntk.generate.tables.dependence.pair_variances import pair_variances

NOISE = 0.01
FREEDOM = 4.0


def of_pairs(squares: list[float], noise: float = NOISE, freedom: float = FREEDOM) -> list[float]:
    seen = torch.tensor(squares, dtype=torch.float64)
    each = torch.ones_like(seen)
    found: list[float] = pair_variances(seen, noise * each, freedom * each).tolist()
    return found


def test_few_strong_pairs_do_not_lend_the_others_their_variance() -> None:
    """Not much worse than if each pair's variance were known, where one for all is."""
    random = np.random.default_rng(0)
    true = np.where(np.arange(400) < 40, 0.1, 1e-4)
    departures = random.standard_normal((400, int(FREEDOM))) * np.sqrt(true)[:, None]
    seen = departures + random.standard_normal(departures.shape) * np.sqrt(NOISE)

    def error(variances: np.ndarray | float) -> float:
        kept = variances / (variances + NOISE) * np.ones(len(true))
        return float(np.square(kept[:, None] * seen - departures).mean())

    found = np.array(of_pairs(np.square(seen).mean(axis=1).tolist()))
    one_for_all = float(np.square(seen).mean()) - NOISE
    assert error(found) < 1.5 * error(true)
    assert error(one_for_all) > 4 * error(true)


@pytest.mark.parametrize("times", [4.0, 11.0, 50.0])
def test_a_single_pair_has_what_exceeds_the_noise(times: float) -> None:
    """Up to the steps of the candidates."""
    assert of_pairs([times * NOISE])[0] == pytest.approx((times - 1) * NOISE, rel=0.35)


def test_a_pair_of_less_than_the_noise_keeps_nothing() -> None:
    assert of_pairs([0.8 * NOISE])[0] < 1e-2 * NOISE


def test_without_noise_everything_is_believed() -> None:
    found = of_pairs([0.2, 1e-4], noise=1e-12)
    assert found == pytest.approx([0.2, 1e-4], rel=0.35)


def test_more_products_are_believed_sooner() -> None:
    """Twice the noise by chance is not much for one product, and much for forty."""
    others = [NOISE] * 50 + [10 * NOISE] * 5
    few, many = (of_pairs([2 * NOISE, *others], freedom=each)[0] for each in (1.0, 40.0))
    assert few < 0.7 * NOISE < many < 1.5 * NOISE
