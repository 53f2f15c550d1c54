"""The label says what the file says, to people, programs and registries."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import click
import numpy as np
import pytest
import yaml
from scipy import stats

from dpntk.common.adjacency import Adjacency
from dpntk.common.cli import prompts
from dpntk.common.features.base import FeatureMap, weights_digest
from dpntk.common.features.hermite import HermiteFeatures
from dpntk.common.features.joint import JointFeatures
from dpntk.common.features.marginals.map import MarginalFeatures
from dpntk.common.features.ntk.architectures import fc_1l
from dpntk.common.features.ntk.map import TangentFeatures
from dpntk.common.features.ntk.scattering import Pixels
from dpntk.common.features.perceptual import PerceptualFeatures
from dpntk.common.features.rff import RandomFourierFeatures
from dpntk.common.schema import Schema
from dpntk.common.schema.image import ImageSchema
from dpntk.common.schema.origin import Origin
from dpntk.embed import Embedding
from dpntk.release import PrivacyParameters, Release, make_key, own_key
from dpntk.release.file.model import Opened, OpenedRelease
from dpntk.release.label.kinds import label_of
from dpntk.release.label.page import page_of
from dpntk.release.mechanism.accountant import noise_multiplier
from dpntk.release.publishing.pipeline import unrecorded_release, write_release
from dpntk.release.signing import prompts as asking
from dpntk.release.signing.policy import SignedBy
from tests.conftest import Command
from tests.helpers.tables import PEOPLE
from tests.release.file.test_statement import PRIVATE


@pytest.fixture
def made(embedding: Embedding, tmp_path: Path) -> Release:
    made = unrecorded_release(
        embedding, PrivacyParameters(2.0, delta=1e-4, adjacency=Adjacency.ADD_REMOVE)
    )
    write_release(made, tmp_path / "release.h5", own_key())
    return made


def test_people_read_what_matters(dpntk: Command, made: Release) -> None:
    shown = " ".join(dpntk("inspect").stdout.replace("│", " ").split())
    for words in (
        "images of 8x8 pixels in 3 classes: a, b, c", "epsilon 2", "delta 0.0001", "add-remove",
        f"sigma {made.guarantee.sigma:.6g}", "under replace-one", "first release from these",
        "fc_1l, width 13", "signed by this-machine (SHA256:", made.release_id, made.statement,
    ):  # fmt: skip
        assert words in shown


@pytest.mark.parametrize("epsilon", [1.2345641, 0.7654323, 2.0])
def test_no_figure_of_the_promise_is_below_the_one_that_is_kept(
    dpntk: Command, embedding: Embedding, tmp_path: Path, epsilon: float
) -> None:
    parameters = PrivacyParameters(epsilon, delta=1 / 70001, adjacency=Adjacency.ADD_REMOVE)
    made = unrecorded_release(embedding, parameters)
    write_release(made, tmp_path / "release.h5", own_key())
    shown = " ".join(dpntk("inspect").stdout.replace("│", " ").split())
    for pattern, least in (
        (r"satisfies \(([^ ]+), ", epsilon), (r"satisfies \([^ ]+ ([^ ]+)\)", parameters.delta),
        (r"record for another, epsilon is (\S+)\. ", made.guarantee.epsilon_replace_one),
        (r"epsilon (\S+) delta", epsilon), (r"delta (\S+) adjacency", parameters.delta),
        (r"exchange epsilon (\S+) under", made.guarantee.epsilon_replace_one),
    ):  # fmt: skip
        (said,) = re.findall(pattern, shown)
        assert least is not None
        assert least <= float(said) < least * 1.001


TANGENT = TangentFeatures.draw(Pixels(64), fc_1l(13), outputs=3, levels=255, seed=3)
ENCODED = TangentFeatures.draw(Pixels(PEOPLE.record_size), fc_1l(13), outputs=2, levels=255, seed=3)
MARGINALS = MarginalFeatures.of(PEOPLE)
WITH_PAIRS = MarginalFeatures.of(PEOPLE, groups=[("age", "town")])
IMAGES = ImageSchema(8, ("a", "b", "c"), Origin.FORMAT, Origin.DECLARED)


@pytest.mark.parametrize(
    ("feature_map", "schema", "words"),
    [
        (TANGENT, IMAGES, "normalised tangent features of fc_1l, width 13, on pixels"),
        (ENCODED, PEOPLE, "normalised tangent features of fc_1l, width 13, on encoded rows"),
        (
            RandomFourierFeatures.draw(64, frequencies=1200, length_scale=1, levels=255, seed=0),
            IMAGES, "random Fourier features, 1,200 frequencies",
        ),
        (
            HermiteFeatures.draw(64, levels=255, seed=0, order=3, pair_order=2),
            IMAGES, "Hermite features of order 3 and 2 (pairs)",
        ),
        (
            PerceptualFeatures("a" * 64, (1, 8, 8), 255, np.zeros(3, np.float32)),
            IMAGES, f"features of a pre-trained module (SHA-256 {'a' * 64})",
        ),
        (MARGINALS, PEOPLE, "marginals of 4 columns"),
        (
            JointFeatures(ENCODED, MARGINALS, 0.5), PEOPLE,
            "normalised tangent features of fc_1l, width 13, on encoded rows, and marginals of "
            "weight 0.5",
        ),
        (
            JointFeatures(ENCODED, WITH_PAIRS, 0.25), PEOPLE,
            "normalised tangent features of fc_1l, width 13, on encoded rows, and marginals of "
            "weight 0.25 (1 pair of columns among them)",
        ),
    ],
)  # fmt: skip
def test_every_feature_map_says_what_it_is(
    feature_map: FeatureMap, schema: Schema, words: str
) -> None:
    assert feature_map.describe(schema) == words


def test_programs_read_everything_but_the_matrix(dpntk: Command, made: Release) -> None:
    document = json.loads(dpntk("inspect", "--json").stdout)
    assert document["guarantee"]["epsilon"] == 2.0
    assert document["guarantee"]["sigma"] == made.guarantee.sigma
    assert document["guarantee"]["adjacency"] == "add-remove"
    assert document["embedding_shape"] == list(made.embedding.shape)
    assert document["signed_by"]["fingerprint"] == own_key().public.fingerprint
    assert document["feature_map"]["digest"] == weights_digest(made.feature_map)
    assert len(document["sha256"]) == 64
    assert sum(document["class_weights"].values()) == pytest.approx(1)


def test_the_registry_gets_an_entry(dpntk: Command, made: Release) -> None:
    entry = yaml.safe_load(dpntk("inspect", "--registry").stdout)["deployment"]
    assert entry["privacy_loss"]["privacy_parameters"] == {"epsilon": 2.0, "delta": 1e-4}
    assert entry["basic"]["data_product_type"] == "Synthetic data"
    assert entry["basic"]["publication_date"] == made.created[:10]
    assert entry["basic"]["name"] is None  # for the owner to fill in
    assert "image size" in entry["dp_variant"]["unprotected_quantities"]
    assert made.release_id in entry["implementation"]["mechanisms"]
    assert dpntk("inspect", "--registry", "--json").code == 2


def opened(release: Release) -> OpenedRelease:
    return Opened(release, "0" * 64, SignedBy(None, None))


@pytest.mark.parametrize("adjacency", Adjacency)
def test_the_number_of_records_is_exact_and_public_under_replace_one_alone(
    embedding: Embedding, adjacency: Adjacency
) -> None:
    made = unrecorded_release(embedding, PrivacyParameters(2.0, 1e-4, adjacency))
    noisy = adjacency is Adjacency.ADD_REMOVE
    made = replace(made, guarantee=replace(made.guarantee, records=211 if noisy else 200))
    label = label_of(opened(made))
    data = "about 211 grey images" if noisy else "200 grey images"
    for said in (label.domain, label.as_rows()["data"]):
        assert said.startswith(f"{data} of 8x8 pixels in 3 classes")
    assert label.not_protected.startswith("number of records, ") is not noisy
    assert label.not_protected.removeprefix("number of records, ") == ", ".join(IMAGES.known)


def test_what_was_looked_up_in_the_records_is_said(made: Release) -> None:
    schema = replace(IMAGES, classes_origin=Origin.FROM_DATA)
    (looked_up,) = schema.from_data
    label = label_of(opened(replace(made, schema=schema)))
    assert label.not_protected.endswith(f"; looked up: {looked_up}")


def test_earlier_releases_are_counted_under_the_adjacency_of_the_total(made: Release) -> None:
    """Each of them was under add-remove but one, so all together are under replace-one."""
    before = opened(made)
    assert "first release" in label_of(before).composition
    together = replace(
        made.guarantee,
        total_epsilon=3.4561,
        total_adjacency=Adjacency.REPLACE_ONE,
        total_releases=3,
    )
    later = opened(replace(made, guarantee=together))
    said = "release number 3 from these records; together epsilon 3.457 (replace-one)"
    assert label_of(later).composition == label_of(later).as_rows()["in total"] == said
    for which, kind in ((before, "One release"), (later, "Many releases")):
        entry = yaml.safe_load(label_of(which).as_registry_entry())["deployment"]
        assert entry["deployment_model"]["release_type"] == kind
    page = " ".join(page_of(later).decode().split())
    assert said in page
    assert "is a certain record or another one" in page
    multiplier = noise_multiplier(3.4561, made.guarantee.delta)
    most = 100 * stats.norm.cdf(stats.norm.ppf(0.05) + 1 / multiplier)
    (found,) = re.findall(r"in at most <strong>([\d.]+)</strong> of 100", page)
    assert most <= float(found) < most + 0.2


def test_what_bounds_have_spent_is_in_every_epsilon_of_the_file(made: Release) -> None:
    together = replace(made.guarantee, total_epsilon=3.4561, total_releases=2)
    weights = np.full(len(PRIVATE.classes), 1 / len(PRIVATE.classes))
    label = label_of(
        opened(replace(made, schema=PRIVATE, guarantee=together, class_weights=weights))
    )
    assert label.as_rows()["epsilon"] == "3.457, of which the bounds of columns have a part"
    assert label.as_rows()["exchange"].endswith(" for the matrix alone")
    loss = yaml.safe_load(label.as_registry_entry())["deployment"]["privacy_loss"]
    assert loss["privacy_parameters"] == {"epsilon": 3.4561, "delta": 1e-4}
    page = " ".join(page_of(label.opened).decode().split())
    assert "<td>3.4561, 0.0001</td>" in page


def test_evaluate_can_check_where_synthetic_records_come_from(
    dpntk: Command, made: Release, folder: Path, tmp_path: Path
) -> None:
    assert dpntk("generate", "--steps", "2", "-n", "40").code == 0
    arguments = ("evaluate", "--test", folder, "--release")
    checked = dpntk(*arguments, "release.h5")
    assert checked.code == 0
    assert "said to be made from release.h5, signed by this-machine" in checked.stderr
    made.embedding[0, 0] += 1
    write_release(made, tmp_path / "other.h5", own_key())
    refused = dpntk(*arguments, "other.h5")
    assert refused.code == 1
    assert "do not say that they come from other.h5" in refused.stderr
    write_release(made, tmp_path / "other.h5", make_key(tmp_path / "stranger"))
    assert "whom nobody here trusts" in dpntk(*arguments, "other.h5").stderr


@pytest.mark.parametrize(("answer", "code"), [(True, 0), (False, 1)])
def test_on_a_terminal_an_unknown_signer_is_asked_about(
    dpntk: Command,
    made: Release,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    answer: bool,
    code: int,
) -> None:
    key = make_key(tmp_path / "stranger")
    write_release(made, tmp_path / "release.h5", key)
    asked: list[str] = []

    def confirm(question: str, err: bool) -> bool:
        asked.append(question)
        return answer

    monkeypatch.setattr(prompts, "is_terminal", lambda: True)
    monkeypatch.setattr(click, "confirm", confirm)
    assert dpntk("inspect").code == code
    (question,) = asked
    assert key.public.fingerprint in question


def test_on_a_terminal_the_passphrase_is_asked_for(
    dpntk: Command, embedding_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_key(tmp_path / "locked", "secret")
    monkeypatch.setattr(asking, "is_terminal", lambda: True)
    arguments = (
        "release", embedding_file.name, "--eps", "1", "--delta", "1e-3", "--key", "locked",
    )  # fmt: skip
    monkeypatch.setattr(click, "prompt", lambda *_, **__: "guess")
    assert "wrong passphrase" in dpntk(*arguments).stderr
    monkeypatch.setattr(click, "prompt", lambda *_, **__: "secret")
    assert dpntk(*arguments).code == 0
    assert dpntk("verify").code == 0


def test_control_characters_of_a_stranger_are_not_printed(
    dpntk: Command, made: Release, tmp_path: Path
) -> None:
    from dataclasses import replace

    evil = replace(made, release_id="\x1b[2J\x1b[31mharmless\r", created="\x07")
    write_release(evil, tmp_path / "release.h5", own_key())
    shown = dpntk("inspect").stdout
    assert "harmless" in shown
    assert not any(character in shown for character in "\x1b\r\x07")


def test_classes_of_little_signal_are_named(embedding: Embedding) -> None:
    """The noise of a class is that of the matrix over its share."""
    made = unrecorded_release(embedding, PrivacyParameters(30.0))
    assert made.indistinct == ()
    rare = replace(made, class_weights=np.array([0.998, 1e-3, 1e-3]))
    assert rare.noise_per_coordinate / 1e-3 > 0.1 > rare.noise_per_coordinate / 0.998
    assert rare.indistinct == ("b", "c")
