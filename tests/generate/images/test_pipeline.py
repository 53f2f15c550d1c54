"""Training, sampling and the files that come of it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file
from sklearn.datasets import load_digits

from dpntk.common.errors import GeneratorError, OutputError
from dpntk.common.features.ntk.architectures import fc_1l
from dpntk.common.features.ntk.map import TangentFeatures
from dpntk.common.features.ntk.scattering import Pixels
from dpntk.common.schema.image import ImageSchema
from dpntk.common.schema.origin import Origin
from dpntk.embed import Embedding
from dpntk.embed.exact.grid import Grid
from dpntk.embed.sums.accumulate import ClassSums
from dpntk.generate import TrainingSettings, generate, load_generator, sample_to
from dpntk.generate.images import export, pipeline
from dpntk.generate.images.generators.conditional import ConditionalGenerator, GeneratorSpec
from dpntk.generate.images.inducing_points import PointSettings
from dpntk.generate.images.sampling import sample
from dpntk.generate.images.training import train
from dpntk.release import OpenedRelease, PrivacyParameters, Release, open_release, own_key
from dpntk.release.publishing.pipeline import unrecorded_release, write_release
from tests.conftest import Command, refused
from tests.helpers.processes import run_anew

BRIEF = TrainingSettings(steps=30, batch=12, seed=1)


@pytest.fixture
def opened(embedding: Embedding, tmp_path: Path) -> OpenedRelease:
    write_release(
        unrecorded_release(embedding, PrivacyParameters(epsilon=50.0)),
        tmp_path / "release.h5",
        own_key(),
    )
    return open_release(tmp_path / "release.h5")


@pytest.mark.parametrize("side", [8, 9, 10, 11, 28, 32, 63, 64])
def test_generator_makes_images_of_any_size(side: int) -> None:
    generator = ConditionalGenerator(GeneratorSpec(side=side, classes=2))
    images = generator(torch.randn(2, 3, generator.spec.code), torch.tensor([1, 0]))
    assert images.shape == (2, 3, side * side)
    assert bool(((images >= 0) & (images <= 1)).all())
    assert bool((images.std(dim=2) > 0).all())


def test_flows_move_what_the_template_shows() -> None:
    """A flow that is 1/4 of the image width everywhere fetches each pixel from there."""
    generator = ConditionalGenerator(GeneratorSpec(side=16, classes=2, factors=1, flows=1))
    with torch.no_grad():
        generator.template.zero_()
        generator.template[1].view(16, 16)[2:4, 4:6] = 0.5
        generator.factors.zero_()
        generator.flows.zero_()
        generator.flows[1, 0, 0] = 0.5  # half of half a width, along x
        code = torch.tensor([[[0.0, 0.0], [0.0, 1.0], [0.0, -1.0]]])
        still, left, right = generator(code, torch.tensor([1]))[0].view(3, 16, 16)
    assert torch.allclose(left[:, :10], still[:, 4:14], atol=1e-5)
    assert torch.allclose(right[:, 6:], still[:, 2:12], atol=1e-5)
    assert still.max() == 0.5


def test_flows_move_all_channels_alike_and_none_into_another() -> None:
    colour = GeneratorSpec(side=16, classes=2, factors=3, flows=2, channels=3)
    grey = GeneratorSpec(side=16, classes=2, factors=3, flows=2)
    generator, alone = ConditionalGenerator(colour), ConditionalGenerator(grey)
    code, every = torch.randn(2, 5, 5), torch.arange(2)
    with torch.no_grad():
        generator.template.uniform_(0.2, 0.8)
        generator.flows.normal_(0, 0.2)
        alone.flows.copy_(generator.flows)
        made = generator(code, every).view(2, 5, 3, 256)
        for channel in range(3):
            alone.template.copy_(generator.template.view(2, 1, 3, 256)[:, :, channel])
            alone.factors.copy_(generator.factors.view(2, 3, 3, 256)[:, :, channel])
            assert torch.allclose(made[:, :, channel], alone(code, every), atol=1e-6)


def test_factors_begin_grey_and_a_grey_generator_is_described_as_it_always_was() -> None:
    generator = ConditionalGenerator(GeneratorSpec(side=8, classes=2, channels=3))
    red, green, blue = generator.factors.detach().view(2, 16, 3, 64).unbind(2)
    assert torch.equal(red, green)
    assert torch.equal(red, blue)
    assert generator.spec.to_json()["channels"] == 3
    assert GeneratorSpec(8, 2).to_json() == {"side": 8, "classes": 2, "factors": 16, "flows": 8}


def release_of_digits(epsilon: float) -> Release:
    """A release of scikit-learn's digits."""
    data = load_digits()
    pixels = np.rint(data.data / 16 * 255).astype(np.uint8)
    feature_map = TangentFeatures.draw(Pixels(64), fc_1l(60), outputs=10, levels=255, seed=0)
    grid = Grid.for_capacity(255, 2**20)
    sums = ClassSums(feature_map, 10, grid)
    sums.add(pixels, data.target)
    schema = ImageSchema(8, tuple(data.target_names.astype(str)), Origin.FORMAT, Origin.DECLARED)
    embedding = Embedding(sums.sums, sums.counts, schema, feature_map, grid)
    return unrecorded_release(embedding, PrivacyParameters(epsilon=epsilon))


