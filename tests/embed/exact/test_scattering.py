"""Fronts in whole numbers, and the smooth ones that the generator is trained through."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from dpntk.common.errors import SchemaError
from dpntk.common.features.ntk.architectures import fc_1l
from dpntk.common.features.ntk.map import TangentFeatures
from dpntk.common.features.ntk.scattering import Scattering, front_from_spec, make_front
from dpntk.embed.exact.reference import features
from dpntk.embed.exact.scattering import ExactFront
from dpntk.generate.kernels.scattering import SmoothFront
from dpntk.generate.kernels.tangent import TangentKernel
from tests.conftest import CLASSES, SIDE, draw_records

CPU = torch.device("cpu")
FRONT = Scattering.standard(SIDE)


def exactly(front: Scattering, records: NDArray[np.uint8]) -> torch.Tensor:
    return ExactFront(front, 255, CPU)(torch.from_numpy(records).double())


def by_definition(record: NDArray[np.uint8]) -> list[int]:
    """One record, in Python's whole numbers."""
    image = np.pad(record.reshape(SIDE, SIDE).astype(int), 5)
    taps = np.rint(FRONT.filters.astype(np.float64) * 2**14).astype(int)
    half, outputs = len(taps) // 2, [int(value) for value in record]

    def modulus(number: int, top: int, left: int) -> int:
        window = image[top : top + 11, left : left + 11]
        real, imaginary = (int((taps[n] * window).sum()) for n in (number, number + half))
        return math.isqrt(real**2 + imaginary**2)

    for number in range(half):
        for top in range(0, SIDE, 4):
            for left in range(0, SIDE, 4):
                total = sum(modulus(number, top + i, left + j) for i in (0, 2) for j in (0, 2))
                outputs.append(min(255, total * 2 // (4 * 2**14)))
    return outputs


def test_the_exact_front_is_its_definition() -> None:
    records, _ = draw_records(6)
    made = exactly(FRONT, records)
    assert made.shape == (6, FRONT.outputs) == (6, 64 + 16 * 2 * 2)
    assert made.tolist() == [by_definition(record) for record in records]


def test_each_channel_of_a_colour_image_is_an_image_of_its_own() -> None:
    planes, _ = draw_records(6)
    made = exactly(Scattering.standard(SIDE, 3), planes.reshape(2, -1))
    pixels, local = made.split([3 * 64, 3 * 16 * 2 * 2], dim=1)
    one_by_one = exactly(FRONT, planes)
    assert torch.equal(pixels, one_by_one[:, :64].reshape(2, -1))
    assert torch.equal(local, one_by_one[:, 64:].reshape(2, -1))


def test_a_record_has_the_same_outputs_in_every_company() -> None:
    records, _ = draw_records(301)
    together = exactly(FRONT, records)
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        assert torch.equal(together, exactly(FRONT, records))
    finally:
        torch.set_num_threads(before)
    for place in (0, 7, 300):
        assert torch.equal(together[place], exactly(FRONT, records[place : place + 1])[0])
    assert torch.equal(together[100:], exactly(FRONT, records[100:]))


@pytest.mark.parametrize("planes", [1, 3])
@pytest.mark.parametrize("side", [8, 9, 27, 28, 64])
def test_the_smooth_front_is_the_exact_one_but_for_rounding(side: int, planes: int) -> None:
    front = make_front("scattering", side, planes)
    assert isinstance(front, Scattering)
    random = np.random.default_rng(0)
    records = random.integers(0, 256, (4, front.record_size), dtype=np.uint8)
    records[0], records[1] = 0, 255
    smooth = SmoothFront(front, CPU, torch.float32)(torch.from_numpy(records).float()[None] / 255)
    exact = exactly(front, records) / 255
    assert smooth.shape == (1, 4, front.outputs)
    assert float((smooth[0] - exact).abs().max()) < 1.5 / 255
    assert bool((exact >= 0).all())
    assert bool((exact <= 1).all())


def test_the_slope_of_the_smooth_front_is_finite_everywhere() -> None:
    records = torch.zeros(1, 2, SIDE * SIDE)
    records[0, 1] = 1.0
    records.requires_grad_()
    SmoothFront(FRONT, CPU, torch.float32)(records).sum().backward()
    assert records.grad is not None
    assert bool(records.grad.isfinite().all())


@pytest.mark.parametrize("planes", [1, 3])
@pytest.mark.parametrize("side", [8, 9, 10, 11, 27, 28])
def test_slopes_of_the_smooth_front_are_those_of_its_definition(side: int, planes: int) -> None:
    front = make_front("scattering", side, planes)
    assert isinstance(front, Scattering)
    random = torch.Generator().manual_seed(0)
    records = torch.rand((1, 3, front.record_size), generator=random, dtype=torch.float64)
    records[0, 1] = records[0, 1].round()  # strong enough that some means are cut
    weights = torch.rand((3, front.outputs), generator=random, dtype=torch.float64)
    filters = torch.from_numpy(front.filters).double()[:, None]

    def plainly(records: torch.Tensor) -> torch.Tensor:
        images = records.view(-1, 1, side, side)
        responses = torch.nn.functional.conv2d(images, filters, stride=2, padding=5)
        real, imaginary = responses.chunk(2, dim=1)
        modulus = (real**2 + imaginary**2 + 1e-6).sqrt()
        means = 2 * torch.nn.functional.avg_pool2d(modulus, 2)
        return torch.cat([records[0], means.clamp(max=1).view(3, -1)], dim=1)

    def slopes(made: torch.Tensor, of: torch.Tensor) -> torch.Tensor:
        return torch.autograd.grad((made * weights).sum(), of)[0]

    records.requires_grad_()
    ours, theirs = SmoothFront(front, CPU, torch.float64)(records)[0], plainly(records)
    assert bool((theirs == 1).any())
    assert torch.allclose(ours, theirs, rtol=0, atol=1e-12)
    assert torch.allclose(slopes(ours, records), slopes(theirs, records), rtol=0, atol=1e-10)


def test_filters_tell_orientations_apart() -> None:
    """Stripes make the filter across them answer most."""
    front = Scattering.standard(28)
    rows, columns = np.indices((28, 28))
    upright = np.where(columns % 3 == 0, 255, 0).astype(np.uint8).reshape(1, -1)
    lying = np.where(rows % 3 == 0, 255, 0).astype(np.uint8).reshape(1, -1)
    fine = slice(0, 8)  # eight orientations of the first scale

    def answers(image: NDArray[np.uint8]) -> NDArray[np.float64]:
        local = exactly(front, image)[0, 784:].view(16, 7, 7)
        means: NDArray[np.float64] = local[fine].mean(dim=(1, 2)).numpy()
        return means

    assert answers(upright).argmax() == 0
    assert answers(lying).argmax() == 4


def test_the_generators_kernel_goes_through_the_front() -> None:
    feature_map = TangentFeatures.draw(FRONT, fc_1l(7), outputs=CLASSES, levels=255, seed=2)
    records = torch.rand(2, 5, SIDE * SIDE, dtype=torch.float64)
    kernel = TangentKernel(feature_map, CPU, torch.float64)
    inputs = SmoothFront(FRONT, CPU, torch.float64)(records)
    phi = torch.stack([features(feature_map, one) for one in inputs])
    assert torch.allclose(kernel.features(records).gram(), phi @ phi.mT, atol=1e-12)


def test_it_travels_in_the_release() -> None:
    weights = dict(FRONT.weights())
    assert "planes" not in FRONT.spec()
    in_colour = Scattering.standard(SIDE, 3)
    back = front_from_spec(in_colour.spec(), in_colour.weights(), in_colour.outputs)
    assert (back.record_size, back.outputs) == (3 * 64, 3 * 64 + 3 * 16 * 2 * 2)
    spec = json.loads(json.dumps(FRONT.spec()))
    again = front_from_spec(spec, weights, FRONT.outputs)
    assert isinstance(again, Scattering)
    assert np.array_equal(again.filters, FRONT.filters)
    for wrong in (
        ({**spec, "side": 9}, weights, FRONT.outputs),
        ({**spec, "side": 10**9}, weights, FRONT.outputs),
        ({**spec, "kind": "wavelets"}, weights, FRONT.outputs),
        ({**spec, "planes": 1}, weights, FRONT.outputs),
        ({**spec, "planes": 3}, weights, FRONT.outputs),
        ({**spec, "planes": True}, weights, FRONT.outputs),
        ({**spec, "more": 1}, weights, FRONT.outputs),
        (spec, {}, FRONT.outputs),
        (spec, {"front_filters": FRONT.filters[:3]}, FRONT.outputs),
        (spec, {"front_filters": FRONT.filters[:, :5]}, FRONT.outputs),
        (spec, {"front_filters": FRONT.filters * np.float32(1.001)}, FRONT.outputs),
        (spec, {"front_filters": FRONT.filters * np.float32(4)}, FRONT.outputs),
        (spec, weights, FRONT.outputs + 1),
    ):
        with pytest.raises(SchemaError, match=r"^front: "):
            front_from_spec(*wrong)
