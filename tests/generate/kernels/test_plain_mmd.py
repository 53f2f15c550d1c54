"""Loss, gradients and released matrix equal a literal reading of the paper.

Network and generator are torch modules; features are gradients of single records, written out for
every output; equation 6 is their matrix, and what flows back is a second backward pass.
"""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from dpntk.common.features.ntk.map import TangentFeatures
from dpntk.common.schema.table import TableSchema
from dpntk.embed import SourceOptions, TangentOptions, embed
from dpntk.embed.exact.reference import network_of
from dpntk.generate.images.generators.networks.convolutional import ConvolutionalGenerator
from dpntk.generate.images.generators.networks.spec import NetworkSpec
from dpntk.generate.kernels.plain_mmd import PlainMMD
from dpntk.generate.tables.generators.perceptron import PerceptronGenerator, PerceptronSpec
from dpntk.release import PrivacyParameters, Release
from dpntk.release.publishing.pipeline import unrecorded_release
from tests.conftest import CLASSES, SIDE, draw_records
from tests.helpers.networks import NETWORKS
from tests.helpers.tables import PEOPLE, people

CPU = torch.device("cpu")
WITHOUT_NOISE = PrivacyParameters(math.inf, not_private=True)
OF_IMAGES = ("fc_1l", "layer norm behind fc_1l", "fc_2l", "cnn_1l", "cnn_2l", "cnn_2l on vectors")
OF_TABLES = (("fc_1l", "7"), ("fc_1l_norm", "7"), ("fc_2l", "7_4"), ("cnn_2l", "3_4"))
EACH = 3


def feature(network: nn.Module, record: Tensor) -> Tensor:
    """phi(x) = g / ||g||, g the gradient of the summed outputs in all parameters, float64 (d,)."""
    parts = torch.autograd.grad(
        network(record[None]).sum(), list(network.parameters()), create_graph=True
    )
    gradient = torch.cat([part.flatten() for part in parts])
    normalised: Tensor = gradient / gradient.norm()
    return normalised


def mean_embedding(feature_map: TangentFeatures, records: Tensor, labels: Tensor) -> Tensor:
    """(1/n) sum_i phi(x_i) y_i^T, one record after the other, float64 (d, c)."""
    network = network_of(feature_map)
    total = torch.zeros(())
    for record, label in zip(records, labels, strict=True):
        one_hot = nn.functional.one_hot(label, feature_map.outputs).double()
        total = total + torch.outer(feature(network, record), one_hot)
    return total / len(records)


def written_out(feature_map: TangentFeatures, matrix: Tensor) -> Tensor:
    """A released matrix in the coordinates of the paper: a copy of the last part for each output.

    Ours holds what all outputs share once, times the square root of their number.
    """
    shared = len(feature_map.readout)
    hidden, weights, bias = matrix.split([len(matrix) - shared - 1, shared, 1])
    count = feature_map.outputs
    copies = [weights.repeat(count, 1), bias.repeat(count, 1)]
    return torch.cat([hidden, torch.cat(copies) / math.sqrt(count)])


def release_of_images(feature_map: TangentFeatures, *, equal: bool) -> tuple[Release, Tensor]:
    """A release of 12 records without noise, and what the paper says that it holds."""
    records, labels = draw_records(12)
    labels = np.arange(12) % CLASSES if equal else np.sort(labels)
    labels[:CLASSES] = np.arange(CLASSES)
    images = records.reshape(-1, SIDE, SIDE)
    embedded = embed((images, labels), feature_map, SourceOptions(classes=CLASSES))
    values = torch.from_numpy(records).double() / 255
    expected = mean_embedding(feature_map, values, torch.from_numpy(labels)).detach()
    return unrecorded_release(embedded, WITHOUT_NOISE), expected


def gradients(loss: Tensor, generator: nn.Module) -> list[Tensor]:
    return list(torch.autograd.grad(loss, list(generator.parameters())))


def require_equal(found: Tensor, expected: Tensor) -> None:
    found, expected = found.detach(), expected.detach()
    assert float((found - expected).abs().max()) < 1e-6 * max(1.0, float(expected.abs().max()))


def compare(
    release: Release, feature_map: TangentFeatures, target: Tensor, generator: nn.Module, code: int
) -> None:
    """Equation 6 by `PlainMMD` and by the definition, and their gradients."""
    classes = target.shape[1]
    codes = torch.randn(classes, EACH, code, dtype=torch.float64)
    labels = torch.arange(classes)
    loss = PlainMMD(release, CPU, dtype=torch.float64)(generator(codes, labels))

    records = generator(codes, labels).flatten(0, 1)
    made = mean_embedding(feature_map, records, labels.repeat_interleave(EACH))
    expected = (target - made).square().sum()
    require_equal(loss, expected)
    assert float(expected.detach()) > 1e-3
    found = zip(gradients(loss, generator), gradients(expected, generator), strict=True)
    for own, literal in found:
        require_equal(own, literal)


@pytest.mark.parametrize("name", OF_IMAGES)
@pytest.mark.parametrize("equal", [True, False], ids=["equal classes", "unequal classes"])
def test_release_loss_and_gradients_of_images(name: str, equal: bool) -> None:
    feature_map = NETWORKS[name]
    release, expected = release_of_images(feature_map, equal=equal)
    held = written_out(feature_map, torch.from_numpy(release.embedding).double())
    require_equal(held, expected)
    shares = torch.from_numpy(release.class_weights)
    assert torch.allclose(shares, torch.full_like(shares, 1 / CLASSES)) == equal
    # DP-MERF, section 4.2: every class as frequent as the others.
    target = held / shares / CLASSES
    torch.manual_seed(0)
    generator = ConvolutionalGenerator(NetworkSpec(SIDE, CLASSES, code=4)).double()
    compare(release, feature_map, target, generator, code=4)


@pytest.mark.parametrize(("arch", "width"), OF_TABLES, ids=str)
def test_loss_and_gradients_of_tables(arch: str, width: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(people(40))
    features = TangentOptions(arch=arch, width=width, marginals=0.0)
    embedded = embed(tmp_path / "a.csv", features, SourceOptions(schema=PEOPLE))
    release = unrecorded_release(embedded, WITHOUT_NOISE)
    feature_map, schema = release.feature_map, release.schema
    assert isinstance(feature_map, TangentFeatures)
    assert isinstance(schema, TableSchema)
    held = written_out(feature_map, torch.from_numpy(release.embedding).double())
    target = held / torch.from_numpy(release.class_weights) / len(schema.classes)
    torch.manual_seed(0)
    generator = PerceptronGenerator(PerceptronSpec(code=4, hidden=3, width=8), schema).double()
    compare(release, feature_map, target, generator, code=4)


def test_the_floor_is_what_noise_alone_adds() -> None:
    release, _ = release_of_images(NETWORKS["fc_1l"], equal=True)
    guarantee = replace(release.guarantee, sigma=0.6)
    noisy = replace(release, guarantee=guarantee)
    per_entry = (0.6 / 12) ** 2
    floor = PlainMMD(noisy, CPU).noise_floor
    assert math.isclose(floor, per_entry * release.embedding.size, rel_tol=1e-6)
    in_means = PlainMMD(noisy, CPU, scale=CLASSES).noise_floor
    assert math.isclose(in_means, floor * CLASSES, rel_tol=1e-6)
