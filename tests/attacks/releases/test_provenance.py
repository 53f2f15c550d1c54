"""Synthetic records whose `provenance.json`, which nobody signs, claims more than is true."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dpntk.common.schema.drafts.draft import Draft
from dpntk.evaluate.images.classifiers import CLASSIFIERS
from tests.conftest import Command, refused
from tests.helpers.tables import PEOPLE, people

Document = dict[str, Any]
Claim = Callable[[Document], None]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "logistic regression"
    monkeypatch.setattr("dpntk.evaluate.images.utility.CLASSIFIERS", {name: CLASSIFIERS[name]})


@pytest.fixture
def exact(dpntk: Command, folder: Path) -> Path:
    """Synthetic images from a release without noise, and the real ones."""
    for arguments in (
        ("embed", folder, "--width", "5"),
        ("release", "--eps", "inf", "--not-private"),
        ("generate", "--steps", "2", "-n", "40"),
    ):
        assert dpntk(*arguments).code == 0
    return folder


def edit(claim: Claim) -> None:
    path = Path("synthetic/provenance.json")
    document = json.loads(path.read_text())
    claim(document)
    path.write_text(json.dumps(document))


def private(document: Document) -> None:
    document["release"] |= {"private": True, "epsilon": 0.001}


def less(document: Document) -> None:
    document["release"]["delta"] /= 10


def hiding(document: Document) -> None:
    document["release"]["adjacency"] = "add-remove"


def of_today(document: Document) -> None:
    document["release"]["created"] = "2099-01-01T00:00:00+00:00"


def by_another_name(document: Document) -> None:
    document["release"]["id"] = "0" * 32


def other_classes(document: Document) -> None:
    document["classes"] = document["classes"][::-1]


def otherwise_prepared(document: Document) -> None:
    document["preparation"] = {"inverted": True}


@pytest.mark.parametrize(
    ("claim", "words"),
    [
        (private, "private, epsilon"),
        (less, "delta"),
        (hiding, "adjacency"),
        (of_today, "created"),
        (by_another_name, "id"),
        (other_classes, "schema"),
        (otherwise_prepared, "preparation"),
    ],
)
def test_what_the_release_does_not_say_is_refused(
    dpntk: Command, exact: Path, claim: Claim, words: str
) -> None:
    edit(claim)
    outcome = dpntk("evaluate", "--test", exact, "--release", "release.h5")
    refused(outcome, f"what the synthetic records say of release.h5 is not true of it: {words}\n")
    assert not Path("evaluation.json").exists()


@pytest.mark.parametrize("digest", [None, "0" * 64])
def test_records_that_do_not_name_the_release_are_not_said_to_be_made_from_it(
    dpntk: Command, exact: Path, digest: str | None
) -> None:
    edit(lambda document: document["release"].update(digest=digest))
    outcome = dpntk("evaluate", "--test", exact, "--release", "release.h5")
    refused(outcome, "do not say that they come from release.h5")
    edit(lambda document: document["release"].pop("digest"))
    assert dpntk("evaluate", "--test", exact, "--release", "release.h5").stderr == outcome.stderr


def test_what_is_left_out_is_told_by_the_release(dpntk: Command, exact: Path) -> None:
    """And what is shown of it are the release's own words, not those beside the records."""

    def silent(document: Document) -> None:
        document["release"] = {
            "digest": document["release"]["digest"],
            "statement": "Certified by the authorities.",
            "signer": "the authorities",
            "award": "gold",
        }

    edit(silent)
    outcome = dpntk("evaluate", "--test", exact, "--release", "release.h5")
    assert outcome.code == 0
    assert "synthetic is NOT PRIVATE" in outcome.stderr
    report = json.loads(Path("evaluation.json").read_text())
    assert report["rows"][0]["trained_on"] == "synthetic (NOT PRIVATE)"
    told = report["synthetic"]["release"]
    assert (told["private"], told["epsilon"]) == (False, "inf")
    assert told["statement"].startswith("NOT PRIVATE")
    assert told["signer"] == "this-machine"
    assert "award" not in told


def test_a_table_of_other_columns_is_refused(
    dpntk: Command, tmp_path: Path, hasty_rows: None
) -> None:
    data = tmp_path / "data.csv"
    data.write_text(people(60))
    schema = tmp_path / "s.toml"
    schema.write_text(Draft(PEOPLE).to_toml())
    for arguments in (
        ("embed", data, "--schema", schema, "--width", "3"),
        ("release", "--eps", "1", "--delta", "1e-3"),
        ("generate", "--steps", "2", "-n", "60"),
    ):
        assert dpntk(*arguments).code == 0

    def wider(document: Document) -> None:
        document["schema"]["columns"][0]["upper"] = 120

    edit(wider)
    outcome = dpntk("evaluate", "--test", data, "--release", "release.h5")
    refused(outcome, "is not true of it: schema")
