"""The same on every device: bits of sums, and the whole way from records to generated ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from dpntk.embed import save_schema
from dpntk.embed.exact.grid import DEFAULT_CAPACITY, Grid
from dpntk.embed.sums.accumulate import ClassSums
from tests.conftest import Command
from tests.embed.sums.test_round_trips import MAPS, records_of
from tests.helpers.devices import every_device
from tests.helpers.modules import write_convolutions
from tests.helpers.tables import PEOPLE, people


@every_device
@pytest.mark.parametrize("name", MAPS)
def test_sums_have_the_bits_of_the_processors(name: str, device: torch.device) -> None:
    schema, options = MAPS[name]
    feature_map, classes = options.draw(schema), len(schema.classes)
    grid = Grid.for_capacity(schema.levels, DEFAULT_CAPACITY)
    here = ClassSums(feature_map, classes, grid)
    there = ClassSums(feature_map, classes, grid, device)
    for count in (50, 9, 30):  # in several chunks, which are on their way at the same time
        records, labels = records_of(schema, count)
        here.add(records, labels)
        there.add(records, labels)
    assert np.array_equal(there.sums, here.sums)
    assert here.sums.any()


@every_device
@pytest.mark.parametrize(
    "options",
    [
        ("--width", 5),
        ("--width", 5, "--pixels", 0.5),
        ("--features", "pixels"),
        ("--arch", "cnn_2l", "--width", "3_4"),
        ("--features", "rff", "--frequencies", 9),
        ("--features", "perceptual", "--module-is-public", "--module", "m.pt"),
    ],
    ids=str,
)
def test_images_go_the_whole_way(
    dpntk: Command, folder: Path, tmp_path: Path, device: torch.device, options: tuple[object, ...]
) -> None:
    if "perceptual" in options:
        write_convolutions(tmp_path / "m.pt", channels=3)
    module = ("--module", "m.pt") if "perceptual" in options else ()
    made = dpntk("embed", folder, *options, "--device", device)
    assert made.code == 0, made.stderr
    assert dpntk("release", "--eps", 5, "--delta", 1e-3).code == 0
    made = dpntk("generate", "--steps", 3, "-n", 30, "--device", device, *module)
    assert made.code == 0, made.stderr
    with np.load(tmp_path / "synthetic" / "images.npz") as archive:
        assert archive["x"].shape == (30, 8, 8)


@every_device
@pytest.mark.parametrize("options", [("--width", 5), ("--features", "hermite")], ids=str)
def test_tables_go_the_whole_way(
    dpntk: Command,
    tmp_path: Path,
    device: torch.device,
    options: tuple[object, ...],
    hasty_rows: None,
) -> None:
    save_schema(PEOPLE, tmp_path / "schema.toml")
    (tmp_path / "a.csv").write_text(people(60))
    made = dpntk("embed", "a.csv", "--schema", "schema.toml", *options, "--device", device)
    assert made.code == 0, made.stderr
    assert dpntk("release", "--eps", 5, "--delta", 1e-3).code == 0
    made = dpntk("generate", "--steps", 3, "-n", 30, "--device", device)
    assert made.code == 0, made.stderr
    assert len((tmp_path / "synthetic" / "table.csv").read_text().splitlines()) == 31


@every_device
@pytest.mark.parametrize(
    "parts",
    [
        ("--generator", "gallery", "--objective", "running"),
        ("--generator", "resnet", "--objective", "mmd"),
        ("--generator", "cnn", "--objective", "whitened"),
        ("--objective", "pearl"),
        ("--points", 2),
    ],
    ids=str,
)
def test_whatever_makes_images_is_trained_there(
    dpntk: Command, folder: Path, tmp_path: Path, device: torch.device, parts: tuple[object, ...]
) -> None:
    assert dpntk("embed", folder, "--features", "rff", "--frequencies", 9).code == 0
    assert dpntk("release", "--eps", 5, "--delta", 1e-3).code == 0
    count = () if "--points" in parts else ("-n", 6)
    made = dpntk("generate", "--steps", 3, "--batch", 12, *count, "--device", device, *parts)
    assert made.code == 0, made.stderr
    with np.load(tmp_path / "synthetic" / "images.npz") as archive:
        assert archive["x"].shape == (6, 8, 8)


@every_device
@pytest.mark.parametrize(
    "parts",
    [("--generator", "mlp", "--objective", "mmd"), ("--objective", "mmd")],
    ids=str,
)
def test_whatever_makes_rows_is_trained_there(
    dpntk: Command, tmp_path: Path, device: torch.device, parts: tuple[object, ...]
) -> None:
    save_schema(PEOPLE, tmp_path / "schema.toml")
    (tmp_path / "a.csv").write_text(people(60))
    network = ("--width", 5, "--marginals", 0)
    assert dpntk("embed", "a.csv", "--schema", "schema.toml", *network).code == 0
    assert dpntk("release", "--eps", 5, "--delta", 1e-3).code == 0
    made = dpntk("generate", "--steps", 3, "--batch", 20, "-n", 6, "--device", device, *parts)
    assert made.code == 0, made.stderr
    assert len((tmp_path / "synthetic" / "table.csv").read_text().splitlines()) == 7
