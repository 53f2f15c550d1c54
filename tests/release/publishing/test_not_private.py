"""A release without noise is possible on the owner's word, and all that reads it says so."""

from __future__ import annotations

import json
import math
from pathlib import Path

import h5py
import numpy as np
import pytest

from dpntk.common.adjacency import Adjacency
from dpntk.common.errors import BudgetError, FormatError
from dpntk.common.ledger import Ledger, PrivacyBudget
from dpntk.common.storage.container import NOT_PRIVATE_MAGIC, RELEASE_MAGIC, USER_BLOCK, user_block
from dpntk.embed import Embedding, load_embedding
from dpntk.release import ClassCounts, PrivacyParameters, open_release, own_key
from dpntk.release.file.user_block import sign_file
from dpntk.release.mechanism.composition import remaining, require_below_ceiling, total_of
from dpntk.release.publishing.parameters import entry_for, noise_for
from dpntk.release.publishing.pipeline import unrecorded_release, write_release
from tests.conftest import Command

EXACT = PrivacyParameters(math.inf, not_private=True)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--eps", "inf"), "epsilon inf adds no noise"),
        (("--eps", "1", "--not-private"), "--not-private means something with --eps inf only"),
    ],
)
def test_both_options_are_needed(
    dpntk: Command, folder: Path, tmp_path: Path, options: tuple[str, ...], words: str
) -> None:
    dpntk("embed", folder, "--width", "5")
    refused = dpntk("release", *options)
    assert refused.code == 1
    assert words in refused.stderr
    assert not (tmp_path / "release.h5").exists()
    assert load_embedding(tmp_path / "embedding.h5").ledger.entries == ()


def test_every_command_repeats_it(dpntk: Command, folder: Path, tmp_path: Path) -> None:
    dpntk("embed", folder, "--width", "5")
    made = dpntk("release", "--eps", "inf", "--not-private")
    path = tmp_path / "release.h5"
    assert made.code == 0
    assert path.read_bytes().startswith(NOT_PRIVATE_MAGIC)
    assert b"NOT PRIVATE" in NOT_PRIVATE_MAGIC
    assert path.stat().st_mode & 0o777 == 0o600
    generated = dpntk("generate", "--steps", "2", "-n", "40")
    again = dpntk("generate", "--from", "synthetic/generator.safetensors", "-n", "9", "-o", "more")
    evaluated = dpntk("evaluate", "--test", folder)
    for outcome in (made, generated, again, evaluated):
        assert outcome.code == 0
        assert "NOT PRIVATE" in outcome.stderr
    assert "NOT PRIVATE" in dpntk("budget").stdout
    provenance = json.loads((tmp_path / "synthetic/provenance.json").read_text())["release"]
    assert (provenance["private"], provenance["epsilon"]) == (False, "inf")
    assert "NOT PRIVATE" in provenance["statement"]


def test_nothing_of_the_kind_is_said_of_a_private_one(dpntk: Command, folder: Path) -> None:
    dpntk("embed", folder, "--width", "5")
    outcomes = [
        dpntk("release", "--eps", "1"),
        dpntk("generate", "--steps", "2", "-n", "40"),
        dpntk("evaluate", "--test", folder),
        dpntk("budget"),
    ]
    assert all(outcome.code == 0 for outcome in outcomes)
    assert not any("NOT PRIVATE" in o.stderr + o.stdout for o in outcomes)


@pytest.mark.parametrize("adjacency", list(Adjacency))
@pytest.mark.parametrize("counts", list(ClassCounts))
def test_it_holds_the_exact_sums_and_claims_nothing(
    embedding: Embedding, tmp_path: Path, adjacency: Adjacency, counts: ClassCounts
) -> None:
    parameters = PrivacyParameters(
        math.inf, adjacency=adjacency, class_counts=counts, not_private=True
    )
    write_release(unrecorded_release(embedding, parameters), tmp_path / "release.h5", own_key())
    opened = open_release(tmp_path / "release.h5").release
    exact = embedding.sums * embedding.grid.unit / embedding.records
    assert np.array_equal(opened.embedding, exact.astype(np.float32))
    promise = opened.guarantee
    assert not promise.private
    assert (promise.sigma, promise.noise_multiplier) == (0.0, 0.0)
    assert promise.total_epsilon == math.inf
    assert opened.statement.startswith("NOT PRIVATE")
    assert "differential privacy" not in opened.statement


def test_the_marks_cannot_be_taken_off(embedding: Embedding, tmp_path: Path) -> None:
    """Not even by the one who signs: the first line and the contents have to agree."""
    path, key = tmp_path / "release.h5", own_key()
    write_release(unrecorded_release(embedding, EXACT), path, key)
    content = bytearray(path.read_bytes())
    content[:USER_BLOCK] = user_block(RELEASE_MAGIC)
    sign_file(memoryview(content), key)
    path.write_bytes(content)
    with pytest.raises(FormatError, match="disagree about its being private"):
        open_release(path)
    with h5py.File(path, "r+") as file:
        file.attrs["epsilon"] = np.float64(1.0)
    content = bytearray(path.read_bytes())
    sign_file(memoryview(content), key)
    path.write_bytes(content)
    with pytest.raises(FormatError, match="noise and epsilon contradict"):
        open_release(path)


def test_the_ledger_counts_it_as_infinitely_much(embedding: Embedding) -> None:
    entry = entry_for(embedding, EXACT, noise_for(embedding, EXACT))
    ledger = Ledger((entry,), PrivacyBudget(100.0, 1e-5))
    assert Ledger.from_json(json.loads(json.dumps(ledger.to_json(), allow_nan=False))) == ledger
    assert total_of(ledger, 1e-5).epsilon == math.inf
    assert remaining(ledger) == 0.0
    with pytest.raises(BudgetError, match="does not allow"):
        require_below_ceiling(ledger)
