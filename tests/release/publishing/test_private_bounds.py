"""Bounds that are found with differential privacy: what is counted, said and refused."""

from __future__ import annotations

import dataclasses
import json
import math
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from dpntk.common.adjacency import Adjacency
from dpntk.common.display.text import promised, rounded_up
from dpntk.common.errors import (
    BudgetError,
    DpntkError,
    FormatError,
    OutputError,
    RunError,
    SchemaError,
)
from dpntk.common.features.approx_bounds import approx_bounds_map, bounds_from
from dpntk.common.features.base import sensitivity
from dpntk.common.ledger import Entry
from dpntk.common.schema.columns.column import Column
from dpntk.common.schema.columns.kinds import ColumnKind, Transform
from dpntk.common.schema.csv_format import CsvFormat
from dpntk.common.schema.drafts.draft import Draft
from dpntk.common.schema.drafts.private_bounds import approx_bounds_schema, widest_bounds
from dpntk.common.schema.encoding import NumericEncoding
from dpntk.common.sources.options import SourceOptions
from dpntk.common.storage.locks import held
from dpntk.embed import TangentOptions, embed, save_embedding
from dpntk.embed.sums.file import load_embedding
from dpntk.release import PrivacyParameters, open_any
from dpntk.release.commands import bounds
from dpntk.release.file.distilled_codec import serialise_distilled
from dpntk.release.file.validation import require_consistent
from dpntk.release.mechanism.accountant import epsilon_for
from dpntk.release.mechanism.composition import total_of
from dpntk.release.mechanism.gaussian import NoiseScale, NoisySums
from dpntk.release.publishing import private_bounds
from dpntk.release.publishing.pipeline import enter_release, unrecorded_release
from dpntk.release.publishing.private_bounds import find_bounds, occupied_threshold
from dpntk.release.signing.policy import Acceptance
from tests.conftest import Command
from tests.conftest import refused as require_refused
from tests.release.file.test_distilled_codec import make_distilled

SCHEMA = """
label = "ill"
[[columns]]
name = "age"
kind = "integer"
dtype = "int64"
bounds = "private"
[[columns]]
name = "pay"
kind = "continuous"
dtype = "float64"
transform = "signed-log"
bounds = "private"
[[columns]]
name = "height"
kind = "continuous"
dtype = "float64"
lower = 0
upper = 3
[[columns]]
name = "ill"
kind = "boolean"
dtype = "string"
categories = ["no", "yes"]
"""
ROWS = 4000


