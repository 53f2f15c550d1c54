"""Perceptual features: right, the same to the bit, of one module alone, and of no other file."""

from __future__ import annotations

import io
import json
import math
import os
import pickle
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from numpy.typing import NDArray
from torch import Tensor, nn

from dpntk.common.adjacency import Adjacency
from dpntk.common.errors import DataError, MergeError, ModuleError, SchemaError
from dpntk.common.features.base import sensitivity, weights_digest
from dpntk.common.features.perceptual import PerceptualFeatures, probe_record
from dpntk.common.features.registry import feature_map_from_spec
from dpntk.common.features.torchscript import PublicModule, load_module, module_for
from dpntk.embed import PerceptualOptions, embed, merge, save_embedding
from dpntk.embed.exact.grid import Grid
from dpntk.embed.sums.accumulate import ClassSums
from dpntk.generate.kernels.registry import kernel_of
from dpntk.release import open_release
from tests.conftest import CLASSES, SIDE, Command, draw_records
from tests.helpers import modules
from tests.helpers.modules import Convolutions, write_convolutions, write_module
from tests.helpers.sums import require_the_noise_to_cover

SHAPE = (1, SIDE, SIDE)
EMBED = ("--features", "perceptual", "--module-is-public", "--module")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "module.pt"


@pytest.fixture
def network(file: Path) -> Convolutions:
    return write_convolutions(file)


@pytest.fixture
def module(network: Convolutions, file: Path) -> PublicModule:
    return load_module(file, SHAPE)


class Viewed(Convolutions):
    """Looks at numbers as if they lay one channel behind another, and fails where they do not."""

    def forward(self, x: Tensor) -> Tensor:
        said: Tensor = self.layers(x)
        return said.view(len(said), -1)