def test_training_comes_close_to_the_release() -> None:
    made = release_of_digits(epsilon=100.0)
    training = train(made, TrainingSettings(steps=200, batch=200))
    first, last = training.losses[0].loss, training.losses[-1].loss
    assert last - training.noise_floor < 0.2 * (first - training.noise_floor)
    assert not training.generator.training


def test_the_seed_decides_everything(opened: OpenedRelease, tmp_path: Path) -> None:
    def bits(seed: int, name: str) -> bytes:
        generate(opened, tmp_path / name, count=20, settings=TrainingSettings(20, 12, seed))
        return (tmp_path / name / "images.npz").read_bytes()

    assert bits(1, "a") == bits(1, "b")
    assert bits(1, "a") != bits(2, "c")


def test_the_folder_holds_what_is_promised(opened: OpenedRelease, tmp_path: Path) -> None:
    folder = tmp_path / "synthetic"
    generate(opened, folder, count=50, settings=BRIEF)

    assert sorted(file.name for file in folder.iterdir()) == [
        "generator.safetensors", "images.npz", "preview.png", "provenance.json",
    ]  # fmt: skip
    with np.load(folder / "images.npz") as images:
        assert images["x"].shape == (50, 8, 8)
        assert images["x"].dtype == np.uint8
        assert images["y"].dtype == np.int64
        assert set(images["y"].tolist()) == {0, 1, 2}
    provenance = json.loads((folder / "provenance.json").read_text())
    assert provenance["release"]["id"] == opened.release.release_id
    assert provenance["release"]["digest"] == opened.digest
    assert provenance["release"]["epsilon"] == 50.0
    assert provenance["classes"] == ["a", "b", "c"]
    assert provenance["training"]["settings"]["steps"] == 30
    assert [step for step, _ in provenance["training"]["losses"]] == list(range(3, 31, 3))
    with Image.open(folder / "preview.png") as preview:
        assert preview.height > 3 * 50


def test_a_saved_generator_samples_the_same_records_again(
    opened: OpenedRelease, tmp_path: Path
) -> None:
    generate(opened, tmp_path / "first", count=40, settings=BRIEF)
    saved = load_generator(tmp_path / "first" / "generator.safetensors")
    sample_to(tmp_path / "second", saved, count=40, seed=BRIEF.seed)

    first, second = (tmp_path / name / "images.npz" for name in ("first", "second"))
    assert first.read_bytes() == second.read_bytes()
    provenance = json.loads((tmp_path / "second" / "provenance.json").read_text())
    assert provenance["release"]["id"] == opened.release.release_id


def test_an_earlier_result_of_either_kind_is_replaced(
    opened: OpenedRelease, tmp_path: Path
) -> None:
    folder = tmp_path / "synthetic"
    of_images = {"generator.safetensors", "images.npz", "preview.png", "provenance.json"}
    for points in (None, PointSettings(1, steps=2), None):
        count = 5 if points is None else None
        generate(opened, folder, count=count, settings=BRIEF, points=points)
        wanted = of_images if points is None else of_images | {"points.npz"}
        assert {file.name for file in folder.iterdir()} == wanted
    assert sorted(file.name for file in tmp_path.glob("*synthetic*")) == ["synthetic"]


