"""A plan says what the release then has, and reads nothing that is protected."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from dpntk.common.adjacency import Adjacency
from dpntk.common.display.text import rounded_up
from dpntk.common.errors import BudgetError
from dpntk.common.features.base import FeatureMap
from dpntk.common.features.ntk.map import TangentFeatures
from dpntk.common.schema.drafts.draft import Draft
from dpntk.embed import Embedding, load_embedding
from dpntk.embed.exact.grid import Grid
from dpntk.release import PrivacyParameters
from dpntk.release.mechanism.composition import total_of
from dpntk.release.publishing.parameters import ClassCounts
from dpntk.release.publishing.pipeline import unrecorded_release
from dpntk.release.publishing.plan import Plan, plan
from tests.conftest import CLASSES, Command
from tests.helpers.tables import PEOPLE, UNORDERED, people


@pytest.mark.parametrize("adjacency", list(Adjacency))
@pytest.mark.parametrize("counts", list(ClassCounts))
def test_the_release_has_the_noise_that_was_planned(
    embedding: Embedding, adjacency: Adjacency, counts: ClassCounts
) -> None:
    parameters = PrivacyParameters(3.0, 1e-3, adjacency, counts)
    planned = plan(embedding.feature_map, embedding.grid, CLASSES, 200, parameters)
    made = unrecorded_release(embedding, parameters).guarantee
    assert planned.sigma == made.sigma
    assert planned.noise_multiplier == made.noise_multiplier
    assert planned.sensitivity == pytest.approx(made.sensitivity)


def test_the_noise_is_as_long_as_planned(embedding: Embedding) -> None:
    planned = plan(embedding.feature_map, embedding.grid, CLASSES, 200, PrivacyParameters(1.0))
    made = unrecorded_release(embedding, PrivacyParameters(1.0))
    exact = embedding.sums * (embedding.grid.unit / embedding.records)
    assert np.linalg.norm(made.embedding - exact) == pytest.approx(planned.noise_norm, rel=0.1)
    assert np.linalg.norm(exact) <= planned.signal_bound * 1.1  # classes are not quite equal here
    assert planned.noise_norm == pytest.approx(made.noise_norm)


def paper_like(feature_map: FeatureMap, grid: Grid, epsilon: float, records: int) -> Plan:
    return plan(feature_map, grid, CLASSES, records, PrivacyParameters(epsilon))


def test_noise_dominates_where_the_plan_says(feature_map: TangentFeatures, grid: Grid) -> None:
    first = paper_like(feature_map, grid, 1.0, 60_000)
    there = first.epsilon_where(1 / first.excess)
    assert paper_like(feature_map, grid, there, 60_000).excess == pytest.approx(1, rel=1e-6)
    fewer = round(first.records * first.excess)
    assert paper_like(feature_map, grid, 1.0, fewer).excess == pytest.approx(1, rel=1e-2)
    assert first.loss_floor == pytest.approx((first.noise_norm / first.signal_bound) ** 2)


def test_a_plan_from_public_facts_and_from_the_embedding_agree(
    dpntk: Command, embedding_file: Path
) -> None:
    facts = ("--records", 200, "--classes", 3, "--image-size", 8, "--front", "pixels")
    one = dpntk("plan", *facts, "--width", 13, "--eps", 1, "--delta", 1e-3)
    other = dpntk("plan", embedding_file, "--eps", 1, "--delta", 1e-3)
    assert one.code == other.code == 0
    lines = one.stdout.splitlines()
    assert other.stdout.splitlines()[: len(lines)] == lines
    assert "859 x 3" in one.stdout  # 13 (64 + 2) + 1
    assert "released so far: 0" in other.stdout


def test_the_usual_embedding_is_planned_where_nothing_else_is_said(
    dpntk: Command, embedding_file: Path
) -> None:
    """Facts that are said of other data go before it."""
    there = embedding_file.rename(embedding_file.with_name("embedding.h5"))
    assert dpntk("plan", "--eps", 1).stdout == dpntk("plan", there, "--eps", 1).stdout
    facts = dpntk("plan", "--records", 50, "--classes", 2, "--eps", 1)
    assert "50 records" in facts.stdout
    there.unlink()
    assert "give an EMBEDDING" in dpntk("plan", "--eps", 1).stderr


def test_a_plan_of_a_table_from_its_schema_and_from_its_embedding_agree(
    dpntk: Command, tmp_path: Path
) -> None:
    (tmp_path / "people.csv").write_text(people(300))
    (tmp_path / "schema.toml").write_text(Draft(PEOPLE).to_toml())
    schema = ("--schema", "schema.toml")
    parameters = ("--eps", 1, "--delta", 1e-3)
    assert dpntk("embed", "people.csv", *schema, "--width", 13).code == 0
    one = dpntk("plan", *schema, "--records", 300, "--width", 13, *parameters)
    other = dpntk("plan", "embedding.h5", *parameters)
    assert one.code == other.code == 0
    lines = one.stdout.splitlines()
    assert other.stdout.splitlines()[: len(lines)] == lines
    assert "300 records, 2 classes" in one.stdout
    assert "marginals of weight 0.371" in one.stdout


def test_a_plan_names_no_pairs_before_they_are_chosen(dpntk: Command, tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text(people(300))
    (tmp_path / "schema.toml").write_text(Draft(UNORDERED).to_toml())
    parameters = ("embedding.h5", "--eps", 100, "--delta", 1e-3)
    made = dpntk(
        "embed", "people.csv", "--schema", "schema.toml", "--width", 13, "--pairs", "age,pay"
    )
    assert made.code == 0
    planned = " ".join(dpntk("plan", *parameters).stdout.replace("\u2502", " ").split())
    assert "1 pair of columns, named by the owner" in planned
    assert "the pairs are age and pay" in planned
    made = dpntk("embed", "people.csv", "--schema", "schema.toml", "--width", 13, "--overwrite")
    assert made.code == 0
    planned = " ".join(dpntk("plan", *parameters).stdout.replace("\u2502", " ").split())
    assert "6 pairs of columns, chosen by what the rest shows" in planned
    assert "1 pair of numbers in few cells" in planned
    assert "the pairs are" not in planned
    assert dpntk("release", *parameters).code == 0
    made_of = " ".join(dpntk("inspect", "release.h5").stdout.replace("\u2502", " ").split())
    assert "1 pair of numbers in few cells" in made_of
    assert "the pairs are age and pay" in made_of


def test_a_tiny_epsilon_is_planned_beside_those_that_are_possible(
    dpntk: Command, embedding_file: Path
) -> None:
    """A tenth of it, of which a forecast would be, is less than there is."""
    planned = dpntk("plan", embedding_file, "--eps", 5e-4)
    assert planned.code == 0, planned.stderr
    assert "epsilon 0.0005" in planned.stdout


def test_a_release_of_noise_alone_is_called_so(dpntk: Command, embedding_file: Path) -> None:
    for epsilon, useless in ((2, False), (0.01, True)):
        release = ("release", embedding_file, "--eps", epsilon, "--compose", "--overwrite")
        made = dpntk(*release)
        assert made.code == 0, made.stderr
        assert ("nothing will be learnt from this release" in made.stderr) is useless


def test_the_plan_counts_what_is_spent(dpntk: Command, embedding_file: Path) -> None:
    assert dpntk("release", embedding_file, "--eps", 2).code == 0
    before = embedding_file.read_bytes()
    outcome = dpntk("plan", embedding_file, "--eps", 1)
    assert "released so far: 1, together epsilon 2 at delta 1e-05" in outcome.stdout
    assert embedding_file.read_bytes() == before


def test_add_remove_does_not_show_the_number_of_records(
    dpntk: Command, embedding_file: Path
) -> None:
    arguments = ("plan", embedding_file, "--eps", 1, "--adjacency", "add-remove")
    refused = dpntk(*arguments)
    assert refused.code == 2
    assert "--records" in refused.stderr
    assert "200" not in refused.stderr
    told = dpntk(*arguments, "--records", 777)
    assert "777 records" in told.stdout
    assert "200" not in told.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "line"),
    [
        (("--eps", 1), 2, "--records and --classes"),
        (("--eps", 0, "--records", 9, "--classes", 2), 1, "--eps 0"),
        (("--eps", 1, "--records", 9, "--classes", 2, "--delta", 0.5), 1, "not below 1/n"),
        (("no.h5", "--eps", 1), 1, "no such file"),
        (("no.h5", "--eps", 1, "--width", 3), 2, "--width is the embedding's own"),
        (("no.h5", "--eps", 1, "--schema", "a"), 2, "--schema is the embedding's own"),
        (("--eps", 1, "--schema", "a", "--classes", 2), 2, "--classes is for images"),
        (("--eps", 1, "--schema", "no.toml", "--records", 9), 1, "no.toml"),
    ],
)
def test_what_cannot_be_planned_is_said(
    dpntk: Command, arguments: tuple[object, ...], code: int, line: str
) -> None:
    outcome = dpntk("plan", *arguments)
    assert outcome.code == code
    assert line in outcome.stderr


def test_a_grid_by_the_number_of_records_is_refused_under_add_remove(
    feature_map: TangentFeatures,
) -> None:
    grid = Grid.for_capacity(255, 2_000_000)
    with pytest.raises(BudgetError, match="capacity"):
        plan(feature_map, grid, 3, 2_000_000, PrivacyParameters(1.0, 1e-8, Adjacency.ADD_REMOVE))


@pytest.mark.parametrize(("records", "low"), [(120, True), (2000, False)])
def test_a_plan_says_where_classes_can_hardly_be_told_from_noise(
    dpntk: Command, records: int, low: bool
) -> None:
    command = ("plan", "--records", records, "--classes", 10, "--eps", 1, "--delta", "1e-4")
    said = " ".join(dpntk(*command).stdout.split())
    assert ("Low signal: " in said) == low


@pytest.mark.parametrize("adjacency", list(Adjacency))
def test_a_plan_names_the_part_that_a_release_would_be_of(
    adjacency: Adjacency, dpntk: Command, tmp_path: Path
) -> None:
    """By the number of records, or where that is protected, by its noisy one."""
    images = np.zeros((364, 8, 8), np.uint8)
    np.savez(tmp_path / "images.npz", x=images, y=np.arange(364) % 2)
    form = ("--classes", 2, "--image-size", 8, "--width", 5)
    assert dpntk("embed", "images.npz", *form).code == 0
    protected = ("--adjacency", adjacency.value)
    records = ("--records", 364)
    known = () if adjacency is Adjacency.REPLACE_ONE else records
    for epsilon, part in ((1, "pixels themselves"), (1000, "ntk features")):
        told = [
            dpntk("plan", *records, *form, "--eps", epsilon, *protected),
            dpntk("plan", "embedding.h5", *known, "--eps", epsilon, *protected),
        ]
        for each in told:
            assert part in " ".join(each.stdout.split()), each.stdout
    assert dpntk("release", "embedding.h5", "--eps", 1, *protected).code == 0
    assert "pixels themselves" in " ".join(dpntk("inspect", "release.h5").stdout.split())


def test_what_was_spent_is_said_at_the_delta_that_is_planned(
    dpntk: Command, embedding_file: Path
) -> None:
    assert dpntk("release", embedding_file, "--eps", 1, "--delta", 1e-6).code == 0
    question = ("plan", embedding_file, "--eps", 1, "--delta", 1e-8)
    spent = total_of(load_embedding(embedding_file).ledger, 1e-8).epsilon
    assert spent > 1.1
    told = json.loads(dpntk(*question, "--json").stdout)["budget"]
    assert (told["epsilon"], told["delta"], told["releases"]) == (spent, 1e-8, 1)
    shown = " ".join(dpntk(*question).stdout.split())
    assert f"together epsilon {rounded_up(spent)} at delta 1e-08 (replace-one)" in shown
