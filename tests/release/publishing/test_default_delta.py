"""The delta of a release if nobody chooses one: below 1/n where n is public, and the same for all.

And what commands propose to type next: it works as it is printed.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dpntk.common.ledger import default_delta
from dpntk.embed import (
    Embedding,
    PrivacyUnit,
    SourceOptions,
    TangentOptions,
    embed,
    load_embedding,
    save_embedding,
)
from dpntk.release import Adjacency, PrivacyParameters, open_release, own_key
from dpntk.release.publishing.parameters import noise_for
from tests.conftest import Command, refused
from tests.helpers.tables import PEOPLE, people

ONE = Adjacency.REPLACE_ONE


@pytest.mark.parametrize(
    ("records", "delta"),
    [(1, 1e-5), (60_000, 1e-5), (99_999, 1e-5), (100_000, 1e-6), (999_999, 1e-6), (10**6, 1e-7)],
)
def test_it_is_below_one_over_a_public_number_of_records(records: int, delta: float) -> None:
    assert default_delta(ONE, records) == delta < 1 / records


@pytest.mark.parametrize("records", [10**power - less for power in range(5, 16) for less in (0, 1)])
def test_it_is_the_largest_power_of_ten_that_can_be(records: int) -> None:
    assert default_delta(ONE, records) < 1 / records <= 10.0001 * default_delta(ONE, records)


def test_it_says_nothing_of_a_number_of_records_that_is_protected() -> None:
    deltas = {default_delta(Adjacency.ADD_REMOVE, 10**power) for power in range(12)}
    assert deltas == {1e-5}


def of_many(embedding: Embedding, *counts: int) -> Embedding:
    """The sums as they are, said to be of so many records."""
    return replace(embedding, counts=np.array(counts, dtype=np.int64))


def test_release_plan_and_budget_have_the_same(dpntk: Command, embedding: Embedding) -> None:
    save_embedding(of_many(embedding, 50_000, 30_000, 20_000), "e.h5")
    assert "delta 1e-06" in dpntk("plan", "e.h5", "--eps", 1).stdout
    assert "at delta 1e-06" in dpntk("budget", "e.h5").stdout  # before anything is spent
    made = dpntk("release", "e.h5", "--eps", 1)
    assert "epsilon 1, delta 1e-06, replace-one" in made.stderr
    promise = open_release("release.h5").release.guarantee
    assert promise.delta == 1e-6
    assert promise.total_epsilon == pytest.approx(1, rel=1e-6)
    assert load_embedding("e.h5").ledger.entries[0].delta == 1e-6
    assert re.search(r"spent: epsilon 1(\.000\d*)? at delta 1e-06", dpntk("budget", "e.h5").stdout)
    # The noise is that of the delta which is promised.
    explicit = noise_for(load_embedding("e.h5"), PrivacyParameters(1.0, 1e-6))
    assert promise.noise_multiplier == explicit.noise_multiplier


def test_budget_says_nothing_of_a_number_of_rows_that_is_protected(
    dpntk: Command, tmp_path: Path
) -> None:
    """Before there is a release that says how neighbours differ: with a unit, one way is left."""
    schema = replace(PEOPLE, privacy_unit=PrivacyUnit("id", 2))
    (tmp_path / "rows.csv").write_text(people(30))
    source = SourceOptions(schema=schema)
    made = embed(tmp_path / "rows.csv", TangentOptions(width=2), source)
    save_embedding(of_many(made, 500_000, 500_000), "e.h5")
    assert "epsilon 0 at delta 1e-05 (add-remove)" in dpntk("budget", "e.h5").stdout


def test_budget_takes_a_delta(dpntk: Command, embedding: Embedding) -> None:
    save_embedding(embedding, "e.h5")
    dpntk("release", "e.h5", "--eps", 1, "--delta", "1e-6")
    strict, loose = (dpntk("budget", "e.h5", "--delta", delta).stdout for delta in (1e-6, 1e-3))
    assert re.search(r"spent: epsilon 1(\.000\d*)? at delta 1e-06", strict)
    found = re.search(r"spent: epsilon (\S+) at delta 0.001", loose)
    assert found
    assert 0.1 < float(found[1]) < 0.9
    refused(dpntk("budget", "e.h5", "--delta", 1), "--delta")


def test_under_add_remove_a_large_data_set_asks_for_a_delta(
    dpntk: Command, embedding: Embedding
) -> None:
    own_key()  # which would be made, and announced, before the refusal
    save_embedding(of_many(embedding, 50_000, 30_000, 20_000), "e.h5")
    refusal = dpntk("release", "e.h5", "--eps", 1, "--adjacency", "add-remove")
    refused(refusal, "--delta 1e-05 is not below one over the number of records")
    assert "100" not in refusal.stderr


def test_the_delta_of_a_distillation_follows_from_a_public_number_of_records_alone(
    dpntk: Command, tmp_path: Path
) -> None:
    own_key()
    images = np.zeros((100_000, 8, 8), dtype=np.uint8)
    np.savez(tmp_path / "many.npz", x=images, y=np.arange(100_000) % 2)
    options = ("--classes", 2, "--eps", 1, "--steps", 1, "--per-class", 1)
    distill = ("distill", "many.npz", *options, "--sampling-prob", 0.01)
    refused(dpntk(*distill), "--delta 1e-05 is not below one over the number of records")
    made = dpntk(*distill, "--adjacency", "replace-one")
    assert "epsilon 1, delta 1e-06, replace-one" in made.stderr


def test_a_ceiling_is_at_the_delta_of_the_releases_to_come(dpntk: Command, tmp_path: Path) -> None:
    images = np.zeros((100_000, 8, 8), dtype=np.uint8)
    np.savez(tmp_path / "many.npz", x=images, y=np.arange(100_000) % 2)
    options = ("--classes", 2, "--width", 2, "--front", "pixels", "-o", "e.h5")
    for epsilon, more in ((3, ()), (2, ("--overwrite", "--restart"))):
        made = dpntk("embed", "many.npz", *options, "--budget-eps", epsilon, *more)
        assert made.code == 0, made.stderr
        ceiling = load_embedding("e.h5").ledger.ceiling
        assert ceiling is not None
        assert (ceiling.epsilon, ceiling.delta) == (epsilon, 1e-6)
    said = dpntk("budget", "e.h5").stdout
    assert "epsilon 0 at delta 1e-06" in said
    assert "ceiling: epsilon 2 at delta 1e-06" in said


def proposed(said: str) -> list[list[str]]:
    """The commands that an outcome proposes, as a shell understands them."""
    found = re.findall(r"^(?:next|how noisy that would be): dpntk (.*)$", said, re.MULTILINE)
    assert found, said
    return [shlex.split(command) for command in found]


def test_what_is_proposed_works_as_it_is_printed(dpntk: Command, tmp_path: Path) -> None:
    folder = tmp_path / "ward's data"
    folder.mkdir()
    (folder / "a & b.csv").write_text(people(60))
    drafted = dpntk("schema", folder / "a & b.csv", "--label", "ill", "-o", "my schema.toml")
    (embed,) = proposed(drafted.stderr)
    options = ("--accept-from-data", "--width", 5, "-o", "-my embedding.h5")
    ((*release,), plan) = proposed(dpntk(*embed, *options).stderr)
    assert dpntk(*plan).code == 0
    (generate,) = proposed(dpntk(*release, "-o", "my release.h5").stderr)
    assert dpntk(*generate, "--steps", 2, "--batch", 20, "-n", 20).code == 0
    assert (tmp_path / "synthetic" / "table.csv").is_file()
