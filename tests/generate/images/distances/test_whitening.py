"""The whitened distance equals the explicit one in its basis, and weighs directions as it says."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from dpntk.common.features.ntk.map import TangentFeatures
from dpntk.common.features.rff import RandomFourierFeatures
from dpntk.embed import Embedding
from dpntk.embed.exact.reference import features
from dpntk.generate.images.distances import whitening
from dpntk.generate.images.distances.whitening import WhitenedDistance
from dpntk.generate.kernels.factors import factors_of
from dpntk.generate.kernels.registry import kernel_of
from dpntk.generate.kernels.scattering import SmoothFront
from dpntk.release import PrivacyParameters, Release
from dpntk.release.publishing.pipeline import unrecorded_release
from tests.conftest import CLASSES, SIDE, draw_records
from tests.generate.kernels.test_mmd import plain_distance
from tests.helpers.networks import NETWORKS

CPU = torch.device("cpu")
LOW_SIGNAL = 1e-3
"""An epsilon at which the noise is larger than any variance, so that all weights are 1."""


@pytest.fixture
def batch() -> Tensor:
    """Records of three classes, four of each, degenerate ones among them."""
    records, _ = draw_records(12)
    return torch.from_numpy(records).view(CLASSES, 4, -1).float() / 255


def looking_at(made: Release, batch: Tensor, *, in_pairs: bool = True) -> WhitenedDistance:
    objective = WhitenedDistance(made, CPU, in_pairs=in_pairs)
    objective.update_weights(batch)
    return objective


def fourier(made: Release) -> Release:
    feature_map = RandomFourierFeatures.draw(
        SIDE**2, frequencies=20, length_scale=3.0, levels=255, seed=0
    )
    drawn = np.random.default_rng(0).normal(0, 0.1, (feature_map.dimension, CLASSES))
    return replace(made, feature_map=feature_map, embedding=drawn.astype(np.float32))


@pytest.mark.parametrize("network", NETWORKS.values(), ids=NETWORKS)
def test_factors_make_up_the_features(network: TangentFeatures) -> None:
    records, _ = draw_records(4 * CLASSES, size=network.record_size)
    batch = torch.from_numpy(records).float().view(CLASSES, 4, -1) / 255
    made = torch.zeros(CLASSES, 4, network.dimension)
    for part in factors_of(kernel_of(network, CPU).features(batch)):
        outer = part.left[..., :, None] * part.right[..., None, :]
        made[..., part.place] = outer.flatten(2)
    inputs = SmoothFront(network.front, CPU, torch.float32)(batch)
    expected = features(network, inputs.flatten(0, 1).double()).float().view_as(made)
    assert torch.allclose(made, expected, atol=1e-5)


@pytest.mark.parametrize("in_pairs", [False, True])
def test_distance_equals_the_explicit_features(
    in_pairs: bool, embedding: Embedding, batch: Tensor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Feature by feature in the basis, and over all pairs of records that are independent."""
    monkeypatch.setattr(whitening, "_SMOOTHING", 1e-3)
    made = unrecorded_release(embedding, PrivacyParameters(epsilon=50.0))
    objective = looking_at(made, batch, in_pairs=in_pairs)
    weights = torch.cat([block.weight.flatten() for block in objective.blocks])
    assert weights.min() < 0.5 < weights.max() <= 1
    others = batch.flip(2)
    parts = factors_of(kernel_of(made.feature_map, CPU).features(others))
    expected = torch.zeros(CLASSES)
    for block, part in zip(objective.blocks, parts, strict=True):
        left, right = part.left @ block.left, part.right @ block.right
        seen = block.target[:, None] - left[..., :, None] * right[..., None, :]
        for i, j in itertools.permutations(range(4), 2):
            if not (in_pairs and abs(i - j) == 2):
                expected += (block.weight * seen[:, i] * seen[:, j]).sum(dim=(1, 2))
    expected /= 8 if in_pairs else 12
    assert objective(others).item() == pytest.approx(expected.mean().item(), rel=1e-3)