def draft() -> Draft:
    return Draft.from_toml(SCHEMA, "schema.toml")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Ages of 18 to 90, pay of -50,000 to 200,000, and one record far beyond both."""
    random = np.random.default_rng(0)
    lines = ["age,pay,height,ill"]
    for number in range(ROWS):
        pay = random.choice([-50_000.0, 20.0, 200_000.0])
        age, outlier = random.integers(18, 91), number == 0
        lines.append(f"{10**9 if outlier else age},{-1e12 if outlier else pay},1.7,no")
    (tmp_path / "a.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "schema.toml").write_text(SCHEMA)
    return tmp_path / "a.csv"


def find(dpntk: Command, *options: object) -> None:
    made = dpntk("embed", "a.csv", "--schema", "schema.toml", "--private-bounds")
    assert made.code == 0, made.stderr
    found = dpntk("bounds", "--schema", "schema.toml", "--eps", 1, *options)
    assert found.code == 0, found.stderr


def test_from_private_bounds_to_a_release_that_counts_them(dpntk: Command, table: Path) -> None:
    refused = dpntk("embed", "a.csv", "--schema", "schema.toml")
    assert refused.code == 1
    assert "bounds of age, pay are private: find them first" in refused.stderr
    find(dpntk)
    bounded = Draft.from_toml(Path("bounded.toml").read_text(), "bounded.toml").settled("it")
    age, pay = bounded.columns[:2]
    youngest, oldest = age.bounds
    assert 8 < youngest <= 18  # to a factor of about 1.8
    assert 90 <= oldest < 180
    least, most = pay.bounds
    assert -100_000 < least <= -50_000
    assert 200_000 <= most < 400_000
    made = dpntk("embed", "a.csv", "--schema", "bounded.toml", "--width", 5)
    assert made.code == 0, made.stderr
    assert dpntk("release", "--eps", 1).code == 0  # nobody asks about the bounds again
    ledger = load_embedding(Path("embedding.h5")).ledger
    assert len(ledger.entries) == 2
    total = total_of(ledger, 1e-5).epsilon
    assert 1.4 < total < 1.5
    said = json.loads(dpntk("inspect", "--json", "release.h5").stdout)
    assert said["guarantee"]["total_epsilon"] == total
    assert said["statement"].startswith(f"This file satisfies ({rounded_up(total)}, 1e-05)")
    assert "the bounds of age, pay among it" in said["statement"]
    assert "(but for the bounds of age, pay)" in said["statement"]
    assert "Looked up" not in said["statement"]
    assert f"{rounded_up(total)}, of which the bounds" in dpntk("inspect", "release.h5").stdout
    again = dpntk("release", "--eps", 1, "-o", "other.h5")
    assert again.code == 1
    assert "add --compose" in again.stderr


def test_the_entry_is_on_the_disk_before_any_noise_is_drawn(
    dpntk: Command, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert dpntk("embed", "a.csv", "--schema", "schema.toml", "--private-bounds").code == 0

    def crash(*_: object) -> None:
        assert len(load_embedding("magnitudes.h5").ledger.entries) == 1
        raise DpntkError("crash")

    monkeypatch.setattr(private_bounds, "add_noise", crash)
    with pytest.raises(DpntkError, match="crash"):
        find_bounds(Path("magnitudes.h5"), draft(), PrivacyParameters(1.0))
    assert len(load_embedding("magnitudes.h5").ledger.entries) == 1


def test_an_interruption_says_what_was_spent(
    dpntk: Command, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert dpntk("embed", "a.csv", "--schema", "schema.toml", "--private-bounds").code == 0
    for module, name in ((private_bounds, "add_noise"), (bounds, "write_atomically")):
        with monkeypatch.context() as patch:
            patch.setattr(module, name, interrupted)
            options = ("--schema", "schema.toml", "--eps", 0.1, "--compose")
            stopped = dpntk("bounds", "magnitudes.h5", *options)
        assert stopped.code == 1
        assert "interrupted; magnitudes.h5 counts what was spent all the same" in stopped.stderr
    assert len(load_embedding("magnitudes.h5").ledger.entries) == 2


def interrupted(*_: object, **options: object) -> None:
    raise KeyboardInterrupt


def test_a_link_to_magnitudes_has_no_ledger_of_its_own(dpntk: Command, table: Path) -> None:
    assert dpntk("embed", "a.csv", "--schema", "schema.toml", "--private-bounds").code == 0
    Path("link.h5").symlink_to("magnitudes.h5")
    assert dpntk("bounds", "link.h5", "--schema", "schema.toml", "--eps", 1).code == 0
    assert len(load_embedding(Path("magnitudes.h5")).ledger.entries) == 1


def test_spending_again_on_bounds_is_asked_about_and_adds_up(dpntk: Command, table: Path) -> None:
    find(dpntk)
    arguments = ("bounds", "--schema", "schema.toml", "--eps", 1, "-o", "second.toml")
    refused = dpntk(*arguments)
    assert refused.code == 1
    assert "add --compose" in refused.stderr
    assert not Path("second.toml").exists()
    assert dpntk(*arguments, "--compose").code == 0
    second = Draft.from_toml(Path("second.toml").read_text(), "second.toml")
    assert len(second.schema.spent) == 2
    # An embedding that takes over a ledger counts nothing twice.
    for name in ("bounded.toml", "second.toml"):
        options = ("--schema", name, "--width", 5, "--overwrite", "-o", "embedding.h5")
        assert dpntk("embed", "a.csv", *options).code == 0
    ledger = load_embedding(Path("embedding.h5")).ledger
    assert len(ledger.entries) == 2
    # What stands in the ledger is not made smaller by what a schema says.
    smaller = tuple(dataclasses.replace(entry, noise_multiplier=99.0) for entry in ledger.entries)
    assert ledger.with_earlier(smaller) == ledger


def test_a_merged_embedding_counts_the_bounds_once(dpntk: Command, table: Path) -> None:
    find(dpntk)
    rows = table.read_text().splitlines()
    for name, part in (("a", rows[1:2000]), ("b", rows[2000:])):
        Path(f"{name}.csv").write_text("\n".join([rows[0], *part]) + "\n")
        options = ("--schema", "bounded.toml", "--width", 5, "-o", f"{name}.h5")
        assert dpntk("embed", f"{name}.csv", *options).code == 0
    assert dpntk("merge", "a.h5", "b.h5", "-o", "all.h5").code == 0
    whole = load_embedding(Path("all.h5"))
    assert whole.ledger.all_entries == whole.schema.spent


def test_bounds_bind_the_release_to_their_adjacency(dpntk: Command, table: Path) -> None:
    find(dpntk, "--adjacency", "add-remove")
    assert dpntk("embed", "a.csv", "--schema", "bounded.toml", "--width", 5).code == 0
    refused = dpntk("release", "--eps", 1)
    assert refused.code == 1
    assert "found under add-remove" in refused.stderr
    assert dpntk("release", "--eps", 1, "--adjacency", "add-remove").code == 0
    # What exchanging a record costs is known of the matrix, and the bounds are not in it.
    shown = " ".join(dpntk("inspect", "release.h5").stdout.replace("│", " ").split())
    assert "under replace-one for the matrix alone" in shown
    assert "epsilon of the matrix alone is" in shown


def test_a_ledger_without_the_bounds_is_refused(dpntk: Command, table: Path) -> None:
    find(dpntk)
    schema = Draft.from_toml(Path("bounded.toml").read_text(), "bounded.toml").settled("it")
    made = embed(table, TangentOptions(width=5), SourceOptions(schema=schema))
    (spent,) = made.ledger.entries
    quieter = dataclasses.replace(spent, noise_multiplier=1e6, noise_multiplier_replace_one=1e6)
    for entries in ((), (quieter,)):  # its name alone says nothing
        ledger = dataclasses.replace(made.ledger, entries=entries)
        with pytest.raises(BudgetError, match="the ledger does not count"):
            unrecorded_release(dataclasses.replace(made, ledger=ledger), PrivacyParameters(1.0))


def test_a_reader_refuses_a_total_that_leaves_the_bounds_out(dpntk: Command, table: Path) -> None:
    find(dpntk)
    schema = Draft.from_toml(Path("bounded.toml").read_text(), "bounded.toml").settled("it")
    made = unrecorded_release(
        embed(table, TangentOptions(width=5), SourceOptions(schema=schema)), PrivacyParameters(1.0)
    )
    require_consistent(made.guarantee, made.feature_map, schema)
    for change in ({"total_epsilon": 1.2}, {"total_releases": 1, "total_epsilon": 1.0}):
        claimed = dataclasses.replace(made.guarantee, **change)  # type: ignore[arg-type]
        with pytest.raises(FormatError, match="bounds"):
            require_consistent(claimed, made.feature_map, schema)
    for noise in (5e-324, 1e-7):
        hardly_any = [dataclasses.replace(entry, noise_multiplier=noise) for entry in schema.spent]
        counted = dataclasses.replace(schema, spent=tuple(hardly_any))
        with pytest.raises(FormatError, match="does not count"):
            require_consistent(made.guarantee, made.feature_map, counted)
    elsewhere = [dataclasses.replace(e, adjacency=Adjacency.ADD_REMOVE) for e in schema.spent]
    counted = dataclasses.replace(schema, spent=tuple(elsewhere))
    with pytest.raises(FormatError, match="another adjacency"):
        require_consistent(made.guarantee, made.feature_map, counted)


@pytest.mark.parametrize(
    ("adjacency", "units"), [(Adjacency.REPLACE_ONE, 2**56), (Adjacency.ADD_REMOVE, 2**50)]
)
def test_bounds_depend_on_the_noisy_counts_alone(
    dpntk: Command,
    table: Path,
    monkeypatch: pytest.MonkeyPatch,
    adjacency: Adjacency,
    units: int,
) -> None:
    """The noise replaced by the same noisy counts for two tables that share nothing else.

    Under add-remove the counts are of fewer rows than half of the first table's.
    """
    counts = np.zeros((256, 1), dtype=np.int64)
    counts[[70, 72, 128 + 60, 128 + 90]] = units
    found = []
    for text in (table.read_text(), "ill,pay,height,age\n" + "yes,1,0,7\n" * 50):
        table.write_text(text)
        options = ("--schema", "schema.toml", "--private-bounds", "--overwrite")
        assert dpntk("embed", "a.csv", *options).code == 0
        with monkeypatch.context() as patch:
            patch.setattr(private_bounds, "add_noise", lambda *_: NoisySums(counts, None))
            parameters = PrivacyParameters(1.0, adjacency=adjacency)
            read = find_bounds(Path("magnitudes.h5"), draft(), parameters, lambda _: True)
        found.append(read.schema.columns)
    assert found[0] == found[1]


def test_a_distillation_would_not_count_them(dpntk: Command, table: Path) -> None:
    find(dpntk, "--adjacency", "add-remove")
    refused = dpntk("distill", "a.csv", "--schema", "bounded.toml", "--eps", 1)
    assert refused.code == 1
    assert "does not count what that spent: declare the bounds" in refused.stderr
    assert not Path("a.csv.ledger.json").exists()


def test_a_distilled_set_with_such_bounds_is_refused(dpntk: Command, table: Path) -> None:
    find(dpntk, "--adjacency", "add-remove")
    schema = Draft.from_toml(Path("bounded.toml").read_text(), "bounded.toml").settled("it")
    points = np.zeros((4, schema.record_size), dtype=np.float32)
    forged = dataclasses.replace(make_distilled(), schema=schema, points=points)
    Path("forged.h5").write_bytes(serialise_distilled(forged))
    with pytest.raises(FormatError, match="does not count what the schema's bounds spent"):
        open_any(Path("forged.h5"), Acceptance(allow_unsigned=True))


def test_what_stands_not_out_of_the_noise_is_not_found(
    dpntk: Command, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert dpntk("embed", "a.csv", "--schema", "schema.toml", "--private-bounds").code == 0
    monkeypatch.setattr(private_bounds, "add_noise", shows())
    outcome = dpntk("bounds", "--schema", "schema.toml", "--eps", 1)
    assert outcome.code == 1
    assert "column 'age': no magnitude has" in outcome.stderr
    assert not Path("bounded.toml").exists()
    assert len(load_embedding(Path("magnitudes.h5")).ledger.entries) == 1


def test_fewer_rows_than_could_stand_out_are_refused_before_anything_is_spent(
    dpntk: Command, table: Path
) -> None:
    made = dpntk("embed", "a.csv", "--schema", "schema.toml", "--private-bounds")
    assert "dpntk plan magnitudes.h5 --eps 0.1\n" in made.stderr
    for options, said in {
        ("--eps", 0.001): "4,000 rows are too few: 25,",
        ("--eps", 0.1, "--delta", 1e-6): "",
    }.items():
        planned = " ".join(dpntk("plan", "magnitudes.h5", *options).stdout.split())
        of_schema = dpntk("plan", "--schema", "schema.toml", "--records", ROWS, *options).stdout
        least = planned.partition("stands out from the noise from ")[2].partition(" rows on")[0]
        assert f"from {least} rows on" in " ".join(of_schema.split())
        assert "Low signal" not in planned
        outcome = dpntk("bounds", "--schema", "schema.toml", *options)
        assert (outcome.code == 1) == bool(said)
        if said:
            require_refused(outcome, f"4,000 rows are too few: {least} of", "nothing was spent")
            assert not load_embedding(Path("magnitudes.h5")).ledger.entries


def test_bounds_without_noise_are_refused_before_anything_is_entered(
    dpntk: Command, table: Path
) -> None:
    find(dpntk)
    before = Path("magnitudes.h5").read_bytes()
    exact = PrivacyParameters(math.inf, not_private=True)
    with pytest.raises(BudgetError, match="bounds are found with noise only"):
        find_bounds(Path("magnitudes.h5"), draft(), exact, lambda _: True)
    assert Path("magnitudes.h5").read_bytes() == before


def test_how_many_rows_there_are_refuses_nothing_where_it_is_protected(
    dpntk: Command, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under add-remove the same noisy counts have the same outcome, whatever rows there are."""
    monkeypatch.setattr(private_bounds, "add_noise", shows())
    said = set()
    for rows in (1, 100):
        table.write_text("age,pay,height,ill\n" + "20,3,1.7,no\n" * rows)
        options = ("--schema", "schema.toml", "--private-bounds", "--overwrite")
        assert dpntk("embed", "a.csv", *options).code == 0
        promise = ("--eps", 1, "--adjacency", "add-remove", "--compose")
        said.add(dpntk("bounds", "--schema", "schema.toml", *promise).stderr)
    (line,) = said
    assert "column 'age': no magnitude has" in line
    assert load_embedding(Path("magnitudes.h5")).ledger.entries


