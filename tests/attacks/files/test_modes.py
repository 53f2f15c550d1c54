"""A careless umask lets nobody read what was computed from records without noise."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dpntk.common.schema.drafts.draft import Draft
from dpntk.common.storage.synthetic_folder import IMAGES, PREVIEW, PROVENANCE
from dpntk.evaluate.images.classifiers import CLASSIFIERS
from dpntk.evaluate.tables.classifiers import CLASSIFIERS as OF_TABLES
from dpntk.generate.output.generator_file import GENERATOR
from tests.conftest import Command
from tests.helpers.tables import PEOPLE, people

UMASKS = (0o000, 0o077)
"""The most careless one, and one under which nothing is to be read by others."""
Careless = Callable[[int], None]


@pytest.fixture
def under() -> Iterator[Careless]:
    """Set the umask until the end of the test."""
    before = os.umask(0o022)

    def setting(umask: int) -> None:
        os.umask(umask)

    yield setting
    os.umask(before)


@pytest.fixture(autouse=True)
def one_classifier(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that evaluating takes no time."""
    name = "logistic regression"
    monkeypatch.setattr("dpntk.evaluate.images.utility.CLASSIFIERS", {name: CLASSIFIERS[name]})
    monkeypatch.setattr(
        "dpntk.evaluate.tables.utility.installed", lambda _: {name: OF_TABLES[name]}
    )


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def modes(folder: Path) -> dict[str, int]:
    return {"": mode(folder)} | {file.name: mode(file) for file in folder.iterdir()}


@pytest.mark.parametrize("umask", UMASKS)
def test_what_has_no_noise_is_for_its_owner_alone(
    dpntk: Command, folder: Path, tmp_path: Path, under: Careless, umask: int
) -> None:
    under(umask)
    dpntk("embed", folder, "--width", "5")
    dpntk("release", "--eps", "inf", "--not-private")
    made = dpntk("generate", "--steps", "2", "-n", "40")
    again = dpntk("generate", "--from", "synthetic", "-n", "9", "-o", "more")
    assert dpntk("evaluate", "--test", folder).code == 0
    for file in ("embedding.h5", "release.h5", "evaluation.json"):
        assert mode(tmp_path / file) == 0o600
    for outcome, results in ((made, "synthetic"), (again, "more")):
        files = dict.fromkeys((IMAGES, PREVIEW, GENERATOR, PROVENANCE), 0o600)
        assert modes(tmp_path / results) == {"": 0o700, **files}
        assert f"{results} will be NOT PRIVATE" in outcome.stderr
        assert "only you can read it (0700)" in outcome.stderr


@pytest.mark.parametrize("umask", UMASKS)
def test_figures_of_real_rows_are_for_their_owner_alone(
    dpntk: Command, tmp_path: Path, under: Careless, umask: int
) -> None:
    for name in ("made", "real"):
        (tmp_path / f"{name}.csv").write_text(people(50))
    (tmp_path / "schema.toml").write_text(Draft(PEOPLE).to_toml())
    (tmp_path / "evaluation.json").write_text('{\n  "measure": ')  # an earlier one, for all to see
    under(umask)
    done = dpntk("evaluate", "made.csv", "--test", "real.csv", "--schema", "schema.toml")
    assert done.code == 0, done.stderr
    assert mode(tmp_path / "evaluation.json") == 0o600


@pytest.mark.parametrize("umask", UMASKS)
def test_what_may_be_given_to_anybody_is_as_open_as_the_umask_says(
    dpntk: Command, folder: Path, tmp_path: Path, under: Careless, umask: int
) -> None:
    under(umask)
    dpntk("embed", folder, "--width", "5")
    dpntk("release", "--eps", "1")
    dpntk("generate", "--steps", "2", "-n", "40")
    assert mode(tmp_path / "release.h5") == 0o666 & ~umask
    assert set(modes(tmp_path / "synthetic").values()) == {0o777 & ~umask, 0o666 & ~umask}


@pytest.mark.parametrize("umask", UMASKS)
def test_nobody_else_may_say_whom_the_user_trusts(
    dpntk: Command, configuration: Path, under: Careless, umask: int
) -> None:
    under(umask)
    dpntk("keygen")
    dpntk("keygen", "-o", "theirs")
    assert dpntk("trust", "add", "them", "theirs.pub").code == 0
    assert modes(configuration) == {
        "": 0o700,
        ".dpntk.lock": 0o600,
        "allowed_signers": 0o644 & ~umask,
        "id_ed25519": 0o600,
        "id_ed25519.pub": 0o644 & ~umask,
        "own_signers": 0o644 & ~umask,
    }
