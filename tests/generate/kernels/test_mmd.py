"""Inner products, the loss and its gradient equal those of the explicit features."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from torch import Tensor

from dpntk.common.features.base import FeatureMap
from dpntk.common.features.ntk.map import TangentFeatures
from dpntk.embed import Embedding
from dpntk.embed.exact.reference import features
from dpntk.generate.kernels.mean_embedding import released_mean
from dpntk.generate.kernels.mmd import MeanEmbeddingDistance
from dpntk.release import PrivacyParameters, Release
from dpntk.release.publishing.pipeline import unrecorded_release
from tests.conftest import CLASSES, draw_records

# The loss is what is left of terms of the order of one (features have length one), each of them
# rounded to 6e-8: it may come close to nothing, so an error has to be seen beside the terms.
ROUNDING = 1e-5


@pytest.fixture
def batch() -> Tensor:
    """Records of three classes, four of each, degenerate ones among them."""
    records, _ = draw_records(12)
    return torch.from_numpy(records).double().view(CLASSES, 4, -1) / 255


def plain_distance(made: Release) -> MeanEmbeddingDistance:
    mean = released_mean(made)
    target, noise = torch.from_numpy(mean.values).T, torch.from_numpy(mean.noise)
    return MeanEmbeddingDistance(made.feature_map, target, noise)


def explicit(feature_map: FeatureMap, batch: Tensor) -> Tensor:
    assert isinstance(feature_map, TangentFeatures)
    return features(feature_map, batch.flatten(0, 1)).view(*batch.shape[:2], -1)


def test_loss_and_gradient_equal_the_explicit_features(embedding: Embedding, batch: Tensor) -> None:
    """The gradient reaches the records as by a second backward pass through the features."""
    made = unrecorded_release(embedding, PrivacyParameters(epsilon=50.0))
    objective = plain_distance(made)
    target = objective.target.double()

    inputs = batch.clone().requires_grad_()
    phi = explicit(made.feature_map, inputs)
    pairs = list(itertools.permutations(range(4), 2))
    among = sum((phi[:, i] * phi[:, j]).sum(-1) for i, j in pairs) / len(pairs)
    towards = (phi.mean(dim=1) * target).sum(-1)
    expected = (target.square().sum(-1) - 2 * towards + among).mean()
    (expected_gradient,) = torch.autograd.grad(expected, inputs)

    single = batch.float().requires_grad_()
    loss = objective(single)
    (gradient,) = torch.autograd.grad(loss, single)

    assert loss.item() == pytest.approx(expected.item(), abs=ROUNDING)
    assert torch.allclose(gradient.double(), expected_gradient, rtol=1e-4, atol=1e-5)


def test_loss_of_a_batch_does_not_depend_on_its_size_in_expectation(
    embedding: Embedding,
) -> None:
    """Averaged over all pairs of records, the loss is that of sampling them independently."""
    made = unrecorded_release(embedding, PrivacyParameters(epsilon=50.0))
    objective = plain_distance(made)
    pool = torch.from_numpy(draw_records(4 * CLASSES, seed=7)[0]).float() / 255
    pool = pool.view(CLASSES, 4, -1)
    pairs = [float(objective(pool[:, list(pair)])) for pair in itertools.combinations(range(4), 2)]
    assert np.mean(pairs) == pytest.approx(float(objective(pool)), abs=ROUNDING)


def test_noise_floor_is_the_expected_squared_norm_of_the_noise(embedding: Embedding) -> None:
    found = []
    exact = embedding.sums * (embedding.grid.unit / embedding.records)
    for _ in range(20):
        made: Release = unrecorded_release(embedding, PrivacyParameters(epsilon=5.0))
        noise = (made.embedding - exact) / made.class_weights
        floor = plain_distance(made).noise_floor
        found.append(np.square(noise).sum(axis=0).mean() / floor)
    assert np.mean(found) == pytest.approx(1, abs=0.05)