@pytest.mark.parametrize("adjacency", Adjacency)
def test_bounds_that_most_rows_are_beyond_are_not_proposed(
    dpntk: Command, table: Path, monkeypatch: pytest.MonkeyPatch, adjacency: Adjacency
) -> None:
    """Of 2,400 rows 300 have one magnitude, and the others are spread over all there are."""
    random = np.random.default_rng(0)
    spread = np.exp(random.uniform(1, 36, 2100)) * random.choice([-1, 1], 2100)
    pay = np.concatenate([np.full(300, 50.0), spread])
    rows = [
        f"{age},{x:.1f},1.7,no" for age, x in zip(random.integers(18, 91, 2400), pay, strict=True)
    ]
    table.write_text("\n".join(["age,pay,height,ill", *rows]) + "\n")
    assert dpntk("embed", "a.csv", "--schema", "schema.toml", "--private-bounds").code == 0
    monkeypatch.setattr(private_bounds, "add_noise", shows(0, 1))
    parameters = PrivacyParameters(0.5, adjacency=adjacency)
    found = find_bounds(Path("magnitudes.h5"), draft(), parameters)
    assert found.private == ("pay",)
    assert len(found.schema.spent) == 1


Noise = Callable[[NDArray[np.int64], NDArray[np.int64], NoiseScale], NoisySums]


