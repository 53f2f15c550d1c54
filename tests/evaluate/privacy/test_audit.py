"""The audit's bounds hold for known mechanisms, come close, and refute a broken one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import dp_accounting
import numpy as np
import pytest
from numpy.typing import NDArray

from dpntk.common.adjacency import Adjacency
from dpntk.common.schema.privacy_unit import PrivacyUnit
from dpntk.common.sources.options import SourceOptions
from dpntk.embed import TangentOptions, embed, load_embedding, save_embedding
from dpntk.evaluate.privacy import audit as audit_module
from dpntk.evaluate.privacy.audit import Audit, audit
from dpntk.evaluate.privacy.lower_bounds import Scores, epsilon_clopper_pearson, epsilon_from_gdp
from dpntk.release.mechanism import gaussian as mechanism
from dpntk.release.mechanism.discrete_gaussian import discrete_gaussian
from dpntk.release.publishing import layout, parameters
from tests.conftest import Command, draw_records
from tests.helpers.tables import PEOPLE, people

DELTA = 1e-3
Method = Callable[[Scores, Scores, float, float], float]
METHODS: list[Method] = [epsilon_clopper_pearson, epsilon_from_gdp]


@pytest.fixture(autouse=True)
def fewer_runs_of_one_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fifth of the usual ones: at epsilon 1 they still give a bound of 0.75, to within 0.03."""
    monkeypatch.setattr(audit_module, "_NOISE_RUNS", 40)


def audited(path: Path, adjacency: Adjacency = Adjacency.REPLACE_ONE, canaries: int = 0) -> Audit:
    return audit(
        path,
        epsilon=1.0,
        delta=DELTA,
        adjacency=adjacency,
        canaries=canaries,
        confidence=0.999999,
    )


def halve_the_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    def halved(size: int, sigma: int | Fraction) -> NDArray[np.int64]:
        return discrete_gaussian(size, Fraction(sigma) / 2)

    monkeypatch.setattr(mechanism, "discrete_gaussian", halved)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("multiplier", [0.7, 2.0, 3.73])
def test_bounds_hold_and_come_close(method: Method, multiplier: float) -> None:
    random = np.random.default_rng(0)
    first, second = random.normal(0, 1, 400_000), random.normal(1 / multiplier, 1, 400_000)
    truth = dp_accounting.get_epsilon_gaussian(multiplier, 1e-3)
    assert 0.75 * truth < method(first, second, 1e-3, 0.99) <= truth


@pytest.mark.parametrize("method", METHODS)
def test_bounds_hold_as_often_as_they_say(method: Method) -> None:
    """400 audits of a tight mechanism at a confidence of 0.9: at most about 40 may be wrong."""
    truth = dp_accounting.get_epsilon_gaussian(1.0, 1e-3)
    random = np.random.default_rng(1)
    wrong = 0
    for _ in range(400):
        first, second = random.normal(0, 1, 200), random.normal(1, 1, 200)
        wrong += method(first, second, 1e-3, 0.9) > truth
    assert wrong <= 62  # a binomial of 400 and 0.1 exceeds that with probability 2e-4


def test_counting_needs_no_normal_scores() -> None:
    """Randomised response with epsilon 1."""
    random = np.random.default_rng(2)
    truth = np.exp(1) / (1 + np.exp(1))
    first = (random.random(20_000) > truth).astype(float)
    second = (random.random(20_000) < truth).astype(float)
    assert 0.9 < epsilon_clopper_pearson(first, second, 0.0, 0.99) <= 1


def test_scores_that_tell_nothing_give_nothing() -> None:
    same = np.random.default_rng(3).normal(0, 1, (2, 1000))
    assert [method(same[0], same[1], 1e-5, 0.99) for method in METHODS] == [0.0, 0.0]


@pytest.mark.parametrize("adjacency", list(Adjacency))
@pytest.mark.parametrize("canaries", [0, 3])
def test_the_mechanism_passes_and_the_bound_is_not_trivial(
    embedding_file: Path, adjacency: Adjacency, canaries: int
) -> None:
    found = audited(embedding_file, adjacency, canaries)
    assert found.contradictions == []
    by_curve, _, by_numbers = found.findings
    assert 0.5 < by_curve.epsilon < 1
    assert 0.4 < by_numbers.epsilon < 1
    assert 0.99 < found.distance <= 1


