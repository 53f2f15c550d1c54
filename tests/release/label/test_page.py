"""One page to print: it says what the label says, in words that are true, and is harmless."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from dpntk.common.adjacency import Adjacency
from dpntk.common.display.untrusted import shown
from dpntk.common.schema.image import ImageSchema
from dpntk.embed import Embedding
from dpntk.release import PrivacyParameters, open_any, own_key
from dpntk.release.file.model import Opened
from dpntk.release.label.kinds import label_of
from dpntk.release.label.page import most_recognised, most_recognised_in_gaussian, page_of
from dpntk.release.mechanism.accountant import epsilon_for, noise_multiplier
from dpntk.release.publishing.pipeline import unrecorded_release, write_release
from dpntk.release.signing.policy import Acceptance, SignedBy
from tests.conftest import Command, refused
from tests.evaluate.html.test_report import MARKUP, page, require_harmless
from tests.helpers.releases import KINDS, write_small_release
from tests.release.file.test_distilled_codec import make_distilled


@pytest.mark.parametrize("kind", KINDS)
def test_a_page_of_every_kind(kind: str, dpntk: Command, tmp_path: Path) -> None:
    made = open_any(write_small_release(kind, tmp_path / "release.h5"), Acceptance())
    assert dpntk("inspect", "--page", "officer.html").code == 0
    assert Path("officer.html").stat().st_mode & 0o044
    found = page("officer.html")
    require_harmless(found)
    for text in (made.release.statement, made.digest):
        assert shown(text) in found.texts
    assert not {"NOT PRIVATE.", "Looked up in the records:"} & set(found.texts)
    assert dpntk("inspect", "--page", "officer.html").code == 0  # an earlier one is replaced
    Path("other.html").write_text("mine")
    refused(dpntk("inspect", "--page", "other.html"), "is another kind of file")
    assert dpntk("inspect", "--page", "officer.html", "--json").code == 2


@pytest.mark.parametrize("adjacency", Adjacency)
def test_it_says_how_often_a_record_is_recognised(
    dpntk: Command, embedding: Embedding, tmp_path: Path, adjacency: Adjacency
) -> None:
    classes = tuple(sorted(MARKUP[:3]))
    assert isinstance(embedding.schema, ImageSchema)
    strange = replace(embedding, schema=replace(embedding.schema, classes=classes))
    made = unrecorded_release(strange, PrivacyParameters(1.0, 1e-3, adjacency))
    write_release(made, tmp_path / "release.h5", own_key())
    assert dpntk("inspect", "--page", "officer.html").code == 0
    found = page("officer.html")
    require_harmless(found)
    most = 100 * norm.cdf(norm.ppf(0.05) + 1 / made.guarantee.noise_multiplier)
    (said,) = [float(text) for text in found.texts if re.fullmatch(r"\d+\.\d", text)]
    assert most <= said < most + 0.2
    text = " ".join(found.texts)
    assert ("or another one" in text) == (adjacency is Adjacency.REPLACE_ONE)
    assert ("or is not there at all" in text) == (adjacency is Adjacency.ADD_REMOVE)
    for name in classes:
        assert shown(name) in text


def test_of_a_distilled_set_it_says_what_holds_for_any_noise() -> None:
    """A sampled Gaussian is no Gaussian: only epsilon and delta are known of it."""
    made = make_distilled()
    opened = Opened(made, "0" * 64, SignedBy(None, None))
    found = " ".join(page_of(opened).decode().split())
    promise = made.guarantee
    most = 100 * most_recognised(promise.total_epsilon, promise.delta, 0.05)
    multiplier = noise_multiplier(promise.total_epsilon, promise.delta)
    assert most > 100 * most_recognised_in_gaussian(multiplier, 0.05) + 1
    (said,) = re.findall(r"in at most <strong>([\d.]+)</strong> of 100", found)
    assert most <= float(said) < most + 0.2
    assert label_of(opened).not_protected.endswith(", the sampling rate")


def test_what_is_no_promise_is_said(dpntk: Command, folder: Path) -> None:
    assert dpntk("embed", folder, "--width", 5).code == 0
    assert dpntk("release", "--eps", "inf", "--not-private").code == 0
    assert dpntk("inspect", "--page", "officer.html").code == 0
    assert Path("officer.html").stat().st_mode & 0o777 == 0o600
    assert {"NOT PRIVATE.", "Looked up in the records:"} <= set(page("officer.html").texts)


def test_what_an_earlier_release_without_noise_leaves_is_said(dpntk: Command, folder: Path) -> None:
    assert dpntk("embed", folder, "--width", 5, "--class-names", "a,b,c").code == 0
    exact = ("release", "--eps", "inf", "--not-private", "-o", "exact.h5")
    assert dpntk(*exact).code == 0
    assert dpntk("release", "--eps", 1, "--delta", "1e-3", "--compose").code == 0
    assert dpntk("inspect", "--page", "officer.html").code == 0
    found = page("officer.html")
    require_harmless(found)
    assert "100" in found.texts
    text = " ".join(" ".join(found.texts).split())
    assert "Nothing is left of it. An earlier release from these records was made without" in text
    assert "NOT PRIVATE." not in text  # which the file itself is not
    assert "Nobody does better" not in text


def test_the_least_epsilon_has_a_page(dpntk: Command, folder: Path) -> None:
    """Noise is rounded up, and what it has spent is no less than the least that there is."""
    assert dpntk("embed", folder, "--width", 5, "--class-names", "a,b,c").code == 0
    assert dpntk("release", "--eps", "1e-4", "--delta", "1e-5").code == 0
    assert open_any("release.h5", Acceptance()).release.guarantee.total_epsilon == 1e-4
    assert dpntk("inspect", "--page", "officer.html").code == 0
    assert "5.1" in page("officer.html").texts


@settings(deadline=None, max_examples=50)
@given(multiplier=st.floats(0.1, 50), delta=st.floats(1e-9, 1e-2), alarms=st.floats(0.01, 0.5))
def test_no_attack_on_a_gaussian_mechanism_is_better(
    multiplier: float, delta: float, alarms: float
) -> None:
    """Of those the best is known exactly (Dong, Roth and Su 2022)."""
    epsilon = epsilon_for(multiplier, delta)
    best = norm.cdf(norm.ppf(alarms) + 1 / multiplier)
    most = most_recognised(epsilon, delta, alarms)
    assert best <= most + 1e-9
    assert most_recognised_in_gaussian(multiplier, alarms) == pytest.approx(best)
    assert alarms <= most <= 1


def test_without_a_release_it_is_chance() -> None:
    assert most_recognised(0.0, 0.0, 0.05) == pytest.approx(0.05)
    assert most_recognised(float("inf"), 1e-5, 0.05) == most_recognised_in_gaussian(0.0, 0.05) == 1