def shows(*columns: int) -> Noise:
    """In place of the noise: the counts of some columns as they are, and nothing of the others."""

    def noise(sums: NDArray[np.int64], counts: NDArray[np.int64], scale: NoiseScale) -> NoisySums:
        shown = np.zeros_like(sums)
        for column in columns:
            shown[128 * column : 128 * (column + 1)] = sums[128 * column : 128 * (column + 1)]
        return NoisySums(shown, None)

    return noise


def find_first(dpntk: Command, patch: pytest.MonkeyPatch, *options: object) -> str:
    """The first round, in which 'age' alone stands out; what is said."""
    assert dpntk("embed", "a.csv", "--schema", "schema.toml", "--private-bounds").code == 0
    with patch.context() as context:
        context.setattr(private_bounds, "add_noise", shows(0))
        found = dpntk("bounds", "--schema", "schema.toml", "--eps", 1, *options)
    assert found.code == 0, found.stderr
    return found.stderr


def bounded() -> Draft:
    return Draft.from_toml(Path("bounded.toml").read_text(), "bounded.toml")


def test_what_was_found_is_kept_though_another_column_has_nothing(
    dpntk: Command, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = find_first(dpntk, monkeypatch)
    assert "age: " in said
    assert "\npay: " not in said
    (warned,) = [line for line in said.splitlines() if "stands out from the noise" in line]
    assert "most rows are beyond those that do, in pay: declare lower and upper" in warned
    assert "next: dpntk embed" not in said
    left = bounded()
    assert left.private == ("pay",)
    assert Path("bounded.toml").read_text().count('bounds = "private"') == 1
    assert [column.name for column in left.schema.private_bounds] == ["age"]
    assert left.schema.spent == load_embedding(Path("magnitudes.h5")).ledger.entries
    assert len(left.schema.spent) == 1
    outcome = dpntk("embed", "a.csv", "--schema", "bounded.toml", "--width", 5)
    require_refused(outcome, "bounds of pay are private: find them first")


def test_what_was_spent_is_kept_though_bounds_contradict_a_constraint(
    dpntk: Command, table: Path
) -> None:
    Path("schema.toml").write_text('constraints = ["age >= 500"]' + SCHEMA)
    made = dpntk("embed", "a.csv", "--schema", "schema.toml", "--private-bounds")
    assert made.code == 0, made.stderr
    found = dpntk("bounds", "--schema", "schema.toml", "--eps", 1)
    assert found.code == 0, found.stderr
    (warned,) = [line for line in found.stderr.splitlines() if "contradict" in line]
    assert "beyond those that do, in age: declare lower and upper" in warned
    left = bounded()
    assert left.private == ("age",)
    assert [column.name for column in left.schema.private_bounds] == ["pay"]
    assert left.schema.spent == load_embedding(Path("magnitudes.h5")).ledger.entries
    assert len(left.schema.spent) == 1


def test_where_no_schema_can_be_written_nothing_is_spent_or_it_is_said(
    dpntk: Command, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = dpntk("embed", "a.csv", "--schema", "schema.toml", "--private-bounds")
    assert made.code == 0, made.stderr
    options = ("bounds", "--schema", "schema.toml", "--eps", 1)
    too_long = dpntk(*options, "-o", f"{'b' * 240}.toml")
    require_refused(too_long, "File name too long")
    with monkeypatch.context() as patched:
        patched.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=1000))
        require_refused(dpntk(*options), "MB are needed")
    assert load_embedding(Path("magnitudes.h5")).ledger.entries == ()

    def full(*_: object, **__: object) -> None:
        raise OutputError("bounded.toml: the disk is full")

    monkeypatch.setattr(bounds, "write_atomically", full)
    require_refused(dpntk(*options), "the disk is full; magnitudes.h5 counts what was spent")
    assert len(load_embedding(Path("magnitudes.h5")).ledger.entries) == 1


