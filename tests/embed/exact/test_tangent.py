"""The engine computes what `vmap(grad)` does, for every network, and a record's bytes decide it."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from dpntk.common.features.ntk.map import TangentFeatures
from dpntk.common.numerics.exact import round_to_digits, sum_in_fixed_order
from dpntk.embed.exact import tangent
from dpntk.embed.exact.grid import Grid
from dpntk.embed.exact.reference import features, network_of
from dpntk.embed.exact.scattering import ExactFront
from dpntk.embed.exact.tangent import ExactTangentFeatures, _products_of_integers
from tests.conftest import CLASSES, draw_records
from tests.helpers.devices import every_device
from tests.helpers.networks import NETWORKS, VECTOR, paper
from tests.helpers.sums import require_the_same_sums_in_any_order, sums_of

CPU = torch.device("cpu")
every_network = pytest.mark.parametrize("network", NETWORKS.values(), ids=NETWORKS)


def oracle(network: TangentFeatures, records: NDArray[np.uint8]) -> NDArray[np.float64]:
    phi: NDArray[np.float64] = features(network, inputs_of(network, records)).numpy()
    return phi


def inputs_of(network: TangentFeatures, records: NDArray[np.uint8]) -> torch.Tensor:
    """What the network gets, 0..1."""
    return ExactFront(network.front, 255, CPU)(torch.from_numpy(records).double()) / 255


@every_network
@every_device
def test_class_sums_equal_the_per_record_gradients(
    network: TangentFeatures, device: torch.device, grid: Grid
) -> None:
    """Random records, and degenerate ones: all zero, all one, one bright pixel."""
    records, labels = draw_records(40, size=network.record_size)
    expected = oracle(network, records).T @ np.eye(CLASSES)[labels]
    found = sums_of(network, grid, records, labels, device=device) * grid.unit
    assert np.abs(found - expected).max() / len(records) < 1e-9


@every_network
def test_outputs_are_added_up_a_few_at_a_time_to_the_same_bits(
    network: TangentFeatures, grid: Grid, monkeypatch: pytest.MonkeyPatch
) -> None:
    records, labels = draw_records(40, size=network.record_size)
    whole = sums_of(network, grid, records, labels)
    for numbers in (1, 100):
        monkeypatch.setattr(tangent, "KEPT", numbers)
        assert np.array_equal(sums_of(network, grid, records, labels), whole)


@every_network
def test_features_of_degenerate_records_equal_the_gradient(
    network: TangentFeatures, grid: Grid
) -> None:
    """One by one, so that nothing averages out; a record of zeros has a feature like any other."""
    records, _ = draw_records(4, size=network.record_size)
    label = np.zeros(1, dtype=np.int64)
    for record, expected in zip(records, oracle(network, records), strict=True):
        found = sums_of(network, grid, record[None], label)[:, 0] * grid.unit
        assert np.abs(found - expected).max() < 1e-9
        assert np.linalg.norm(found) == pytest.approx(1, abs=1e-6)


@every_network
@every_device
def test_norms_equal_those_of_the_gradients(
    network: TangentFeatures, device: torch.device, grid: Grid
) -> None:
    records, _ = draw_records(10, size=network.record_size)
    exact = torch.from_numpy(records).double().to(device)
    *_, squared = ExactTangentFeatures(network, grid, device)._gradients(exact)
    module = network_of(network)
    for record, norm in zip(inputs_of(network, records), squared.sqrt().tolist(), strict=True):
        module.zero_grad()
        module(record[None]).sum().backward()
        squares = [
            weight.grad.square().sum() for weight in module.parameters() if weight.grad is not None
        ]
        assert norm == pytest.approx(float(sum(squares)) ** 0.5, rel=1e-9)


@every_network
def test_norms_in_grid_units_are_those_of_the_integers(
    network: TangentFeatures, grid: Grid
) -> None:
    records, _ = draw_records(5, size=network.record_size)
    made = ExactTangentFeatures(network, grid, CPU).features(torch.from_numpy(records).double())
    for record, norm in zip(records, made.norms().tolist(), strict=True):
        feature = sums_of(network, grid, record[None], np.zeros(1, dtype=np.int64))
        squared = sum(value * value for value in feature.ravel().tolist())
        assert norm == pytest.approx(squared**0.5, rel=1e-14)


@every_network
@every_device
def test_no_bit_depends_on_company_chunks_threads_or_device(
    network: TangentFeatures, device: torch.device, grid: Grid
) -> None:
    records, labels = draw_records(61, size=network.record_size)
    require_the_same_sums_in_any_order(network, grid, records, labels)
    whole = sums_of(network, grid, records, labels)
    assert np.array_equal(whole, sums_of(network, grid, records, labels, device=device))
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        assert np.array_equal(whole, sums_of(network, grid, records, labels))
    finally:
        torch.set_num_threads(before)


@every_network
def test_no_integer_feature_is_longer_than_one(network: TangentFeatures, grid: Grid) -> None:
    """In whole numbers, without rounding: the sum of squares is at most (1/g)^2."""
    records, _ = draw_records(8, seed=3, size=network.record_size)
    for record in records:
        feature = sums_of(network, grid, record[None], np.zeros(1, dtype=np.int64))
        squared = sum(value * value for value in feature.ravel().tolist())
        assert 0.9999 * grid.units_per_one**2 <= squared <= grid.units_per_one**2


@every_network
def test_the_map_says_whether_features_may_oppose(network: TangentFeatures, grid: Grid) -> None:
    records, _ = draw_records(60, size=network.record_size)
    phi = oracle(network, records)
    if network.nonnegative:
        assert (phi @ phi.T).min() >= 0
    assert network.nonnegative == (
        network in [n for name, n in NETWORKS.items() if name.startswith("fc_1l")]
    )


def test_a_map_whose_activations_may_be_negative_claims_nothing() -> None:
    claims = {
        function: paper("fc_1l", VECTOR, 9, activation=function).nonnegative
        for function in ("relu", "relu6", "leaky_relu", "softsign")
    }
    assert claims == {"relu": True, "relu6": True, "leaky_relu": False, "softsign": False}


def test_features_of_a_deeper_network_do_oppose() -> None:
    """So the smaller sensitivity would be wrong for it."""
    phi = oracle(NETWORKS["cnn_2l on vectors"], draw_records(200)[0])
    assert (phi @ phi.T).min() < -0.1


def test_chunks_are_small_enough_for_exact_sums() -> None:
    """A coordinate of the first layer is at most 1/sqrt(2), one of another layer at most 1."""
    for capacity in (1, 2**20):
        grid = Grid.for_capacity(255, capacity)
        for network in NETWORKS.values():
            largest = 1.0 if len(network.affine) > 1 else 0.5**0.5
            size = ExactTangentFeatures(network, grid, CPU).chunk_size
            assert 1 <= size * grid.units_per_one * largest <= 2**53


@pytest.mark.parametrize("digits", [20, 28, 36])
def test_rounded_values_have_few_digits(digits: int) -> None:
    random = np.random.default_rng(0)
    values = torch.from_numpy(random.normal(size=(5, 100)) * 10.0 ** random.integers(-9, 9, (5, 1)))
    values[3] = 0
    values[4, 0] = 2.0**40  # a power of two, far above the rest
    for record, rounded in zip(values, round_to_digits(values, digits), strict=True):
        unit = 2.0 ** (np.frexp(float(record.abs().max()))[1] - digits)
        assert float((record - rounded).abs().max()) <= unit / 2
        whole = rounded / unit
        assert torch.equal(whole, whole.round())
        assert float(whole.abs().max()) <= 2**digits


@pytest.mark.parametrize("width", [1, 2, 3, 7, 64, 100])
def test_the_sum_in_fixed_order_is_a_sum(width: int) -> None:
    values = torch.from_numpy(np.random.default_rng(0).normal(size=(3, width)))
    before = values.clone()
    exact = [float(sum(map(Fraction, row.tolist()))) for row in values]
    assert sum_in_fixed_order(values).tolist() == pytest.approx(exact, rel=1e-14, abs=1e-14)
    assert torch.equal(values, before)


@pytest.mark.parametrize("shift", [16, 23, 34, 35])
def test_three_products_of_integers_make_up_one_of_reals(shift: int) -> None:
    """None is longer than the product, none has another sign, none is far from it."""
    grid = Grid(levels=255, shift=shift, capacity=1)
    random = np.random.default_rng(0)
    delta, inputs = random.normal(size=(2, 50, 6)) * 10.0 ** random.integers(-6, 1, (2, 50, 6))
    delta[0], inputs[1] = 0, 0
    delta[2], inputs[2] = np.eye(6)[0], -np.eye(6)[3]
    delta /= np.maximum(1, np.linalg.norm(delta, axis=1, keepdims=True))
    inputs /= np.maximum(1, np.linalg.norm(inputs, axis=1, keepdims=True))
    delta *= grid.units_per_one
    made = _products_of_integers(torch.from_numpy(delta), torch.from_numpy(inputs), grid)
    norms = made.norms().tolist()
    for record in range(len(delta)):
        found = np.zeros((6, 6), dtype=object)
        for left, right in made.pairs:
            one, other = left[record].numpy(), right[record].numpy()
            assert np.array_equal(one, np.rint(one))
            assert np.array_equal(other, np.rint(other))
            found += np.outer([int(x) for x in one], [int(y) for y in other])
        for i, j in np.ndindex(6, 6):
            exact = Fraction(delta[record, i]) * Fraction(inputs[record, j])
            product = Fraction(int(found[i, j]))
            assert abs(product) <= abs(exact)
            assert product * exact >= 0
            limit = max(4, grid.units_per_one >> (3 * (shift + 7) // 4 - 3))
            assert abs(exact - product) <= limit
        squared = sum(int(value) ** 2 for value in found.ravel())
        assert norms[record] == pytest.approx(squared**0.5, rel=1e-12)