class Deep(Convolutions):
    """Has weights of five dimensions, which know no such order."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(1, 1, 1, 1, 1))

    def forward(self, x: Tensor) -> Tensor:
        said: Tensor = self.layers(x)
        return said * self.scale[0]


@pytest.mark.parametrize(("kind", "beside"), [(Convolutions, True), (Viewed, False), (Deep, False)])
def test_channels_lie_side_by_side_for_batches_where_a_module_can_have_it_so(
    kind: type[nn.Module], beside: bool, file: Path
) -> None:
    write_module(kind(), file)
    before, after = load_module(file, SHAPE), load_module(file, SHAPE).to(torch.device("cpu"))
    weights = [weight for weight in after._module.parameters() if weight.dim() == 4]
    assert weights
    assert all(one.is_contiguous(memory_format=torch.channels_last) for one in weights) == beside
    records = torch.from_numpy(draw_records(5)[0]).float() / 255
    assert torch.allclose(after(records), before(records), atol=1e-5)


def by_definition(network: nn.Module, records: NDArray[np.uint8]) -> NDArray[np.float64]:
    images = torch.from_numpy(records).double().view(-1, *SHAPE) / 255
    with torch.no_grad():
        said = network.double()(images).flatten(1).numpy()
    features: NDArray[np.float64] = said / np.linalg.norm(said, axis=1, keepdims=True)
    return features


def beside_squares(features: NDArray[np.float64], weight: float) -> NDArray[np.float64]:
    """By their definition, of features of length one."""
    squares = features**2
    squares /= np.linalg.norm(squares, axis=1, keepdims=True)
    return np.hstack([np.sqrt(1 - weight**2) * features, weight * squares])


def sums_of(
    module: PublicModule,
    grid: Grid,
    records: NDArray[np.uint8],
    labels: NDArray[np.int64],
    **changed: Any,  # noqa: ANN401 - attributes of the map
) -> NDArray[np.int64]:
    feature_map = replace(module.feature_map, **changed)
    sums = ClassSums(feature_map, CLASSES, grid, module=module)
    for start in range(0, len(records), sums.chunk_size):
        part = slice(start, start + sums.chunk_size)
        sums.add(records[part], labels[part])
    return sums.sums


def test_class_sums_equal_the_definition(
    module: PublicModule, network: Convolutions, grid: Grid
) -> None:
    records, labels = draw_records(50)
    expected = by_definition(network, records).T @ np.eye(CLASSES)[labels]
    difference = np.abs(sums_of(module, grid, records, labels) * grid.unit - expected)
    assert difference.max() < 50 * 1e-6  # the module computes in float32


WITH_SQUARES: dict[str, Any] = {"squares": 0.6}
RECTIFIED: dict[str, Any] = {"squares": 0.6, "rectified": True}


@pytest.mark.parametrize("capacity", [2**20, 2 * 10**11])
@pytest.mark.parametrize("changed", [{}, WITH_SQUARES, RECTIFIED], ids=["", "squares", "rectified"])
def test_integer_features_are_no_longer_than_one_and_not_much_shorter(
    module: PublicModule, capacity: int, changed: dict[str, Any]
) -> None:
    """Also on a grid so coarse that terms rounded to the nearest unit would make some longer."""
    grid = Grid.for_capacity(255, capacity)
    records, labels = draw_records(20)
    for record, label in zip(records, labels, strict=True):
        feature = sums_of(module, grid, record[None], label[None], **changed)
        squared = sum(value * value for value in feature.ravel().tolist())
        assert 0.9999 * grid.units_per_one**2 <= squared <= grid.units_per_one**2
        main, squares = np.split(feature[:, label], [module.feature_map.outputs])
        if changed:
            shares = [sum(value * value for value in part.ravel().tolist()) / squared
                      for part in (main, squares)]  # fmt: skip
            assert shares == pytest.approx([0.64, 0.36], abs=1e-4)
            assert squares.min() >= 0
        assert (feature.min() >= 0) == (changed == RECTIFIED)


@pytest.mark.parametrize("rectified", [False, True])
def test_squares_equal_the_definition(
    module: PublicModule, network: Convolutions, grid: Grid, rectified: bool
) -> None:
    records, labels = draw_records(30)
    said = by_definition(network, records)
    if rectified:
        said = np.maximum(said, 0)
        said /= np.linalg.norm(said, axis=1, keepdims=True)
    expected = beside_squares(said, 0.6).T @ np.eye(CLASSES)[labels]
    sums = sums_of(module, grid, records, labels, squares=0.6, rectified=rectified)
    assert np.abs(sums * grid.unit - expected).max() < 30 * 1e-6


@pytest.mark.parametrize("changed", [{}, WITH_SQUARES, RECTIFIED], ids=["", "squares", "rectified"])
@pytest.mark.parametrize("scale", [1.0, 3e-45, 3.4e38])
def test_what_a_module_says_in_numbers_of_any_size_is_covered(
    file: Path, grid: Grid, changed: dict[str, Any], scale: float
) -> None:
    """From the least that float32 holds to the largest, and opposite of any two images."""
    module = load_module(write_module(modules.Centred(scale), file), SHAPE)
    records = np.random.default_rng(0).integers(0, 256, (9, SIDE * SIDE)).astype(np.uint8)
    records[:5] = 0
    records[1:3], records[3, :30], records[4, 30:] = 255, 255, 255
    records[2, 7] = 0
    label = np.zeros(1, dtype=np.int64)
    written = [sums_of(module, grid, each[None], label, **changed)[:, 0] for each in records]
    feature_map = replace(module.feature_map, **changed)
    least = require_the_noise_to_cover(feature_map, grid, [row.tolist() for row in written])
    assert (least < 0) != feature_map.nonnegative


@pytest.mark.parametrize("scale", [1e-38, 1e18])
def test_numbers_of_any_size_have_squares(file: Path, grid: Grid, scale: float) -> None:
    """Their squares, and squares of these, are beyond what float32 holds."""
    said = load_module(write_module(modules.Scaled(scale), file), SHAPE)
    plain = load_module(write_module(modules.Scaled(1.0), file), SHAPE)
    records, labels = draw_records(5)
    one, other = (sums_of(m, grid, records, labels, **WITH_SQUARES) for m in (said, plain))
    assert np.abs(one - other).max() < 1e-5 * grid.units_per_one


def test_order_grouping_and_threads_do_not_change_a_bit(module: PublicModule, grid: Grid) -> None:
    records, labels = draw_records(101)
    order = np.random.default_rng(1).permutation(len(records))
    whole = sums_of(module, grid, records, labels)
    assert np.array_equal(whole, sums_of(module, grid, records[order], labels[order]))
    parts = [
        sums_of(module, grid, records[part], labels[part]) for part in (slice(0, 7), slice(7, None))
    ]
    assert np.array_equal(whole, parts[0] + parts[1])
    one_by_one = sum(
        sums_of(module, grid, record[None], label[None])
        for record, label in zip(records, labels, strict=True)
    )
    assert np.array_equal(whole, one_by_one)
    torch.set_num_threads(2)
    try:
        assert np.array_equal(whole, sums_of(module, grid, records, labels))
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(1)


def test_memory_that_a_module_writes_to_holds_no_other_record(file: Path) -> None:
    """Neither what it gives back is overwritten later, nor what it gets is anybody else's."""
    module = load_module(write_module(modules.Reusing(), file), SHAPE)
    records = torch.rand(5, SIDE * SIDE, generator=torch.Generator().manual_seed(0))
    given = records.clone()
    assert torch.equal(module.one_by_one(given), records)
    assert torch.equal(given, records)