def test_bounds_that_all_contradict_constraints_are_refused_and_counted(
    dpntk: Command, table: Path
) -> None:
    rules = 'constraints = ["age >= 500", "pay >= 1000000"]'
    Path("schema.toml").write_text(rules + SCHEMA)
    made = dpntk("embed", "a.csv", "--schema", "schema.toml", "--private-bounds")
    assert made.code == 0, made.stderr
    found = dpntk("bounds", "--schema", "schema.toml", "--eps", 1)
    require_refused(found, "the bounds that were found contradict the constraints: declare the")
    assert "magnitudes.h5 counts what was spent" in found.stderr
    assert len(load_embedding(Path("magnitudes.h5")).ledger.entries) == 1
    assert not Path("bounded.toml").exists()


@pytest.mark.parametrize("magnitudes_file", ["magnitudes.h5", "elsewhere.h5"])
def test_all_rounds_of_finding_bounds_are_counted(
    dpntk: Command, table: Path, monkeypatch: pytest.MonkeyPatch, magnitudes_file: str
) -> None:
    find_first(dpntk, monkeypatch)
    first = bounded()
    made = dpntk(
        "embed", "a.csv", "--schema", "bounded.toml", "--private-bounds", "--overwrite",
        "-o", magnitudes_file,
    )  # fmt: skip
    assert made.code == 0, made.stderr
    again = ("bounds", magnitudes_file, "--schema", "bounded.toml", "--eps", 1, "--overwrite")
    require_refused(dpntk(*again), "add --compose")
    other = dpntk(*again, "--compose", "--adjacency", "add-remove")
    require_refused(other, "under replace-one before")
    assert bounded() == first
    outcome = dpntk(*again, "--compose")
    assert outcome.code == 0, outcome.stderr
    assert "pay: " in outcome.stderr
    assert "age: " not in outcome.stderr
    assert "beside what was spent before" in outcome.stderr
    assert "next: dpntk embed DATA --schema bounded.toml" in outcome.stderr
    second = bounded()
    assert second.private == ()
    assert second.schema.columns[0] == first.schema.columns[0]
    assert second.schema.spent[:1] == first.schema.spent
    assert len(second.schema.spent) == 2
    assert dpntk("embed", "a.csv", "--schema", "bounded.toml", "--width", 5).code == 0
    ledger = load_embedding(Path("embedding.h5")).ledger
    assert ledger.entries == second.schema.spent
    both = epsilon_for(ledger.entries[0].noise_multiplier / math.sqrt(2), 1e-5)
    assert total_of(ledger, 1e-5).epsilon == pytest.approx(both)
    assert dpntk("release", "--eps", 1).code == 0
    assert dpntk("budget").stdout.count("is what bounds of columns were found with") == 2
    said = json.loads(dpntk("inspect", "--json", "release.h5").stdout)
    assert said["guarantee"]["total_releases"] == 3
    assert said["guarantee"]["total_epsilon"] > both


