"""Numbers that no records and no noise make: refused where they are read, before they overflow."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from dpntk.common.adjacency import Adjacency
from dpntk.common.errors import FormatError, GeneratorError
from dpntk.embed import Embedding
from dpntk.generate.fit.descent import Loss, descend
from dpntk.generate.fit.settings import TrainingSettings
from dpntk.generate.images.generators.conditional import ConditionalGenerator, GeneratorSpec
from dpntk.generate.images.generators.deformations import DeformedGenerator
from dpntk.release import PrivacyParameters, Release, open_release, own_key
from dpntk.release.publishing.pipeline import unrecorded_release, write_release
from tests.conftest import Command, refused


def with_entry(release: Release, entry: float) -> Release:
    matrix = release.embedding.copy()
    matrix[3, 1] = entry
    return replace(release, embedding=matrix)


def with_figures(release: Release, **figures: Any) -> Release:  # noqa: ANN401
    return replace(release, guarantee=replace(release.guarantee, **figures))


IMPOSSIBLE: dict[str, tuple[Callable[[Release], Release], str]] = {
    "the largest float32": (lambda r: with_entry(r, 3.4e38), "so large an entry"),
    "an entry above noise and records": (lambda r: with_entry(r, -1e3), "so large an entry"),
    "a share of nearly nothing": (
        lambda r: replace(r, class_weights=np.array([1e-300, 0.5, 0.5])),
        "below the share of a single record",
    ),
    "sigma of 2^1000": (lambda r: with_figures(r, sigma=2.0**1000), "sigma is out of range"),
    "more records than sums hold": (lambda r: with_figures(r, records=2**62), "out of range|room"),
    "a grid that is none": (lambda r: with_figures(r, grid=1e-300), "the grid is out of range"),
    "more releases than there can be": (
        lambda r: with_figures(r, total_releases=2**62),
        "number of releases is out of range",
    ),
}


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_a_number_that_no_owner_has_written_is_refused(
    embedding: Embedding, tmp_path: Path, name: str
) -> None:
    change, words = IMPOSSIBLE[name]
    made = unrecorded_release(embedding, PrivacyParameters(1.0, 1e-4))
    write_release(change(made), tmp_path / "release.h5", own_key())
    with pytest.raises(FormatError, match=words):
        open_release(tmp_path / "release.h5")


@pytest.mark.parametrize("adjacency", Adjacency)
@pytest.mark.parametrize("epsilon", [1e-4, 0.01, 1.0, 1e5])
def test_whatever_an_owner_writes_is_read(
    embedding: Embedding, tmp_path: Path, epsilon: float, adjacency: Adjacency
) -> None:
    """Of much noise and few records too: the bounds are those of the noise."""
    for number in range(5):
        made = unrecorded_release(embedding, PrivacyParameters(epsilon, 1e-4, adjacency))
        write_release(made, tmp_path / f"{number}.h5", own_key())
        assert open_release(tmp_path / f"{number}.h5").release.guarantee == made.guarantee


@pytest.mark.parametrize("where", ["the loss", "a gradient"])
@pytest.mark.parametrize("steps", [10, 400, 404])
@pytest.mark.parametrize("step", [3, 10, -1, 0])
def test_nothing_that_is_no_number_is_learnt(where: str, steps: int, step: int) -> None:
    """It is noticed some steps later, and said of the step where it was."""
    network = nn.Linear(1, 1)
    bad = step if step > 0 else steps + step

    class Overflows(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, value: Tensor) -> Tensor:  # noqa: ANN401
            return value * (math.nan if where == "the loss" else 1.0)

        @staticmethod
        def backward(ctx: Any, gradient: Tensor) -> Tensor:  # noqa: ANN401
            return gradient * math.inf

    taken = []

    def loss_at(step: int) -> Loss:
        taken.append(step)
        value = network(torch.ones(1)).square().sum()
        if step == bad:
            value = Overflows.apply(value)  # type: ignore[no-untyped-call]
        return Loss(value, value)

    before = [p.detach().clone() for p in network.parameters()]
    with pytest.raises(GeneratorError, match=f"diverged at step {bad}: lower learning_rate"):
        descend(network, loss_at, lambda: 0.0, TrainingSettings(steps=steps, learning_rate=0.1))
    assert taken[-1] - bad < 20
    assert all(bool(p.isfinite().all()) for p in network.parameters())
    assert any(not torch.equal(p, q) for p, q in zip(before, network.parameters(), strict=True))


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf, 3e38, 1e37])
@pytest.mark.parametrize("deformed", [False, True])
def test_no_pixel_is_fetched_from_a_place_that_is_no_number(
    monkeypatch: pytest.MonkeyPatch, number: float, deformed: bool
) -> None:
    """Torch's `grid_sample` reads out of bounds there; what it does not, comes out as it was."""
    right = nn.functional.grid_sample

    def guarded(images: Tensor, places: Tensor, **options: Any) -> Tensor:  # noqa: ANN401
        assert bool(places.isfinite().all())
        return right(images, places, **options)

    monkeypatch.setattr(nn.functional, "grid_sample", guarded)
    template = ConditionalGenerator(GeneratorSpec(8, 3))
    generator = DeformedGenerator(template) if deformed else template
    code, classes = torch.randn(3, 4, generator.spec.code), torch.arange(3)
    before = generator(code, classes).detach()
    with torch.no_grad():
        template.flows[1, 2] = number
    made = generator(code, classes)
    assert bool(made[1].isnan().all())
    assert torch.equal(made[[0, 2]], before[[0, 2]])
    made.sum().backward()


