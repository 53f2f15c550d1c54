"""A distillation without noise is possible on the owner's word, and all that reads it says so."""

from __future__ import annotations

import io
import json
import math
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import torch
from torch import Tensor

from dpntk.common.errors import BudgetError, FormatError, RunError
from dpntk.common.features.infinite_ntk import ReluKernel, Slopes
from dpntk.common.features.kernel_ridge import class_targets
from dpntk.common.sources import open_source
from dpntk.common.storage.container import NOT_PRIVATE_MAGIC, RELEASE_MAGIC, USER_BLOCK, user_block
from dpntk.release import Acceptance, open_any
from dpntk.release.distill import Settings, descent, distill
from dpntk.release.distill.ledger import ledger_of, read_ledger, spent_by
from dpntk.release.distill.mechanism import exact_gradient
from dpntk.release.distill.optimiser import begin
from dpntk.release.file.distilled import DistilledRelease
from dpntk.release.file.distilled_codec import serialise_distilled
from tests.conftest import Command, refused
from tests.helpers.problems import Problem, draw_problem, plain_gradients
from tests.release.file.test_distilled_codec import make_distilled, set_to

SETTINGS = Settings(per_class=2, sampling_prob=1.0, steps=5, smoothing=0.0, learning_rate=0.05)
EXACT = ("--eps", "inf", "--not-private", "--sampling-prob", 1, "--steps", 5, "--per-class", 2)
UNSIGNED = Acceptance(allow_unsigned=True)


def run(folder: Path, output: Path, **options: Any) -> DistilledRelease:  # noqa: ANN401
    parameters = {"epsilon": math.inf, "not_private": True, "settings": SETTINGS, **options}
    return distill(open_source(folder), output, ledger_of(folder), **parameters).release


def plain_descent(folder: Path, settings: Settings) -> Tensor:
    """Kernel inducing points by automatic differentiation, from the class means; float64 (m, D)."""
    (batch,) = open_source(folder).batches(1000)
    classes = int(batch.labels.max()) + 1
    labels = torch.arange(settings.per_class * classes) % classes
    points = torch.from_numpy(begin(settings, classes, batch.records.shape[1], 8).points)
    directions = torch.nn.functional.normalize(torch.from_numpy(batch.records / 256))
    for point, label in zip(points, labels, strict=True):
        of_class = directions[torch.from_numpy(batch.labels) == label].sum(0)
        point += of_class / of_class.norm() * math.sqrt(len(point)) / 4
    points = torch.round(points * 2**16) / 2**16
    problem = Problem(
        points, class_targets(labels, classes), batch.records,
        class_targets(torch.from_numpy(batch.labels), classes), settings.centre,
    )  # fmt: skip
    momentum = covariance = mean = torch.zeros(0)
    for step in range(2, settings.steps + 1):  # the first one gives class means
        gradient = plain_gradients(problem).sum(0)
        products = gradient @ gradient.T / gradient.shape[1]
        momentum = gradient if step == 2 else momentum.lerp(gradient, 0.1)
        covariance = products if step == 2 else covariance.lerp(products, 0.05)
        values, vectors = torch.linalg.eigh(covariance)
        root = vectors @ (values.clamp_min(1e-6 * values[-1]) ** -0.5).diag() @ vectors.T
        fallen = (1 + math.cos(math.pi * step / (settings.steps + 1))) / 2
        points -= settings.learning_rate * (0.1 + 0.9 * fallen) * root @ momentum
        points.copy_(torch.round(points * 2**16) / 2**16)
        mean = points.clone() if step == 2 else mean.lerp(points, 1 - settings.averaging)
    return mean


def test_it_is_what_a_plain_descent_finds(folder: Path, tmp_path: Path) -> None:
    made = run(folder, tmp_path / "release.h5")
    expected = plain_descent(folder, SETTINGS)
    start = plain_descent(folder, Settings(**{**SETTINGS.__dict__, "learning_rate": 1e-6}))
    assert (expected - start).abs().max() > 0.05  # something was learnt
    assert np.abs(made.points - expected.numpy()).max() < 1e-4


def test_a_gradient_is_that_of_whole_records() -> None:
    problem = draw_problem()
    expected = plain_gradients(problem).sum(0).numpy()
    found = exact_gradient(
        problem.loss, problem.records, problem.record_targets, centre=problem.centre
    )
    assert np.abs(found - expected).max() < 1e-9 * np.abs(expected).max()


