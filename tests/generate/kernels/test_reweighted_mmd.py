"""The opponent's weights are those of another Gaussian over frequencies, and make the most."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from dpntk.embed import FeatureOptions, FourierOptions, SourceOptions, embed
from dpntk.generate.kernels.plain_mmd import PlainMMD
from dpntk.generate.kernels.reweighted_mmd import ReweightedDistance
from dpntk.release import PrivacyParameters, Release
from dpntk.release.publishing.pipeline import unrecorded_release
from tests.conftest import CLASSES, SIDE, draw_records

CPU = torch.device("cpu")


def released(options: FeatureOptions) -> tuple[Release, Tensor]:
    """A release of equal classes without noise, and its records, (c, n, record size)."""
    records, _ = draw_records(12)
    labels = np.arange(12) % CLASSES
    images = records.reshape(-1, SIDE, SIDE)
    embedding = embed((images, labels), options, SourceOptions(classes=CLASSES))
    by_class = [records[labels == label] for label in range(CLASSES)]
    values = torch.from_numpy(np.stack(by_class)).double() / 255
    release = unrecorded_release(embedding, PrivacyParameters(math.inf, not_private=True))
    return release, values


def test_the_weights_are_a_ratio_of_densities_that_the_opponent_raises_the_distance_by() -> None:
    torch.manual_seed(0)
    release, real = released(FourierOptions(frequencies=40))
    distance = ReweightedDistance(release, CPU, dtype=torch.float64)
    made = torch.rand(CLASSES, 5, SIDE**2, dtype=torch.float64)

    frequencies = torch.from_numpy(release.feature_map.weights()["turns"]).double()
    frequencies *= 2 * math.pi * 255
    phases = [torch.exp(1j * (records @ frequencies.T)) for records in (real, made)]
    mean, other = (each.mean(dim=1) / CLASSES for each in phases)
    apart = (mean - other).abs().square().sum(dim=0)  # of each frequency
    first = distance(made)
    assert torch.isclose(first, apart.mean(), rtol=1e-5)
    assert torch.isclose(first, PlainMMD(release, CPU, dtype=torch.float64)(made), rtol=1e-5)

    for _ in range(99):
        last = distance(made)
    change = distance.change.detach()
    assert float(change.abs().max()) > 1e-3
    spread = frequencies.square().mean()
    log_densities = [
        -(frequencies.square() * precision).sum(dim=1) / 2
        for precision in ((1 - change) / spread, torch.ones_like(change) / spread)
    ]
    ratios = (log_densities[0] - log_densities[1]).exp()
    expected = ratios / ratios.mean()
    weights = distance.weights().detach()
    assert torch.allclose(weights, expected)
    assert float(last) > float(first)
    assert torch.isclose(distance(made), (expected * apart).mean(), rtol=1e-5)


def test_a_generator_feels_the_weights_and_the_opponent_no_gradient_of_its_own() -> None:
    release, _ = released(FourierOptions(frequencies=40))
    distance = ReweightedDistance(release, CPU)
    made = torch.rand(CLASSES, 5, SIDE**2, requires_grad=True)
    for _ in range(5):
        found = distance(made)
    (gradient,) = torch.autograd.grad(found, made)
    assert float(gradient.abs().max()) > 0
    before = distance.change.detach().clone()
    distance(made).backward()
    assert torch.equal(distance.change, before)


def test_weights_leave_the_noise_floor_as_it_is() -> None:
    release, _ = released(FourierOptions(frequencies=40))
    noisy = replace(release, guarantee=replace(release.guarantee, sigma=0.6))
    distance = ReweightedDistance(noisy, CPU)
    made = torch.rand(CLASSES, 5, SIDE**2)
    for _ in range(20):
        distance(made)
    assert distance.noise_floor == PlainMMD(noisy, CPU).noise_floor
    per_frequency = distance.weights().detach() * 2 * CLASSES * (0.6 / 12) ** 2
    assert math.isclose(distance.noise_floor, float(per_frequency.sum()), rel_tol=1e-5)