def test_every_record_has_the_module_to_itself(
    module: PublicModule, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Alone in its batch, on one thread, in code that is not changed as it runs."""
    run, seen = module._run, []

    def watched(record: Tensor) -> Tensor:
        as_written = not torch._C._get_graph_executor_optimize()
        exact = torch.are_deterministic_algorithms_enabled()
        seen.append((len(record), torch.get_num_threads(), exact, as_written))
        return run(record)

    monkeypatch.setattr(module, "_run", watched)
    torch.set_num_threads(2)
    try:
        module.one_by_one(torch.zeros(5, SIDE * SIDE))
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(1)
    assert seen == [(1, 1, True, True)] * 7  # the probe comes first and last
    assert not torch.are_deterministic_algorithms_enabled()


def test_features_are_those_of_the_map_s_own_module(
    module: PublicModule, tmp_path: Path, grid: Grid
) -> None:
    other = load_module(write_module(modules.Centred(), tmp_path / "other.pt"), SHAPE)
    for wrong in (other, None):
        with pytest.raises(SchemaError, match="the feature map is computed by a module"):
            ClassSums(module.feature_map, CLASSES, grid, module=wrong)


def test_a_module_that_was_opened_again_gives_the_same_bits(
    module: PublicModule, file: Path, grid: Grid
) -> None:
    records, labels = draw_records(20)
    again = module_for(module.feature_map, file)
    assert again is not None
    assert np.array_equal(
        sums_of(module, grid, records, labels), sums_of(again, grid, records, labels)
    )


def test_opposite_features_reach_the_sensitivity_and_do_not_exceed_it(
    file: Path, grid: Grid
) -> None:
    module = load_module(write_module(modules.Centred(), file), SHAPE)
    dark, bright = np.zeros((2, 1, SIDE * SIDE), dtype=np.uint8)
    bright += 255
    label = np.zeros(1, dtype=np.int64)
    change = sums_of(module, grid, bright, label) - sums_of(module, grid, dark, label)
    squared = sum(value * value for value in change.ravel().tolist())
    bound = sensitivity(module.feature_map, Adjacency.REPLACE_ONE, count_weight=0.25)
    limit = int(bound * grid.units_per_one) ** 2
    assert 0.9999 * limit < squared <= limit


def test_rectified_features_have_the_smaller_sensitivity(tmp_path: Path, grid: Grid) -> None:
    """Each of two images speaks where the other is silent: as far apart as such features can be."""
    module = load_module(write_module(modules.Centred(), tmp_path / "m.pt"), SHAPE)
    feature_map = replace(module.feature_map, **RECTIFIED)
    assert feature_map.nonnegative
    one, other = np.zeros((2, 1, SIDE * SIDE), dtype=np.uint8)
    one[0, :30], other[0, 30:] = 255, 255
    label = np.zeros(1, dtype=np.int64)
    sums = [sums_of(module, grid, record, label, **RECTIFIED) for record in (one, other)]
    squared = sum(value * value for value in (sums[0] - sums[1]).ravel().tolist())
    assert sensitivity(feature_map, Adjacency.REPLACE_ONE, count_weight=0) == math.sqrt(2)
    assert 0.9999 * 2 * grid.units_per_one**2 < squared <= 2 * grid.units_per_one**2


def test_squares_take_their_length_from_the_rest(tmp_path: Path, grid: Grid) -> None:
    module = load_module(write_module(modules.Centred(), tmp_path / "m.pt"), SHAPE)
    records = np.array([[0] * 64, [255] * 64, [*range(64)]], dtype=np.uint8)
    for record in records:
        feature = sums_of(module, grid, record[None], np.zeros(1, dtype=np.int64), **WITH_SQUARES)
        assert sum(value * value for value in feature.ravel().tolist()) <= grid.units_per_one**2


@pytest.mark.parametrize("changed", [{}, WITH_SQUARES, RECTIFIED], ids=["", "squares", "rectified"])
def test_nothing_said_is_the_feature_zero(file: Path, grid: Grid, changed: dict[str, Any]) -> None:
    module = load_module(write_module(modules.Blind(), file), SHAPE)
    feature_map = replace(module.feature_map, **changed)
    dark = np.zeros((1, SIDE * SIDE), dtype=np.uint8)
    assert not sums_of(module, grid, dark, np.zeros(1, dtype=np.int64), **changed).any()
    # and the generator can leave it
    records = torch.zeros(1, 2, SIDE * SIDE)
    records[0, 0, 5] = 1
    records.requires_grad_()
    kernel = kernel_of(feature_map, torch.device("cpu"), module=module)
    features = kernel.features(records)
    assert torch.allclose(features.gram(), torch.tensor([[[1.0, 0.0], [0.0, 0.0]]]))
    features.inner(torch.ones(1, feature_map.dimension)).sum().backward()
    assert records.grad is not None
    assert records.grad.isfinite().all()


@pytest.mark.parametrize("squares", [0.0, 0.6])
def test_the_generator_sees_the_same_features(
    module: PublicModule, network: Convolutions, squares: float
) -> None:
    records = draw_records(12)[0]
    feature_map = replace(module.feature_map, squares=squares)
    kernel = kernel_of(feature_map, torch.device("cpu"), module=module)
    images = (torch.from_numpy(records).float().view(3, 4, -1) / 255).requires_grad_()
    features = kernel.features(images)
    expected = by_definition(network, records)
    expected = beside_squares(expected, squares) if squares else expected
    phi = torch.from_numpy(expected).float().view(3, 4, -1)
    assert torch.allclose(features.gram(), phi @ phi.mT, atol=1e-5)
    matrix = torch.randn(3, feature_map.dimension)
    inner = features.inner(matrix)
    assert torch.allclose(inner, (phi @ matrix[..., None])[..., 0], atol=1e-4)
    (gradient,) = torch.autograd.grad(inner.sum(), images)
    assert gradient.norm() > 0.01


def test_the_probe_is_the_feature_of_the_probe_record(
    module: PublicModule, network: Convolutions
) -> None:
    probe = probe_record(SHAPE, 255)
    assert probe[:6].tolist() == [0, 1, 3, 6, 10, 15]
    assert probe.max() <= 255
    expected = by_definition(network, probe.astype(np.uint8)[None])[0]
    assert np.abs(module.feature_map.probe - expected).max() < 1e-6


@pytest.mark.parametrize("changed", [{}, WITH_SQUARES, RECTIFIED], ids=["", "squares", "rectified"])
def test_it_travels_in_the_release_without_the_module(
    module: PublicModule, changed: dict[str, Any]
) -> None:
    feature_map = replace(module.feature_map, **changed)
    spec, weights = feature_map.spec(), feature_map.weights()
    again = feature_map_from_spec(spec, weights)
    assert weights_digest(again) == weights_digest(feature_map)
    assert again.spec() == spec
    longer = {"probe": np.append(feature_map.probe, np.float32(0))}
    for other, kept in (
        ({**spec, "module": "0" * 63}, weights),
        ({**spec, "module": 5}, weights),
        ({**spec, "shape": [1, SIDE, SIDE, 1]}, weights),
        ({**spec, "shape": [1, SIDE, 2.0]}, weights),
        ({**spec, "shape": [1 << 12, 1 << 12, 2]}, weights),
        ({**spec, "levels": True}, weights),
        ({**spec, "levels": None}, weights),
        ({**spec, "run": "me"}, weights),
        (spec, {}),
        (spec, longer),
        (spec, {"probe": feature_map.probe.astype(np.float64)}),
        (spec, {"probe": feature_map.probe * np.float32(2)}),
        (spec, {"probe": feature_map.probe * np.float32("nan")}),
        (spec, {**weights, "module": feature_map.probe}),
    ):
        with pytest.raises(SchemaError, match=r"^feature map: "):
            feature_map_from_spec(other, kept)
    wrong: dict[str, list[object]] = {
        "squares": [0.0, 1.0, -0.1, 1, None, "0.6"], "rectified": [False, 1, None],
    }  # fmt: skip
    for name, value in ((name, value) for name, values in wrong.items() for value in values):
        with pytest.raises(SchemaError, match=r"^feature map: "):
            feature_map_from_spec({**spec, name: value}, weights)


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (modules.Drawing, "draws random numbers"),
        (modules.Counting, "does not say the same twice"),
        (modules.Mixing, "depends on the others in the batch"),
        (modules.Growing, "depends on the others in the batch"),
        (modules.Deaf, "no gradients go through it"),
        (modules.Picky, "depends on the image"),
        (modules.Paired, "does not return one tensor"),
        (modules.Summing, "a row for each image is needed"),
        (modules.Coloured, "it fails on float32 values of shape (1, 1, 8, 8)"),
    ],
)
def test_modules_that_cannot_serve_are_refused(
    dpntk: Command, folder: Path, file: Path, made: Callable[[], nn.Module], message: str
) -> None:
    refused = dpntk("embed", folder, *EMBED, write_module(made(), file))
    assert refused.code == 1
    assert message in one_line(refused.stderr)
    assert not Path("embedding.h5").exists()


def test_a_module_that_changes_later_is_noticed(
    module: PublicModule, grid: Grid, monkeypatch: pytest.MonkeyPatch
) -> None:
    records, labels = draw_records(5)
    run, calls = module._run, iter(range(100))

    def changing(record: torch.Tensor) -> torch.Tensor:
        return run(record) * (1.0 if next(calls) < 4 else 1.0 + 2**-20)

    monkeypatch.setattr(module, "_run", changing)
    with pytest.raises(ModuleError, match="does not say the same twice"):
        sums_of(module, grid, records, labels)


def test_a_module_is_named_and_said_to_be_public(
    module: PublicModule, folder: Path, file: Path
) -> None:
    with pytest.raises(SchemaError, match="features need their module"):
        embed(folder, module.feature_map)
    with pytest.raises(SchemaError, match="name the module's file"):
        embed(folder, PerceptualOptions())
    with pytest.raises(SchemaError, match="add module_is_public=True"):
        embed(folder, PerceptualOptions(module=file))


def test_shards_are_merged_if_the_module_computed_the_same(
    module: PublicModule, folder: Path, file: Path, tmp_path: Path
) -> None:
    whole = embed(folder, PerceptualOptions(module=file, module_is_public=True))
    records, labels = draw_records(7, seed=5)
    shard = replace(
        whole,
        sums=sums_of(module, whole.grid, records, labels),
        counts=np.bincount(labels, minlength=CLASSES),
    )
    probe = module.feature_map.probe.copy()
    probe[3] = np.nextafter(probe[3], np.float32(1))
    elsewhere = replace(shard, feature_map=replace(module.feature_map, probe=probe))
    paths = [tmp_path / name for name in ("whole.h5", "shard.h5", "elsewhere.h5")]
    for embedding, path in zip((whole, shard, elsewhere), paths, strict=True):
        save_embedding(embedding, path)
    assert np.array_equal(merge(paths[:2]).sums, whole.sums + shard.sums)
    with pytest.raises(MergeError, match="the module computes something else here"):
        merge([paths[0], paths[2]])


def test_what_is_not_finite_is_refused(folder: Path, file: Path, grid: Grid) -> None:
    write_module(modules.Dividing(), file)
    module = load_module(file, SHAPE)
    dark = np.zeros((1, SIDE * SIDE), dtype=np.uint8)
    with pytest.raises(DataError, match="of a record is not finite"):
        sums_of(module, grid, dark, np.zeros(1, dtype=np.int64))
    with pytest.raises(DataError, match="of a record is not finite"):
        embed(folder, PerceptualOptions(module=file, module_is_public=True))


class Evil:
    """Makes a file when it is unpickled."""

    def __reduce__(self) -> tuple[Callable[[str], None], tuple[str]]:
        return os.mkdir, ("taken-over",)


def in_an_archive(content: bytes, file: Path) -> bytes:
    """A module's archive with another pickle in it."""
    write_convolutions(file)
    made = io.BytesIO()
    with zipfile.ZipFile(file) as archive, zipfile.ZipFile(made, "w") as other:
        for name in archive.namelist():
            kept = archive.read(name)
            other.writestr(name, content if name.endswith("/data.pkl") else kept)
    return made.getvalue()


def saved_tensors() -> bytes:
    made = io.BytesIO()
    torch.save({"weight": torch.ones(3)}, made)
    return made.getvalue()


def a_zip() -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr("readme.txt", "not a module")
    return made.getvalue()


HOSTILE: dict[str, Callable[[Path], bytes]] = {
    "empty": lambda file: b"",
    "noise": lambda file: bytes(range(256)) * 64,
    "pickle": lambda file: pickle.dumps(Evil(), protocol=2),
    "pickle in an archive": lambda file: in_an_archive(pickle.dumps(Evil(), protocol=2), file),
    "legacy tensors": lambda file: saved_tensors(),
    "zip": lambda file: a_zip(),
    "cut short": lambda file: in_an_archive(b"\x80\x02N.", file)[:-200],
    "a module that is nothing": lambda file: in_an_archive(b"\x80\x02N.", file),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_files_that_are_no_modules_get_one_line(
    dpntk: Command, folder: Path, file: Path, name: str
) -> None:
    file.write_bytes(HOSTILE[name](file))
    refused = dpntk("embed", folder, *EMBED, file)
    assert refused.code == 1
    assert "module.pt: not a TorchScript archive" in one_line(refused.stderr)
    assert not Path("embedding.h5").exists()
    assert not Path("taken-over").exists()


def test_options_that_do_not_fit_get_one_line(
    dpntk: Command, folder: Path, file: Path, network: Convolutions
) -> None:
    for options, message in (
        (["--features", "perceptual"], "name the module's file with --module FILE"),
        (["--features", "perceptual", "--module", file], "add --module-is-public if"),
        (["--module", file], "it goes with --features perceptual, not ntk"),
        (["--features", "rff", "--module-is-public"], "goes with --features perceptual, not rff"),
        ([*EMBED, file, "--width", "5"], "--width 5: it goes with --features ntk, not perceptual"),
        (["--squares", "0.5"], "--squares 0.5: it goes with --features perceptual, not ntk"),
        (["--features", "rff", "--rectified"], "--rectified: it goes with --features perceptual"),
        ([*EMBED, "missing.pt"], "missing.pt: there is no such file"),
    ):
        refused = dpntk("embed", folder, *options)
        assert refused.code == 1
        assert message in one_line(refused.stderr)
        assert not Path("embedding.h5").exists()


def test_the_whole_path_with_it(dpntk: Command, folder: Path, tmp_path: Path) -> None:
    write_convolutions(tmp_path / "m.pt", channels=3)
    write_convolutions(tmp_path / "other.pt", channels=3, seed=1)
    embedded = dpntk("embed", folder, *EMBED, "m.pt")
    assert embedded.code == 0, embedded.stderr
    assert dpntk("release", "--eps", "5", "--delta", "1e-3").code == 0
    (tmp_path / "m.pt").rename(tmp_path / "elsewhere.pt")

    released = open_release(tmp_path / "release.h5").release
    assert isinstance(released.feature_map, PerceptualFeatures)
    assert released.embedding.shape == (48, 3)
    assert released.guarantee.sensitivity == pytest.approx(2.0)
    assert "trained on are not covered, and the owner has declared them public" in (
        released.statement
    )
    label = " ".join(dpntk("inspect").stdout.replace("│", " ").split())
    assert released.statement in label
    assert "features of a pre-trained module (SHA-256" in label
    registry = yaml.safe_load(dpntk("inspect", "--registry").stdout)
    assert "the features' module was trained on" in json.dumps(registry)
    assert dpntk("verify", "release.h5").code == 0

    train = ("generate", "--steps", "3", "-n", "30")
    missing = dpntk(*train)
    assert missing.code == 1
    assert released.feature_map.module in one_line(missing.stderr)
    other = dpntk(*train, "--module", "other.pt")
    assert other.code == 1
    assert "other.pt: not the module that the features were made with" in one_line(other.stderr)
    assert not Path("synthetic").exists()
    made = dpntk(*train, "--module", "elsewhere.pt")
    assert made.code == 0, made.stderr
    sampler = Path("synthetic/generator.safetensors")
    assert dpntk("generate", "--from", sampler, "-n", "7", "-o", "more").code == 0
    assert dpntk("generate", "--from", sampler, "--module", "elsewhere.pt").code == 2

    audit = ("audit", "--eps", "1", "--delta", "1e-3", "--runs", "200")
    assert dpntk(*audit).code == 1
    audited = dpntk(*audit, "--module", "elsewhere.pt")
    assert audited.code == 0, audited.stderr


def test_squares_go_the_whole_path(dpntk: Command, folder: Path) -> None:
    write_convolutions(Path("m.pt"), channels=3)
    embedded = dpntk("embed", folder, *EMBED, "m.pt", "--squares", 0.6, "--rectified")
    assert embedded.code == 0, embedded.stderr
    assert dpntk("release", "--eps", "5", "--delta", "1e-3").code == 0
    released = open_release(Path("release.h5")).release
    assert released.embedding.shape == (96, 3)
    assert released.guarantee.sensitivity == pytest.approx(math.sqrt(2 * (1 + 0.25**2)))
    label = " ".join(dpntk("inspect").stdout.replace("│", " ").split())
    assert "rectified features of a pre-trained module" in label
    assert "and their squares of weight 0.6" in label
    made = dpntk("generate", "--steps", "3", "-n", "30", "--module", "m.pt")
    assert made.code == 0, made.stderr
    gallery = ("--generator", "gallery", "--module", "m.pt", "-o", "gallery")
    assert dpntk("generate", "--steps", "3", "-n", "30", *gallery).code == 0


def test_a_release_of_other_features_takes_no_module(
    dpntk: Command, folder: Path, network: Convolutions, file: Path
) -> None:
    assert dpntk("embed", folder, "--width", "5").code == 0
    assert dpntk("release", "--eps", "5", "--delta", "1e-3").code == 0
    refused = dpntk("generate", "--steps", "3", "--module", file)
    assert refused.code == 1
    assert "the features are of another kind and need none" in one_line(refused.stderr)


def test_a_module_that_says_something_else_here_is_refused(
    module: PublicModule, file: Path
) -> None:
    right = module.feature_map
    elsewhere = PerceptualFeatures(right.module, right.shape, right.levels, -right.probe)
    with pytest.raises(ModuleError, match="something else of the probe"):
        module_for(elsewhere, file)


def one_line(said: str) -> str:
    """What was said, which is one message and no traceback."""
    assert "Traceback" not in said
    assert said.count("error:") == 1
    return " ".join(said.split())