def test_it_is_the_mean_of_what_is_found_class_by_class(
    embedding: Embedding, batch: Tensor
) -> None:
    objective = looking_at(unrecorded_release(embedding, PrivacyParameters(epsilon=10.0)), batch)
    parts = [slice(0, 1), slice(1, CLASSES)]
    found = torch.cat([objective.of_classes(batch[part], part) for part in parts])
    assert found.shape == (CLASSES,)
    assert torch.allclose(found.mean(), objective(batch), rtol=1e-5)
    assert found[0] != pytest.approx(float(found[1]), rel=1e-3)


@pytest.mark.parametrize("kind", ["ntk", "rff"])
def test_where_no_variance_counts_it_pulls_as_the_plain_distance(
    kind: str, embedding: Embedding, batch: Tensor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All weights are 1 then, and the basis spans the records that were looked at."""
    monkeypatch.setattr(whitening, "_SMOOTHING", 1e9)
    made = unrecorded_release(embedding, PrivacyParameters(epsilon=50.0))
    made = made if kind == "ntk" else fourier(made)
    pulls = []
    for objective in (looking_at(made, batch, in_pairs=False), plain_distance(made)):
        # Half the batch against the other half: the released matrix cancels.
        pulls.append(float(objective(batch[:, :2]) - objective(batch[:, 2:])))
    assert pulls[0] == pytest.approx(pulls[1], rel=1e-2, abs=1e-4)


def test_directions_of_much_variance_weigh_less_the_less_noise_there_is(
    embedding: Embedding, batch: Tensor
) -> None:
    lightest = [
        min(float(block.weight.min()) for block in looking_at(made, batch).blocks)
        for made in (
            unrecorded_release(embedding, PrivacyParameters(epsilon=e))
            for e in (LOW_SIGNAL, 100.0, 1e5)
        )
    ]
    assert lightest[0] > 0.999
    assert lightest[0] > lightest[1] > lightest[2]
    assert lightest[2] < 0.1


def test_noise_floor_is_what_the_noise_adds(embedding: Embedding, batch: Tensor) -> None:
    exact = embedding.sums * (embedding.grid.unit / embedding.records)
    shares = embedding.counts / embedding.records
    found = []
    for _ in range(20):
        made = replace(
            unrecorded_release(embedding, PrivacyParameters(epsilon=5.0)), class_weights=shares
        )
        noisy = looking_at(made, batch)
        clean = looking_at(replace(made, embedding=exact.astype(np.float32)), batch)
        added = sum(
            float((a.weight * (a.target - b.target).square()).sum()) / CLASSES
            for a, b in zip(noisy.blocks, clean.blocks, strict=True)
        )
        found.append(added / noisy.noise_floor)
    assert np.mean(found) == pytest.approx(1, abs=0.1)


def test_a_rare_class_has_weights_of_its_own(embedding: Embedding, batch: Tensor) -> None:
    """Its noise is larger by its share, and does not blunt the weights of the others."""
    made = replace(
        unrecorded_release(embedding, PrivacyParameters(epsilon=1e4)),
        class_weights=np.array([0.998, 1e-3, 1e-3]),
    )
    for block in looking_at(made, batch).blocks[:1]:
        lightest = block.weight.flatten(1).amin(dim=1)
        assert lightest[0] < 0.1 < 0.9 < lightest[1]


def test_an_exact_release_can_be_trained_on(embedding: Embedding, batch: Tensor) -> None:
    """Without noise no direction loses its weight altogether."""
    made = unrecorded_release(embedding, PrivacyParameters(epsilon=np.inf, not_private=True))
    objective = looking_at(made, batch)
    assert min(float(block.weight.min()) for block in objective.blocks) > 1e-6
    assert objective.noise_floor == 0