def test_a_round_that_finds_nothing_is_counted_too(
    dpntk: Command, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    find_first(dpntk, monkeypatch)
    options = ("--schema", "bounded.toml", "--private-bounds", "--overwrite")
    assert dpntk("embed", "a.csv", *options).code == 0
    monkeypatch.setattr(private_bounds, "add_noise", shows())
    options = ("--schema", "bounded.toml", "--overwrite", "--compose")
    outcome = dpntk("bounds", *options, "--eps", 1)
    assert outcome.code == 0, outcome.stderr
    assert "most rows are beyond those that do, in pay" in outcome.stderr
    assert bounded().private == ("pay",)
    assert len(bounded().schema.spent) == 2
    declared = Path("bounded.toml").read_text()
    declared = declared.replace('bounds = "private"', "lower = -1e6\nupper = 1e6")
    Path("bounded.toml").write_text(declared)
    assert dpntk("embed", "a.csv", "--schema", "bounded.toml", "--width", 5).code == 0
    assert len(load_embedding(Path("embedding.h5")).ledger.entries) == 2


def test_noise_alone_passes_for_no_magnitude(
    dpntk: Command, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """30 draws for 40 columns; 4 standard deviations are passed in about 5 of them."""
    random = np.random.default_rng(0)
    drawn = []

    def noise(sums: NDArray[np.int64], counts: NDArray[np.int64], scale: NoiseScale) -> NoisySums:
        drawn.append(random.standard_normal(sums.shape))
        return NoisySums(np.rint(drawn[-1] * scale.sigma).astype(np.int64), None)

    monkeypatch.setattr(private_bounds, "add_noise", noise)
    lines = [
        f'[[columns]]\nname = "x{n}"\nkind = "integer"\ndtype = "int64"\nbounds = "private"\n'
        for n in range(40)
    ]
    Path("many.toml").write_text("\n".join(lines))
    many = Draft.from_toml(Path("many.toml").read_text(), "many.toml")
    rows = [",".join(f"x{n}" for n in range(40)), *[",".join(["7"] * 40)] * 400]
    Path("many.csv").write_text("\n".join(rows) + "\n")
    assert dpntk("embed", "many.csv", "--schema", "many.toml", "--private-bounds").code == 0
    for _ in range(30):
        with pytest.raises(BudgetError, match="column 'x0': no magnitude has"):
            find_bounds(Path("magnitudes.h5"), many, PrivacyParameters(1.0), lambda _: True)
    assert 1 < sum(draw.max() > 4 for draw in drawn) < 15


@pytest.mark.parametrize("columns", [1, 7, 100, 2000])
def test_noise_passes_in_one_of_a_thousand_runs_at_most(columns: int) -> None:
    any_cell = columns * 128 * stats.norm.sf(occupied_threshold(columns))
    assert any_cell == pytest.approx(1e-3)
    assert occupied_threshold(columns) > occupied_threshold(1) - 1e-12 > 4.3


def test_magnitudes_are_for_bounds_alone(dpntk: Command, table: Path) -> None:
    assert dpntk("embed", "a.csv", "--schema", "schema.toml", "--private-bounds").code == 0
    outcome = dpntk("release", "magnitudes.h5", "--eps", 1)
    assert outcome.code == 1
    assert "is for 'dpntk bounds'" in outcome.stderr
    assert not load_embedding(Path("magnitudes.h5")).ledger.entries


@pytest.mark.parametrize(
    ("number", "text"),
    [(1.0, "1"), (1.00801, "1.009"), (0.99999, "1"), (1234.5, "1235"), (0.1, "0.1")],
)
def test_a_promise_is_not_rounded_down(number: float, text: str) -> None:
    assert rounded_up(number) == text
    assert float(rounded_up(number)) >= number


@pytest.mark.parametrize(
    ("number", "text"),
    [(1.0, "1"), (0.1, "0.1"), (1e-5, "1e-05"), (1.2345641, "1.23457"), (1 / 70001, "1.42856e-05")],
)
def test_neither_is_what_was_asked_for(number: float, text: str) -> None:
    assert promised(number) == text
    assert float(promised(number)) >= number


def test_an_embedding_of_something_else_is_refused(dpntk: Command, table: Path) -> None:
    none = dpntk("bounds", "--schema", "schema.toml", "--eps", 1)
    require_refused(none, "no such file; 'dpntk embed DATA --private-bounds' makes one")
    assert dpntk("embed", "a.csv", "--schema", "schema.toml", "--private-bounds").code == 0
    Path("other.toml").write_text(SCHEMA.replace('"int64"', '"int32"'))
    outcome = dpntk("bounds", "--schema", "other.toml", "--eps", 1)
    assert outcome.code == 1
    assert "not the magnitudes of the columns" in outcome.stderr
    assert not load_embedding(Path("magnitudes.h5")).ledger.entries


def test_other_features_of_the_same_columns_are_no_magnitudes(table: Path) -> None:
    """Their sums are numbers of records in no cell."""
    schema = approx_bounds_schema(draft().schema, draft().private)
    other = table.with_name("other.h5")
    save_embedding(embed(table, TangentOptions(width=3), SourceOptions(schema=schema)), other)
    with pytest.raises(SchemaError, match=r"other\.h5: not the magnitudes of the columns"):
        find_bounds(other, draft(), PrivacyParameters(1.0))
    assert not load_embedding(other).ledger.entries


def test_nobody_else_spends_while_bounds_are_entered(
    dpntk: Command, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From reading the ledger until it is written again: an entry in between would be lost."""
    assert dpntk("embed", "a.csv", "--schema", "schema.toml", "--private-bounds").code == 0
    waited = []

    def probed(step: Callable[..., Any]) -> Callable[..., Any]:
        def probe(*arguments: Any) -> Any:  # noqa: ANN401
            with pytest.raises(RunError, match="busy"), held(Path(".dpntk.lock"), busy="busy"):
                pass
            waited.append(step.__name__)
            return step(*arguments)

        return probe

    for step in (load_embedding, enter_release):
        monkeypatch.setattr(private_bounds, step.__name__, probed(step))
    find_bounds(Path("magnitudes.h5"), draft(), PrivacyParameters(1.0))
    assert waited == ["load_embedding", "enter_release"]


def test_magnitudes_are_read_as_the_table_is_written() -> None:
    """With another separator, or with stand-ins taken for numbers, values would be others."""
    form = CsvFormat(";", "latin-1", ("", "-9"), ",")
    schema = dataclasses.replace(draft().schema, csv=form)
    assert approx_bounds_schema(schema, draft().private).csv == form


def test_a_record_counts_once_for_each_column() -> None:
    schema = approx_bounds_schema(draft().schema, draft().private)
    assert [column.name for column in schema.columns] == ["age", "pay"]
    feature_map = approx_bounds_map(schema)
    assert feature_map.dimension == 2 * 128
    assert sensitivity(feature_map, Adjacency.REPLACE_ONE, count_weight=0) == 2**0.5
    assert sensitivity(feature_map, Adjacency.ADD_REMOVE, count_weight=0) == 1


@settings(deadline=None)
@given(
    st.floats(-1e15, 1e15, allow_nan=False),
    st.floats(-1e15, 1e15, allow_nan=False),
    st.sampled_from(ColumnKind),
    st.sampled_from(["int8", "uint16", "int64", "float64"]),
)
def test_bounds_hold_the_numbers_that_were_counted(
    first: float, second: float, kind: ColumnKind, dtype: str
) -> None:
    if not kind.numeric or kind.timed or (kind is ColumnKind.CONTINUOUS and "int" in dtype):
        return
    lower, upper = widest_bounds(kind, dtype, Transform.NONE)
    column = Column("x", kind, dtype, lower, upper, transform=Transform.SIGNED_LOG)
    schema = approx_bounds_schema(draft().schema, ["age"])
    schema = dataclasses.replace(schema, columns=(column,), left_out=())
    numbers = np.clip([first, second], lower, upper)
    if kind is ColumnKind.INTEGER:
        numbers = np.rint(numbers)
    encoded = NumericEncoding(column, 2).encode(numbers, np.zeros(2, dtype=bool))
    places = approx_bounds_map(schema).hits(torch.from_numpy(encoded))[:, 0].numpy()
    found = bounds_from(column, np.bincount(places, minlength=128).astype(float), 0.5, 2)
    assert found is not None
    assert lower <= found[0] <= numbers.min()
    assert numbers.max() <= found[1] <= upper
    assert found[0] < found[1]
    Column("x", kind, dtype, *found)  # the bounds are ones that a schema may have


def test_missing_values_are_no_magnitudes() -> None:
    column = draft().schema.columns[1]
    counts = np.zeros(129)
    counts[-1] = 100
    assert bounds_from(column, counts, 1, 100) is None


@pytest.mark.parametrize(
    ("line", "instead", "message"),
    [
        ('bounds = "private"', 'bounds = "secret"', 'bounds = "private", or lower and upper'),
        ('bounds = "private"', 'bounds = "private"\nlower = 1', "leaves no room"),
        (
            'categories = ["no", "yes"]',
            'categories = ["no", "yes"]\nbounds = "private"',
            "are numeric",
        ),
        ('bounds = "private"', 'lower = 1\nupper = 2\norigin = "private"', "go together"),
        ('bounds = "private"', 'bounds = "private"\nstep = 0.3', "step of integers is an integer"),
        ('bounds = "private"', 'bounds = "private"\nstep = true', "step is a number"),
        ('transform = "signed-log"', "step = true", "step is a number"),
        ('transform = "signed-log"', "decimals = true", "decimals is a whole number"),
    ],
)
def test_what_a_schema_cannot_say(line: str, instead: str, message: str) -> None:
    text = SCHEMA.replace(line, instead, 1)
    with pytest.raises(SchemaError, match=message):
        Draft.from_toml(text, "s")


def test_a_draft_with_spent_budget_is_read_back() -> None:
    when, same = "2026-01-01T00:00:00+00:00", Adjacency.REPLACE_ONE
    entry = Entry("ab" * 16, when, 0.1, 1e-5, same, 30.0, 30.0)
    found = draft().with_bounds({"age": (0, 127), "pay": (-10.0, 1e6)}, (entry,))
    assert found.private == ()
    assert Draft.from_toml(found.to_toml(), "s") == found
    some = draft().with_bounds({"age": (0, 127)}, (entry,))
    assert some.private == ("pay",)
    assert Draft.from_toml(some.to_toml(), "s") == some
    rest = some.with_bounds({"pay": (-10.0, 1e6)}, (entry,))
    assert rest == found
    assert Draft.from_toml(draft().to_toml(), "s") == draft()
