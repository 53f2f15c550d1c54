"""The papers' own systems by one command each, and what of them can be changed alone."""

from __future__ import annotations

import json
import math
import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv

from dpntk.common.schema.classes import numbered
from dpntk.common.schema.image import ImageSchema
from dpntk.common.schema.origin import Origin
from dpntk.embed import (
    Column,
    FourierOptions,
    SourceOptions,
    TableSchema,
    TangentOptions,
    embed,
    save_embedding,
)
from dpntk.generate import load_generator
from dpntk.generate.fit.recipe import PAPER, ComposedSettings
from dpntk.generate.images.export import SavedImageGenerator
from dpntk.generate.images.generators.networks.convolutional import ConvolutionalGenerator
from dpntk.generate.images.generators.networks.resnet import ResidualGenerator
from dpntk.generate.pipeline import chosen_settings
from dpntk.generate.tables.export import SavedTableGenerator
from dpntk.generate.tables.generators.perceptron import PerceptronGenerator
from dpntk.release import PrivacyParameters, Release, open_release, own_key
from dpntk.release.publishing.pipeline import unrecorded_release, write_release
from tests.conftest import Command, refused
from tests.helpers.releases import write_small_release

RELEASE = ("release", "--eps", 5, "--delta", "1e-3")
BRIEF = ("--steps", 2, "--batch", 20, "-n", 30)
ADULT_LIKE = TableSchema(
    (
        *(Column.integer(f"n{k}", 0, 9) for k in range(6)),
        *(Column.categorical(f"c{k}", ("a", "b", "c")) for k in range(8)),
        Column.boolean("rich"),
    ),
    "rich",
)


def write_digits(path: Path, side: int = 28, count: int = 40) -> Path:
    random = np.random.default_rng(0)
    images = random.integers(0, 256, (count, side, side), dtype=np.uint8)
    np.savez(path, x=images, y=np.arange(count) % 10)
    return path


def adult_like(count: int) -> pa.Table:
    random = np.random.default_rng(0)
    numbers = {f"n{k}": random.integers(0, 10, count) for k in range(6)}
    categories = {f"c{k}": random.choice(list("abc"), count) for k in range(8)}
    return pa.table({**numbers, **categories, "rich": random.random(count) < 0.3})


def training(folder: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((Path(folder) / "provenance.json").read_text())
    settings: dict[str, Any] = document["training"]["settings"]
    return settings


@cache
def released(count: int = 40) -> Release:
    """A release of images of MNIST's shape, by its preset; without noise, which takes a while."""
    random = np.random.default_rng(0)
    images = random.integers(0, 256, (count, 28, 28), dtype=np.uint8)
    source = SourceOptions(classes=10)
    embedding = embed((images, np.arange(count) % 10), TangentOptions(preset="mnist"), source)
    return unrecorded_release(embedding, PrivacyParameters(math.inf, not_private=True))


@pytest.fixture
def of_digits(tmp_path: Path) -> Path:
    """`released` in a file."""
    write_release(released(), tmp_path / "release.h5", own_key())
    return tmp_path / "release.h5"


def test_images_as_printed(dpntk: Command, of_digits: Path) -> None:
    made = dpntk("generate", of_digits, "--recipe", "paper", *BRIEF, "-o", "s")
    assert made.code == 0, made.stderr
    assert training("s") == {
        "steps": 2, "batch": 20, "seed": 0, "learning_rate": 0.01,
        "generator": "cnn", "objective": "mmd", "code": 5, "schedule": "constant",
        "recipe": "paper", "presets": ["mnist", "fashion-mnist"],
    }  # fmt: skip
    with np.load("s/images.npz") as images:
        assert images["x"].shape == (30, 28, 28)
        first = images["x"]
    saved = load_generator(Path("s"))
    assert isinstance(saved, SavedImageGenerator)
    assert isinstance(saved.generator, ConvolutionalGenerator)
    assert np.array_equal(saved.sample(30, seed=0)[0], first)


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        (["--recipe", "paper", "--objective", "whitened"], ("cnn", "whitened", 5)),
        (["--recipe", "paper", "--code", "7"], ("cnn", "mmd", 7)),
        (["--recipe", "paper", "--generator", "template"], ("template", "mmd", 0)),
        (["--generator", "cnn"], ("cnn", "whitened", 10)),
        (["--objective", "mmd"], ("template", "mmd", 0)),
    ],
    ids=str,
)
def test_each_part_is_an_option_of_its_own(
    dpntk: Command, of_digits: Path, options: list[str], parts: tuple[str, str, int]
) -> None:
    made = dpntk("generate", of_digits, *options, *BRIEF, "-o", "s")
    assert made.code == 0, made.stderr
    settings = training("s")
    assert (settings["generator"], settings["objective"], settings["code"]) == parts
    assert settings["recipe"] == ("paper" if "--recipe" in options else "")


