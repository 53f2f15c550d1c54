"""What several tests share: a small feature map, small data sets, and the command line."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import hypothesis
import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image
from threadpoolctl import threadpool_limits

from dpntk.common.cli.app import run
from dpntk.common.features.ntk.architectures import fc_1l
from dpntk.common.features.ntk.map import TangentFeatures
from dpntk.common.features.ntk.scattering import Pixels
from dpntk.common.schema.image import ImageSchema
from dpntk.common.schema.origin import Origin
from dpntk.common.storage import sandbox
from dpntk.embed import Embedding, save_embedding
from dpntk.embed.exact.grid import DEFAULT_CAPACITY, Grid
from dpntk.embed.sums.accumulate import ClassSums
from dpntk.release import PrivacyParameters, Release
from dpntk.release.publishing.pipeline import unrecorded_release
from tests.helpers.object_storage import empty_bucket, serving
from tests.helpers.processes import (
    embed_arguments,
    embed_in_a_child,
    parse_here,
    write_records,
)

# Tests assert nothing about time, and another program may be busy.
hypothesis.settings.register_profile("untimed", deadline=None)
hypothesis.settings.load_profile("untimed")

SIDE, CLASSES = 8, 3

# The networks here are tiny: more threads would only wait for one another on a busy machine.
torch.set_num_threads(1)
os.environ["OMP_NUM_THREADS"] = "1"
threadpool_limits(1)  # what has been loaded already, and looked at the environment then
gc.disable()  # until all tests are collected: what is loaded for them stays


def pytest_collection_finish() -> None:
    """From here on garbage is collected, but never looked for among what was there before."""
    gc.freeze()
    gc.set_threshold(10_000)
    gc.enable()


@dataclass(frozen=True)
class Outcome:
    """What a command did."""

    code: int
    stdout: str
    stderr: str


Command = Callable[..., Outcome]


def refused(outcome: Outcome, *words: str) -> None:
    """Assert that a command failed with one clear line that has these words in it."""
    assert outcome.code == 1
    assert outcome.stderr.startswith("error: ")
    assert outcome.stderr.count("\n") == 1
    for word in words:
        assert word in outcome.stderr


@pytest.fixture(autouse=True)
def configuration(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """A configuration folder of its own for every test: the user's keys are not touched."""
    home = tmp_path_factory.mktemp("configuration")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home))
    return home / "dpntk"


@pytest.fixture(autouse=True, scope="session")
def nothing_waits_for_the_disk() -> Iterator[None]:
    """A power cut is the one thing that nobody tests; killed processes leave files as they are."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        yield


@pytest.fixture(autouse=True)
def parsers_run_here(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where their processes are not what a test is about: to start them takes longest."""
    if not {"attacks", "storage"} & set(request.path.parts):
        monkeypatch.setattr(sandbox, "parse_in_child", parse_here)


@pytest.fixture
def dpntk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Command:
    """Run `dpntk` in this process, in a temporary folder.

    Classifiers of images learn for a few steps: tests of how well they learn do without this.
    """
    monkeypatch.chdir(tmp_path)

    def command(*arguments: object) -> Outcome:
        if "evaluate" in arguments:
            for steps in ("classifiers._MLP_STEPS", "classifiers._CNN_STEPS", "distilled._STEPS"):
                monkeypatch.setattr(f"dpntk.evaluate.images.{steps}", 5)
        capfd.readouterr()
        code = run([str(argument) for argument in arguments])
        captured = capfd.readouterr()
        return Outcome(code, captured.out, captured.err)

    return command


@pytest.fixture
def hasty_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are chosen among few and arranged for a few rounds: where nothing depends on it."""
    make_hasty(monkeypatch)


def make_hasty(patch: pytest.MonkeyPatch) -> None:
    """The same, for as long as the patch holds."""
    patch.setattr("dpntk.generate.tables.reweighting._POOL", 2000)
    patch.setattr("dpntk.generate.tables.moves.swap._MOST_ROUNDS", 20)
    patch.setattr("dpntk.generate.tables.moves.resample._ROUNDS", 20)
    patch.setattr("dpntk.generate.tables.energies.interactions._ROWS", 2000)


@pytest.fixture
def two_kinds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two classifiers of rows, one of either view, so that evaluating takes no time."""
    few = ("logistic regression", "decision tree")
    monkeypatch.setattr(
        "dpntk.evaluate.tables.utility.installed", lambda kinds: {name: kinds[name] for name in few}
    )


