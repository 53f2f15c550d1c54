"""Two-way marginals in training: read off a release rightly, and their distance without bias."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
import torch

from dpntk.common.schema.encoding import blocks_of
from dpntk.common.sources import open_source
from dpntk.common.sources.options import SourceOptions
from dpntk.embed import TangentOptions, embed
from dpntk.generate.kernels.mean_embedding import released_mean
from dpntk.generate.tables.generators.knots import TableGenerator, TableGeneratorSpec
from dpntk.generate.tables.objective import PairDistance, PairMarginal, TableDistance, pairs_of
from dpntk.release import PrivacyParameters
from dpntk.release.file.model import Release
from dpntk.release.publishing.pipeline import unrecorded_release
from tests.helpers.tables import PEOPLE, people

PAIRS = ("all",)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("table") / "a.csv"
    path.write_text(people(300))
    return path


@pytest.fixture(scope="module")
def released(data: Path) -> Release:
    return unrecorded_release(
        embed(data, TangentOptions(width=3, pairs=PAIRS), SourceOptions(schema=PEOPLE)),
        PrivacyParameters(4e5, 1e-3),
    )


def pairs_in(made: Release) -> tuple[PairMarginal, ...]:
    return pairs_of(released_mean(made), made.feature_map)


def distance(made: Release, marginals_loss: float) -> TableDistance:
    mean, cpu = released_mean(made), torch.device("cpu")
    return TableDistance(mean, made.feature_map, PEOPLE, cpu, marginals_loss)


def test_a_release_with_hardly_any_noise_has_the_shares_of_the_rows(
    data: Path, released: Release
) -> None:
    (batch,) = open_source(data, SourceOptions(schema=PEOPLE)).batches(300)
    found = {(pair.first, pair.second): pair.shares for pair in pairs_in(released)}
    age, pay, grade, town = ((b.shares.start, b.shares.stop) for b in blocks_of(PEOPLE))
    assert list(found) == list(combinations((age, pay, grade, town), 2))
    for (first, second), shares in found.items():
        for label in range(2):
            rows = batch.records[batch.labels == label]
            cells = rows[:, slice(*first)].argmax(1), rows[:, slice(*second)].argmax(1)
            wanted = np.zeros(shares.shape[1:])
            np.add.at(wanted, cells, 1 / len(rows))
            assert np.abs(shares[label] - wanted).max() < 1e-3


def test_the_distance_is_that_of_the_tables_without_the_pairs_of_a_row_with_itself() -> None:
    random = np.random.default_rng(0)
    records = random.random((2, 5, 7)).astype(np.float32)
    pairs = [
        PairMarginal((0, 3), (3, 5), random.random((2, 3, 2))),
        PairMarginal((0, 3), (5, 7), random.random((2, 3, 2))),
        PairMarginal((3, 5), (5, 7), random.random((2, 2, 2))),
    ]
    wanted = 0.0
    for pair in pairs:
        for label in range(2):
            one = np.eye(3)[records[label, :, slice(*pair.first)].argmax(1)]
            one = one[:, : pair.shares.shape[1]]
            other = np.eye(2)[records[label, :, slice(*pair.second)].argmax(1)]
            features = (one[:, :, None] * other[:, None, :]).reshape(5, -1)
            target = pair.shares[label].ravel()
            among = np.mean([features[i] @ features[j] * 1.0 for i, j in combinations(range(5), 2)])
            wanted += target @ target - 2 * features.mean(0) @ target + among
    distance = PairDistance(pairs, torch.device("cpu"), 6.0)(torch.from_numpy(records))
    assert float(distance) == pytest.approx(wanted / 2 * 6 / 3, rel=1e-5)


def test_a_row_of_the_generator_is_in_one_cell_and_its_gradient_is_passed_on(
    released: Release,
) -> None:
    """Training on the pairs alone brings them nearer."""
    torch.manual_seed(0)
    generator = TableGenerator(TableGeneratorSpec(8, 32), PEOPLE)
    objective = PairDistance(pairs_in(released), torch.device("cpu"), 1.0)
    random = torch.Generator().manual_seed(1)
    optimiser = torch.optim.Adam(generator.parameters(), 0.01)
    distances = []
    for _ in range(150):
        optimiser.zero_grad()
        code = torch.randn(2, 100, 8, generator=random)
        distance = objective(generator(code, torch.arange(2), random))
        torch.autograd.backward(distance)
        optimiser.step()
        distances.append(float(distance.detach()))
    assert np.mean(distances[-10:]) < 0.3 * np.mean(distances[:10])


def test_pairs_add_to_the_distance_and_one_way_marginals_stay(
    data: Path, released: Release
) -> None:
    records = torch.rand(2, 20, PEOPLE.record_size, generator=torch.Generator().manual_seed(0))
    whole = distance(released, 30.0)(records).minimised
    without = distance(released, 0.0)(records)
    features = without.reported
    assert float(without.minimised) == pytest.approx(float(features), abs=1e-6)
    pairs = PairDistance(pairs_in(released), torch.device("cpu"), 30.0)(records)
    alone = unrecorded_release(
        embed(data, TangentOptions(width=3, pairs=("none",)), SourceOptions(schema=PEOPLE)),
        PrivacyParameters(4e5, 1e-3),
    )
    assert pairs_in(alone) == ()
    other = distance(alone, 30.0)(records)
    one_way = float(other.minimised - other.reported)
    assert float(whole - features - pairs) == pytest.approx(one_way, rel=1e-2)