def test_halved_noise_is_refuted_by_every_means(
    embedding_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    halve_the_noise(monkeypatch)
    found = audited(embedding_file)
    by_curve, _, by_numbers = found.findings
    assert by_curve.epsilon > 1
    assert by_numbers.epsilon > 1
    assert found.noise.second_moment == pytest.approx(0.25, rel=0.2)
    assert len(found.contradictions) >= 3


def test_a_sensitivity_that_is_too_small_is_refuted(
    embedding_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mechanism, "sensitivity", lambda *_, **__: 0.8)
    found = audited(embedding_file)
    assert found.distance == pytest.approx(1.4577 / 0.8, rel=1e-3)
    assert found.findings[0].epsilon > 1


def test_noise_shared_by_two_classes_is_refuted(
    embedding_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def shared(size: int, sigma: int | Fraction) -> NDArray[np.int64]:
        drawn = discrete_gaussian(size, sigma)
        drawn[1::3] = drawn[0::3][: len(drawn[1::3])]
        return drawn

    monkeypatch.setattr(mechanism, "discrete_gaussian", shared)
    noise = audited(embedding_file).noise
    assert noise.correlation > 0.99
    assert not noise.passed


def test_the_command_says_what_it_found(
    dpntk: Command, embedding_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ("audit", "--eps", "1", "--delta", DELTA, "--runs", "2000")
    before = embedding_file.read_bytes()
    passed = dpntk(*arguments)
    assert passed.code == 0
    for words in ("claimed", "second moment", "never prove one", "of the sensitivity apart"):
        assert words in passed.stdout
    halve_the_noise(monkeypatch)
    refuted = dpntk(*arguments)
    assert refuted.code == 1
    assert "the guarantee of epsilon 1 is refuted" in refuted.stderr
    assert embedding_file.read_bytes() == before
    assert load_embedding(embedding_file).ledger.entries == ()


def test_an_audit_of_a_table_speaks_of_rows(dpntk: Command) -> None:
    Path("schema.toml").write_text(
        '[[columns]]\nname = "sex"\nkind = "boolean"\ndtype = "string"\ncategories = ["f", "m"]\n'
    )
    Path("table.csv").write_text("sex\n" + "f\nm\n" * 20)
    assert dpntk("embed", "table.csv", "--schema", "schema.toml").code == 0
    for adjacency in ("replace-one", "add-remove"):
        audited = dpntk(
            "audit", "--eps", 1, "--delta", 1e-3, "--runs", 500, "--adjacency", adjacency
        )
        assert audited.code == 0, audited.stderr
        assert "a row of lowest values" in audited.stdout
        assert "dark" not in audited.stdout
        assert "point" not in audited.stdout


def test_all_rows_of_a_person_are_tried_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One row alone is a fifth of what the noise has to hide: noise for one row would pass."""
    (tmp_path / "rows.csv").write_text(people(50))
    schema = replace(PEOPLE, privacy_unit=PrivacyUnit("id", 5))
    made = embed(tmp_path / "rows.csv", TangentOptions(width=3), SourceOptions(schema=schema))
    save_embedding(made, tmp_path / "embedding.h5")

    def found(canaries: int) -> Audit:
        return audit(
            tmp_path / "embedding.h5", epsilon=1.0, delta=DELTA, adjacency=Adjacency.ADD_REMOVE,
            runs=2_000, canaries=canaries, confidence=0.999999,
        )  # fmt: skip

    right = found(0)
    assert right.pair == "nothing and 5 rows of lowest values"
    assert right.contradictions == []
    for distance in (right.distance, found(2).distance):
        assert 0.9 < distance <= 1
    monkeypatch.setattr(parameters, "rows_per_unit", lambda _: 1)
    wrong = found(0)
    assert wrong.distance == pytest.approx(5 * right.distance, rel=1e-3)
    assert wrong.findings[0].epsilon > 1


@pytest.mark.parametrize(
    ("of_table", "epsilon"),
    [(False, 100.0), (True, 100.0), (True, 1000.0)],
    ids=["pixels left out", "halves of numbers", "pairs chosen"],
)
def test_an_audit_runs_on_what_a_release_is_made_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, of_table: bool, epsilon: float
) -> None:
    """Sums of an embedding that holds more than a release of it."""
    monkeypatch.setattr(layout, "CHOSEN_PAIRS", 2)
    if of_table:
        (tmp_path / "rows.csv").write_text(people(50))
        options, source = TangentOptions(width=3), SourceOptions(schema=PEOPLE)
        made = embed(tmp_path / "rows.csv", options, source)
    else:
        images, labels = draw_records(50)
        np.savez(tmp_path / "images.npz", x=images.reshape(-1, 8, 8), y=labels)
        source = SourceOptions(classes=3)
        made = embed(tmp_path / "images.npz", TangentOptions(width=3), source)
    save_embedding(made, tmp_path / "embedding.h5")
    found = audit(
        tmp_path / "embedding.h5", epsilon=epsilon, delta=DELTA, adjacency=Adjacency.REPLACE_ONE,
        runs=2_000, confidence=0.999999,
    )  # fmt: skip
    assert found.noise.coordinates < made.sums.size
    assert 0 < found.findings[0].epsilon <= epsilon
    assert found.distance <= 1