@pytest.fixture(scope="session")
def object_storage() -> Iterator[str]:
    """A server that speaks S3's protocol: its address."""
    with pytest.MonkeyPatch.context() as patch, serving(patch) as address:
        yield address


@pytest.fixture
def bucket(object_storage: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of an empty bucket, for whose credentials the environment has to be asked.

    Sessions end with the test: a process that a later one forks would wait to end them, for a
    thread that it does not have.
    """
    yield empty_bucket(object_storage, monkeypatch.setenv)
    gc.collect()


@pytest.fixture
def dpntk_process() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run the installed `dpntk` as a user does."""
    program = Path(sys.executable).parent / "dpntk"

    def command(*arguments: object, cwd: Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [program, *map(str, arguments)], cwd=cwd, capture_output=True, text=True, check=False
        )

    return command


@pytest.fixture
def feature_map() -> TangentFeatures:
    """A narrow network for images of 8x8 pixels in 3 classes."""
    return TangentFeatures.draw(Pixels(SIDE * SIDE), fc_1l(13), outputs=CLASSES, levels=255, seed=3)


@pytest.fixture
def grid() -> Grid:
    """The grid that `embed` takes by default."""
    return Grid.for_capacity(255, DEFAULT_CAPACITY)


def draw_records(
    count: int, seed: int = 0, size: int = SIDE * SIDE
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Random records, the first ones degenerate: all zero, all one, one bright pixel."""
    random = np.random.default_rng(seed)
    records = random.integers(0, 256, (count, size), dtype=np.uint8)
    records[random.random(records.shape) < 0.6] = 0
    records[:3] = 0
    records[1] = 255
    records[2, 9] = 255
    return records, random.integers(0, CLASSES, count)


@pytest.fixture
def embedding(feature_map: TangentFeatures, grid: Grid) -> Embedding:
    """Exact sums over 200 random records."""
    records, labels = draw_records(200)
    sums = ClassSums(feature_map, CLASSES, grid)
    sums.add(records, labels)
    schema = ImageSchema(SIDE, ("a", "b", "c"), Origin.FORMAT, Origin.DECLARED)
    return Embedding(sums.sums, sums.counts, schema, feature_map, grid)


@pytest.fixture(scope="session")
def many_records(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An archive of 60,000 random images."""
    return write_records(tmp_path_factory.mktemp("records") / "data.npz")


@pytest.fixture(scope="session")
def undisturbed(many_records: Path) -> bytes:
    """The embedding file that one process makes of them if nobody disturbs it."""
    output = many_records.with_name("undisturbed.h5")
    assert embed_in_a_child(embed_arguments(many_records, output)) == 0
    return output.read_bytes()


def make_small_embedding() -> Embedding:
    """An embedding of 67 numbers, to be tried byte by byte."""
    tiny = TangentFeatures.draw(Pixels(SIDE * SIDE), fc_1l(1), outputs=1, levels=255, seed=0)
    grid = Grid.for_capacity(255, DEFAULT_CAPACITY)
    sums = ClassSums(tiny, 1, grid)
    records, _ = draw_records(20)
    sums.add(records, np.zeros(20, dtype=np.int64))
    schema = ImageSchema(SIDE, ("a",), Origin.FORMAT, Origin.DECLARED)
    return Embedding(sums.sums, sums.counts, schema, tiny, grid)


def make_small_release() -> Release:
    """A release of it."""
    return unrecorded_release(make_small_embedding(), PrivacyParameters(1.0, 1e-3))


@pytest.fixture
def small_release() -> Release:
    """The release that `make_small_release` makes."""
    return make_small_release()


@pytest.fixture
def embedding_file(embedding: Embedding, tmp_path: Path) -> Path:
    """The same in a file."""
    where = tmp_path / "embedding.h5"
    save_embedding(embedding, where)
    return where


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of class folders with 30 PNG images of 8x8 pixels."""
    records, labels = draw_records(30)
    root = tmp_path / "images"
    for index, (record, label) in enumerate(zip(records, labels.tolist(), strict=True)):
        part = root / "abc"[label]
        part.mkdir(parents=True, exist_ok=True)
        Image.fromarray(record.reshape(SIDE, SIDE)).save(part / f"{index:03}.png")
    return root