def test_colour_images_come_out_of_a_residual_network(dpntk: Command, tmp_path: Path) -> None:
    images = np.random.default_rng(0).integers(0, 256, (40, 8, 8, 3), dtype=np.uint8)
    options, source = TangentOptions(width=5), SourceOptions(classes=2)
    embedding = embed((images, np.arange(40) % 2), options, source)
    release = unrecorded_release(embedding, PrivacyParameters(math.inf, not_private=True))
    write_release(release, tmp_path / "release.h5", own_key())
    made = dpntk("generate", "release.h5", "--generator", "resnet", *BRIEF, "-o", "s")
    assert made.code == 0, made.stderr
    assert training("s")["generator"] == "resnet"
    with np.load("s/images.npz") as written:
        assert written["x"].shape == (30, 8, 8, 3)
        first = written["x"]
    saved = load_generator(Path("s"))
    assert isinstance(saved, SavedImageGenerator)
    assert isinstance(saved.generator, ResidualGenerator)
    assert np.array_equal(saved.sample(30, seed=0)[0], first)


def test_the_paper_takes_it_for_colour() -> None:
    schema = ImageSchema(32, numbered(10), Origin.FORMAT, Origin.DECLARED, channels=3)
    feature_map = TangentOptions(preset="cifar-10-no-noise").draw(schema)
    chosen = PAPER.choices(schema, feature_map)
    assert (chosen["generator"], chosen["code"], chosen["steps"]) == ("resnet", 31, 20_000)
    assert PAPER.choices(released().schema, released().feature_map)["generator"] == "cnn"


def test_parts_have_the_usual_numbers_of_their_kind() -> None:
    for generator, objective, code in (
        ("template", "whitened", 0), ("cnn", "whitened", 10), ("mlp", "weighted", 10)
    ):  # fmt: skip
        settings = ComposedSettings(generator=generator)
        assert (settings.objective, settings.code) == (objective, code)


def test_what_is_not_said_stays_as_it_was(dpntk: Command, of_digits: Path) -> None:
    assert dpntk("generate", of_digits, *BRIEF, "-o", "s").code == 0
    assert training("s") == {"steps": 2, "batch": 20, "seed": 0, "learning_rate": 0.01}


def test_tables_as_printed(dpntk: Command, tmp_path: Path) -> None:
    options = TangentOptions(preset="adult")
    embedding = embed(adult_like(60), options, SourceOptions(schema=ADULT_LIKE))
    save_embedding(embedding, tmp_path / "embedding.h5")
    assert dpntk(*RELEASE).code == 0
    as_printed = chosen_settings(open_release(tmp_path / "release.h5"), {"recipe": "paper"})
    assert (as_printed.steps, as_printed.batch) == (50, 200)
    made = dpntk("generate", "release.h5", "--recipe", "paper", *BRIEF, "-o", "s")
    assert made.code == 0, made.stderr
    assert training("s") == {
        "steps": 2, "batch": 20, "seed": 0, "learning_rate": 0.01,
        "generator": "mlp", "objective": "mmd", "code": 11, "schedule": "constant",
        "recipe": "paper", "presets": ["adult"],
    }  # fmt: skip
    rows = csv.read_csv("s/table.csv")
    assert rows.num_rows == 30
    assert rows.column_names == adult_like(1).column_names
    saved = load_generator(Path("s"))
    assert isinstance(saved, SavedTableGenerator)
    assert isinstance(saved.model.generator, PerceptronGenerator)
    hidden = 3  # because there are categories
    assert len(saved.model.generator.network) == hidden + 1