def test_figures_that_would_take_gigabytes_to_check_are_refused_at_once() -> None:
    """131,072 steps with hardly any noise took 9.8 GB and 54 s."""
    program = (
        "import resource\n"
        "from dpntk.release.mechanism.subsampled_gaussian import SampledGaussian, sampled_epsilon\n"
        "import dp_accounting.pld.pld_privacy_accountant\n"
        "here = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize()\n"
        "resource.setrlimit(resource.RLIMIT_AS, (here + (1 << 30),) * 2)\n"
        "resource.setrlimit(resource.RLIMIT_CPU, (60, 60))\n"
        "print(sampled_epsilon([SampledGaussian(1.0, 0.3, 131072)], 1e-5))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "inf\n"), done.stderr


DEEP = "[" * 100_000 + "]" * 100_000
DIGITS = "9" * 5_000


@pytest.mark.parametrize(
    "text",
    [
        f"bins = {DIGITS}",
        "bins = 1" + "0" * 400,
        f"columns = {'[' * 2_000}{']' * 2_000}",
        "[csv]\nencoding = 'punycode'",
        "[csv]\nencoding = 'idna'",
    ],
    ids=["digits", "10^400", "deep", "punycode", "idna"],
)
def test_a_schema_that_nobody_writes_is_one_line(dpntk: Command, tmp_path: Path, text: str) -> None:
    column = (
        "\n[[columns]]\nname = 'a'\nkind = 'categorical'\ndtype = 'string'\ncategories = ['x']\n"
    )
    (tmp_path / "schema.toml").write_text(text + column)
    (tmp_path / "a.csv").write_text("a\nx\nx\n")
    refused(dpntk("embed", "a.csv", "--schema", "schema.toml"), "schema.toml")


@pytest.mark.parametrize(
    "provenance",
    [DEEP, f'{{"classes": {DIGITS}}}', '{"classes": ["a"], "release": {"epsilon": NaN}}', "[]"],
    ids=["deep", "digits", "no number", "a list"],
)
def test_a_provenance_that_nobody_writes_is_one_line(
    dpntk: Command, folder: Path, tmp_path: Path, provenance: str
) -> None:
    (tmp_path / "synthetic").mkdir()
    np.savez(tmp_path / "synthetic" / "images.npz", x=np.zeros((4, 8, 8), np.uint8), y=range(4))
    (tmp_path / "synthetic" / "provenance.json").write_text(provenance)
    refused(dpntk("evaluate", "synthetic", "--test", folder), "provenance.json")


@pytest.mark.parametrize(
    "arguments",
    [
        ("release", "--eps", "1e400"),
        ("release", "--eps", "nan"),
        ("release", "--eps", "1", "--delta", "1e-400"),
        ("plan", "--records", str(10**400), "--classes", "3", "--eps", "1"),
        ("plan", "--records", "1000", "--classes", "3", "--eps", "1e400"),
        ("generate", "release.h5", "--steps", str(10**30)),
        ("generate", "release.h5", "--seed", str(10**30)),
        ("embed", "images", "--capacity", str(10**400)),
        ("embed", "images", "--budget-eps", "1e400"),
        ("audit", "--eps", "1e400"),
    ],
    ids=" ".join,
)
def test_a_number_on_the_command_line_that_cannot_be_is_one_line(
    dpntk: Command, embedding_file: Path, folder: Path, arguments: tuple[str, ...]
) -> None:
    own_key()
    outcome = dpntk(*arguments)
    assert outcome.code == 1
    assert outcome.stderr.startswith("error: ")
    assert "bug" not in outcome.stderr


def test_a_generator_file_of_other_numbers_is_one_line(
    dpntk: Command, embedding: Embedding, tmp_path: Path
) -> None:
    from safetensors.torch import load, save

    write_release(
        unrecorded_release(embedding, PrivacyParameters(50.0, 1e-4)), tmp_path / "r.h5", own_key()
    )
    assert dpntk("generate", "r.h5", "--steps", 2, "-n", 4).code == 0
    file = tmp_path / "synthetic" / "generator.safetensors"
    content = file.read_bytes()
    length = int.from_bytes(content[:8], "little")
    description = json.loads(content[8 : 8 + length])["__metadata__"]
    tensors = load(content)
    shutil.rmtree(tmp_path / "synthetic")
    changes: tuple[Callable[[Tensor], Tensor], ...] = (
        lambda t: t.to(torch.float16),
        lambda t: t.to(torch.complex64),
        lambda t: t.to(torch.int64),
        lambda t: t * math.nan,
        lambda t: t + 3e38,
    )
    for change in changes:
        changed = {name: change(tensor) for name, tensor in tensors.items()}
        file = tmp_path / "changed.safetensors"
        file.write_bytes(save(changed, description))
        refused(dpntk("generate", "--from", file, "-n", 4, "-o", "more"))
        assert not (tmp_path / "more").exists()