def test_a_link_to_an_earlier_result_stays_one(opened: OpenedRelease, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    link = tmp_path / "synthetic"
    link.symlink_to("real")
    for records in (5, 6):
        generate(opened, link, count=records, settings=BRIEF)
        assert link.is_symlink()
        with np.load(tmp_path / "real" / "images.npz") as images:
            assert len(images["y"]) == records
    assert not list(tmp_path.glob(".*.tmp*"))


def test_the_folder_is_looked_at_before_training(
    opened: OpenedRelease, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine").write_text("mine")
    monkeypatch.setattr(pipeline, "train", lambda *_, **__: pytest.fail("trained for nothing"))
    with pytest.raises(OutputError, match=r"such as mine: move it, or choose another folder$"):
        generate(opened, tmp_path, settings=BRIEF)


@pytest.mark.parametrize(
    "name", ["schema.toml", "evaluation.json", "report.docx", "figures/one.png"]
)
def test_what_the_user_put_beside_an_earlier_result_survives(
    dpntk: Command,
    opened: OpenedRelease,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
) -> None:
    folder = tmp_path / "synthetic"
    generate(opened, folder, count=5, settings=BRIEF)
    mine = folder / name
    mine.parent.mkdir(exist_ok=True)
    mine.write_text("mine")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}

    def at_once(*_: object, **__: object) -> None:
        pytest.fail("trained for nothing")

    monkeypatch.setattr(pipeline, "train", at_once)
    monkeypatch.setattr(export, "sample", at_once)
    first = name.replace("one.png", "")
    for arguments in (["release.h5"], ["release.h5", "--points", "1"], ["--from", "synthetic"]):
        refused(
            dpntk("generate", *arguments, "-o", "synthetic"),
            f"synthetic holds more than an earlier result, such as {first}: move it, or "
            "choose another folder with -o",
        )
    after = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert after == before


def test_labels_follow_the_class_weights() -> None:
    generator = ConditionalGenerator(GeneratorSpec(side=8, classes=3)).eval()
    _, labels = sample(generator, 1001, np.array([0.5, 0.3, 0.2]), seed=0)
    assert np.bincount(labels).tolist() == [501, 300, 200]
    assert np.count_nonzero(np.diff(labels)) > 400  # shuffled


def test_other_files_are_not_taken_for_a_generator(opened: OpenedRelease, tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    with pytest.raises(GeneratorError, match="no such file"):
        load_generator(path)
    path.write_bytes(b"nothing of the kind")
    with pytest.raises(GeneratorError, match="not a generator"):
        load_generator(path)
    save_file({"weight": torch.zeros(2)}, path)
    with pytest.raises(GeneratorError, match="not a generator"):
        load_generator(path)

    generate(opened, tmp_path / "ours", count=5, settings=BRIEF)
    content = (tmp_path / "ours" / "generator.safetensors").read_bytes()
    path.write_bytes(content[:-100])
    with pytest.raises(GeneratorError, match="not a generator"):
        load_generator(path)
    path.write_bytes(content.replace(b'\\"factors\\": 216', b'\\"factors\\": 217'))
    with pytest.raises(GeneratorError, match="weights do not fit"):
        load_generator(path)


@pytest.mark.parametrize(
    ("room", "commands"), [("generate", "generate, writing"), ("evaluate", "evaluate, report")]
)
def test_the_sensitive_room_is_never_loaded(
    room: str, commands: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """The import contract says so of the source; this says so of a running program."""
    program = (
        f"import sys; from dpntk.{room} import *; from dpntk.{room}.commands import {commands}; "
        "print([name for name in sys.modules if name.startswith('dpntk.')], flush=True)"
    )
    assert run_anew(program) == 0
    loaded = capfd.readouterr().out
    assert f"dpntk.{room}.pipeline" in loaded
    assert "dpntk.release.file.reader" in loaded
    assert "dpntk.embed" not in loaded
    assert room == "evaluate" or "dpntk.common.sources" not in loaded