def test_a_record_without_a_finite_gradient_does_not_spoil_the_rest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    problem = draw_problem()
    whole = len(problem.records)
    right = ReluKernel.slopes

    def spoilt(self: ReluKernel, products: Tensor, *squares: Tensor) -> Slopes:
        found = right(self, products, *squares)
        if len(products) == whole:
            found.first[5, 2] = math.inf
        return found

    loss = problem.loss
    monkeypatch.setattr(ReluKernel, "slopes", spoilt)
    rest = np.delete(np.arange(whole), 5)
    with_it = exact_gradient(loss, problem.records, problem.record_targets, centre=problem.centre)
    without = exact_gradient(
        loss, problem.records[rest], problem.record_targets[torch.from_numpy(rest)],
        centre=problem.centre,
    )  # fmt: skip
    assert np.isfinite(without).all()
    assert np.allclose(with_it, without, rtol=1e-9, atol=1e-12)


def test_no_records_make_no_gradient() -> None:
    problem = draw_problem()
    none = exact_gradient(
        problem.loss, problem.records[:0], problem.record_targets[:0], centre=problem.centre
    )
    assert not none.any()
    assert none.shape == tuple(problem.points.shape)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--eps", "inf"), "epsilon inf adds no noise"),
        (("--eps", "1", "--not-private"), "--not-private means something with --eps inf only"),
        (("--eps", "-inf", "--not-private"), "means something with --eps inf only"),
        (
            ("--eps", "inf", "--not-private", "--clip-norm", 1),
            "--clip-norm means something with noise only",
        ),
    ],
)
def test_both_options_are_needed(
    dpntk: Command, folder: Path, tmp_path: Path, options: tuple[object, ...], words: str
) -> None:
    refused(dpntk("distill", folder, *options), words)
    assert not (tmp_path / "release.h5").exists()
    assert not ledger_of(folder).exists()
    assert not list(tmp_path.glob(".release*"))


def test_every_command_repeats_it(dpntk: Command, folder: Path, tmp_path: Path) -> None:
    made = dpntk("distill", folder, *EXACT)
    path = tmp_path / "release.h5"
    assert made.code == 0
    assert path.read_bytes().startswith(NOT_PRIVATE_MAGIC)
    assert path.stat().st_mode & 0o777 == 0o600
    inspected, verified = dpntk("inspect"), dpntk("verify")
    generated, evaluated = dpntk("generate"), dpntk("evaluate", "--test", folder)
    for outcome in (made, inspected, verified, generated, evaluated):
        assert outcome.code == 0
        assert "NOT PRIVATE" in outcome.stderr
    assert "none: NOT PRIVATE" in inspected.stdout
    assert "no gradient is clipped" in " ".join(inspected.stdout.split())
    assert (tmp_path / "synthetic").stat().st_mode & 0o777 == 0o700
    assert "NOT PRIVATE" in dpntk("budget", folder).stdout
    assert json.loads(dpntk("budget", folder, "--json").stdout)["spent"][0]["epsilon"] == "inf"
    provenance = json.loads((tmp_path / "synthetic/provenance.json").read_text())["release"]
    assert (provenance["private"], provenance["epsilon"]) == (False, "inf")
    assert "NOT PRIVATE" in provenance["statement"]
    assert "differential privacy" not in provenance["statement"]
    rows = json.loads((tmp_path / "evaluation.json").read_text())["rows"]
    assert rows[0]["trained_on"] == "synthetic (NOT PRIVATE)"
    label = json.loads(dpntk("inspect", "--json").stdout)
    assert not label["private"]
    assert label["guarantee"]["clip_norm"] == label["guarantee"]["epsilon"] == "inf"
    assert label["settings"]["clip"] is None
    assert label["settings"]["smoothing"] == 0.0
    assert dpntk("inspect", "--page", "officer.html").code == 0
    assert "NOT PRIVATE" in (tmp_path / "officer.html").read_text()


def test_nothing_of_the_kind_is_said_of_a_private_one(dpntk: Command, folder: Path) -> None:
    noisy = ("--eps", 2, "--delta", "1e-3", "--sampling-prob", 0.5, "--steps", 3, "--per-class", 1)
    outcomes = [
        dpntk("distill", folder, *noisy), dpntk("inspect"), dpntk("verify"), dpntk("generate"),
        dpntk("budget", folder),
    ]  # fmt: skip
    assert all(outcome.code == 0 for outcome in outcomes)
    assert not any("NOT PRIVATE" in o.stderr + o.stdout for o in outcomes)


def test_the_ledger_counts_it_as_infinitely_much(
    dpntk: Command, folder: Path, tmp_path: Path
) -> None:
    with pytest.raises(BudgetError, match="it must lie between 0 and 1"):
        run(folder, tmp_path / "release.h5", delta=2.0)
    run(folder, tmp_path / "release.h5")
    json.loads(ledger_of(folder).read_text(), parse_constant=pytest.fail)  # JSON has no infinity
    (entry,) = read_ledger(ledger_of(folder))
    assert (entry.run, entry.epsilon) == (None, math.inf)
    assert spent_by([entry], 1e-5) == math.inf
    noisy = {"epsilon": 2.0, "delta": 1e-3, "not_private": False}
    with pytest.raises(BudgetError, match="the total would be epsilon inf"):
        run(folder, tmp_path / "two.h5", **noisy)
    made = run(folder, tmp_path / "two.h5", compose=lambda total: True, **noisy)
    assert made.guarantee.private
    assert made.guarantee.total_epsilon == math.inf
    assert "together they have epsilon inf" in made.statement
    assert isinstance(open_any(tmp_path / "two.h5").release, DistilledRelease)
    assert dpntk("budget", folder).stdout.count("NOT PRIVATE") == 1