@pytest.mark.parametrize("kind", ["images", "numeric columns"])
def test_pearl_takes_random_fourier_features(dpntk: Command, tmp_path: Path, kind: str) -> None:
    random = np.random.default_rng(0)
    source = SourceOptions(classes=2)
    data: Any = (random.integers(0, 256, (40, 8, 8), dtype=np.uint8), np.arange(40) % 2)
    if kind != "images":
        label = ADULT_LIKE.columns[-1]
        source = SourceOptions(schema=TableSchema((*ADULT_LIKE.columns[:2], label), label.name))
        data = adult_like(40).select(["n0", "n1", label.name])
    embedding = embed(data, FourierOptions(frequencies=20), source)
    release = unrecorded_release(embedding, PrivacyParameters(math.inf, not_private=True))
    write_release(release, tmp_path / "release.h5", own_key())
    made = dpntk("generate", "release.h5", "--objective", "pearl", *BRIEF, "-o", "s")
    assert made.code == 0, made.stderr
    assert training("s")["objective"] == "pearl"
    assert training("s")["schedule"] == "cosine"


def test_what_does_not_fit_gets_one_line_that_says_what_would(
    dpntk: Command, tmp_path: Path
) -> None:
    write_digits(tmp_path / "a.npz")
    write_digits(tmp_path / "small.npz", side=8)
    for data, preset, words in (
        ("a.npz", "cifar-10", "--preset mnist or fashion-mnist is for that"),
        ("small.npz", "mnist", "no preset is for that; the network itself is --arch fc_1l"),
        ("a.npz", "adult", "it is for a table of 14 columns, 2 classes; this is grey images"),
    ):
        made = dpntk("embed", data, "--classes", 10, "--preset", preset)
        assert made.code == 1
        said = made.stderr.splitlines()[-1]
        assert said.startswith(f"error: --preset {preset}: ")
        assert words in said
        assert not Path("embedding.h5").exists()
    assert dpntk("embed", "a.npz", "--classes", 10, "--width", 5).code == 0
    assert dpntk(*RELEASE).code == 0
    for kind in ("images", "table", "distilled set"):
        write_small_release(kind, tmp_path / f"{kind}.h5")
    for release, options, words in (
        ("release.h5", "--recipe paper", "is embedded with --preset mnist or fashion-mnist"),
        ("images.h5", "--recipe paper", "take --generator cnn --objective mmd"),
        ("table.h5", "--recipe paper", "take --generator mlp --objective mmd"),
        ("images.h5", "--generator mlp", "of images, which take template or cnn or resnet or gal"),
        ("table.h5", "--generator cnn", "of tables, which take knots or mlp"),
        ("table.h5", "--objective whitened", "it is weighted or mmd"),
        ("images.h5", "--code 3", "--code 3: it goes with --generator cnn"),
        ("images.h5", "--objective running", "gradients are too many .*: take whitened"),
        ("images.h5", "--objective pearl", "embed with --features rff"),
        ("table.h5", "--objective pearl", "of numeric columns alone"),
        ("distilled set.h5", "--recipe paper", "--recipe: .* nothing to train"),
    ):
        made = dpntk("generate", release, *options.split(), "-o", "s")
        refused(made)
        assert re.search(words, made.stderr), made.stderr
    again = dpntk("generate", "--from", "x", "--recipe", "paper")
    assert "--recipe is for training" in again.stderr
    assert not Path("s").exists()


def test_the_plain_loss_takes_the_network_alone(dpntk: Command, tmp_path: Path) -> None:
    embedding = embed(adult_like(60), TangentOptions(width=5), SourceOptions(schema=ADULT_LIKE))
    save_embedding(embedding, tmp_path / "embedding.h5")
    assert dpntk(*RELEASE).code == 0
    refused(dpntk("generate", "release.h5", "--objective", "mmd"), "embed with --marginals 0")
    made = dpntk("generate", "release.h5", "--generator", "mlp", *BRIEF, "-o", "s")
    assert made.code == 0, made.stderr
    assert training("s")["objective"] == "weighted"
