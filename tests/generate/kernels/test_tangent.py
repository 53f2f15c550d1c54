"""Inner products, and what flows back to the records, equal those of the explicit features."""

from __future__ import annotations

from typing import NamedTuple

import pytest
import torch
from torch import Tensor

from dpntk.common.features.ntk.map import TangentFeatures
from dpntk.embed.exact.reference import features
from dpntk.generate.kernels.scattering import SmoothFront
from dpntk.generate.kernels.tangent import TangentKernel
from tests.conftest import CLASSES, draw_records
from tests.helpers.devices import every_device
from tests.helpers.networks import NETWORKS

CPU = torch.device("cpu")
every_network = pytest.mark.parametrize("network", NETWORKS.values(), ids=NETWORKS)


class Found(NamedTuple):
    """Inner products, and the gradient of a mixture of them with respect to the records."""

    inner: Tensor
    gram: Tensor
    gradient: Tensor


def batch(network: TangentFeatures) -> Tensor:
    """Records of three classes, four of each: all zero, all one, one bright pixel, and random."""
    return (
        torch.from_numpy(draw_records(12, size=network.record_size)[0])
        .double()
        .view(CLASSES, 4, -1)
        / 255
    )


def matrix(network: TangentFeatures) -> Tensor:
    random = torch.Generator().manual_seed(0)
    return torch.randn(CLASSES, network.dimension, generator=random, dtype=torch.float64)


def mixture(inner: Tensor, gram: Tensor, records: Tensor) -> Found:
    off = gram - torch.diag_embed(gram.diagonal(dim1=1, dim2=2))
    loss = (inner * torch.arange(1.0, 5.0).to(inner)).sum() + off.square().sum()
    (gradient,) = torch.autograd.grad(loss, records)
    return Found(*(t.detach().cpu().double() for t in (inner, gram, gradient)))


def by_engine(network: TangentFeatures, dtype: torch.dtype, device: torch.device) -> Found:
    records = batch(network).to(device, dtype).requires_grad_()
    made = TangentKernel(network, device, dtype).features(records)
    return mixture(made.inner(matrix(network).to(device, dtype)), made.gram(), records)


def by_definition(network: TangentFeatures) -> Found:
    """Through n x d numbers and a second backward pass."""
    records = batch(network).requires_grad_()
    inputs = SmoothFront(network.front, CPU, torch.float64)(records)
    phi = features(network, inputs.flatten(0, 1)).view(CLASSES, 4, -1)
    return mixture((phi @ matrix(network)[:, :, None])[..., 0], phi @ phi.mT, records)


@every_network
@every_device
@pytest.mark.parametrize(("dtype", "rounding"), [(torch.float64, 1e-9), (torch.float32, 1e-4)])
def test_features_are_the_gradients_over_their_length(
    network: TangentFeatures, device: torch.device, dtype: torch.dtype, rounding: float
) -> None:
    both = zip(by_engine(network, dtype, device), by_definition(network), strict=True)
    for found, expected in both:
        largest = max(1.0, float(expected.abs().max()))
        assert float((found - expected).abs().max()) < rounding * largest


def test_a_map_that_travelled_has_the_same_features() -> None:
    """Spec and weights are all that a release holds of it."""
    for network in NETWORKS.values():
        again = TangentFeatures.from_spec(network.spec(), network.weights())
        one, other = (
            TangentKernel(n, CPU).features(batch(network).float()).gram() for n in (network, again)
        )
        assert torch.equal(one, other)