@pytest.mark.parametrize("entry", [{"epsilon": None}, {"run": None}])
def test_a_ledger_that_contradicts_itself_is_not_read(
    folder: Path, tmp_path: Path, entry: dict[str, None]
) -> None:
    noisy = {"epsilon": 2.0, "delta": 1e-3, "not_private": False}
    run(folder, tmp_path / "release.h5", **noisy)
    document = json.loads(ledger_of(folder).read_text())
    document["entries"][0] |= entry
    ledger_of(folder).write_text(json.dumps(document))
    with pytest.raises(BudgetError, match="noise and epsilon contradict"):
        read_ledger(ledger_of(folder))


def test_an_interrupted_run_goes_on(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []
    right = exact_gradient

    def dying(*arguments: Any, **options: Any) -> Any:  # noqa: ANN401
        seen.append(len(seen))
        if len(seen) == 3:
            raise KeyboardInterrupt
        return right(*arguments, **options)

    monkeypatch.setattr(descent, "exact_gradient", dying)
    with pytest.raises(RunError, match="interrupted"):
        run(folder, tmp_path / "release.h5")
    made = run(folder, tmp_path / "release.h5")
    assert made.settings["steps_lost"] == 1
    assert len(seen) == SETTINGS.steps
    assert len(read_ledger(ledger_of(folder))) == 1


def written(made: DistilledRelease, magic: bytes, path: Path, **values: object) -> Path:
    """An unsigned file with other figures and another first line than its writer gave it."""
    buffer = io.BytesIO(bytes(serialise_distilled(made)))
    with h5py.File(buffer, "r+", libver=("earliest", "v110")) as file:
        set_to(**values)(file)
    path.write_bytes(user_block(magic) + buffer.getvalue()[USER_BLOCK:])
    return path


CLAIMS: list[tuple[bytes, dict[str, object], str]] = [
    (RELEASE_MAGIC, {}, "disagree about its being private"),
    (RELEASE_MAGIC, {"epsilon": 1.0}, "noise and epsilon contradict"),
    (RELEASE_MAGIC, {"epsilon": 1.0, "total_epsilon": 1.0}, "noise and epsilon contradict"),
    (
        RELEASE_MAGIC,
        {"epsilon": 1.0, "total_epsilon": 1.0, "noise_multiplier": 1.0},
        "noise and epsilon contradict",
    ),
    (NOT_PRIVATE_MAGIC, {"epsilon": 1.0}, "disagree about its being private"),
    (NOT_PRIVATE_MAGIC, {"sigma": 1.0}, "noise and epsilon contradict"),
    (NOT_PRIVATE_MAGIC, {"noise_multiplier": 1.0}, "noise and epsilon contradict"),
    (NOT_PRIVATE_MAGIC, {"grid": 1.0}, "noise and epsilon contradict"),
    (NOT_PRIVATE_MAGIC, {"clip_norm": 1.0}, "noise and epsilon contradict"),
    (NOT_PRIVATE_MAGIC, {"total_epsilon": 1.0}, "noise and epsilon contradict"),
    (NOT_PRIVATE_MAGIC, {"rate": 2.0}, "sampling rate"),
    (NOT_PRIVATE_MAGIC, {"steps": 0}, "number of steps"),
    (NOT_PRIVATE_MAGIC, {"delta": 0.0}, "delta"),
]


@pytest.mark.parametrize(("magic", "values", "words"), CLAIMS)
def test_what_is_not_private_cannot_be_made_to_claim_it(
    folder: Path, tmp_path: Path, magic: bytes, values: dict[str, object], words: str
) -> None:
    made = run(folder, tmp_path / "release.h5")
    honest = written(made, NOT_PRIVATE_MAGIC, tmp_path / "honest.h5")
    assert not open_any(honest, UNSIGNED).release.guarantee.private
    forged = written(made, magic, tmp_path / "forged.h5", **values)
    with pytest.raises(FormatError, match=words):
        open_any(forged, UNSIGNED)


@pytest.mark.parametrize("figure", ["noise_multiplier", "sigma"])
def test_a_file_that_claims_privacy_without_noise_is_refused(tmp_path: Path, figure: str) -> None:
    path = written(make_distilled(), RELEASE_MAGIC, tmp_path / "forged.h5", **{figure: 0.0})
    with pytest.raises(FormatError, match="noise and epsilon contradict"):
        open_any(path, UNSIGNED)
