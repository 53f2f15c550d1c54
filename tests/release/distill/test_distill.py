"""`dpntk distill`: the whole path, the ledger, interruptions, and what it refuses."""

from __future__ import annotations

import fcntl
import json
import math
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image
from scipy.ndimage import gaussian_filter
from sklearn.metrics import roc_auc_score

from dpntk.common.adjacency import Adjacency
from dpntk.common.display.text import rounded_up
from dpntk.common.errors import BudgetError, DataError, RunError
from dpntk.common.schema.drafts.toml import read_schema
from dpntk.common.sources import Source, open_source
from dpntk.common.sources.base import Batch
from dpntk.common.sources.options import SourceOptions
from dpntk.common.sources.tables.table import TableSource
from dpntk.evaluate.distilled import read_points
from dpntk.release import SigningKey, own_key
from dpntk.release.distill import PRESETS, Settings, descent, distill, mechanism
from dpntk.release.distill.ledger import (
    Spending,
    enter,
    ledger_of,
    read_all,
    read_ledger,
    spent_by,
    total_of_distillations,
)
from dpntk.release.distill.optimiser import State, begin, descend
from dpntk.release.distill.progress import RunFolder
from dpntk.release.distill.sampling import poisson_sample
from dpntk.release.file.distilled import DistilledRelease
from dpntk.release.file.reader import open_any
from dpntk.release.label.kinds import label_of
from dpntk.release.mechanism.subsampled_gaussian import (
    SampledGaussian,
    calibrate_sampled_gaussian,
    sampled_epsilon,
)
from dpntk.release.signing.policy import Acceptance
from tests.conftest import Command, draw_records, refused

STEPS = 6
SETTINGS = Settings(per_class=2, sampling_prob=0.5, steps=STEPS, clip_norm=0.1)
PRIVACY = ("--eps", 2, "--delta", "1e-3", "--sampling-prob", 0.5)
OPTIONS = (*PRIVACY, "--steps", STEPS, "--per-class", 2)


def run(folder: Path, tmp_path: Path, **options: Any) -> DistilledRelease:  # noqa: ANN401
    parameters: dict[str, Any] = {"epsilon": 2.0, "delta": 1e-3, "settings": SETTINGS, **options}
    output = parameters.pop("output", tmp_path / "release.h5")
    return distill(open_source(folder), output, ledger_of(folder), **parameters).release


def run_of(entry: Spending) -> SampledGaussian:
    """The steps of a distillation with noise."""
    assert entry.run is not None
    return entry.run


def refusal(dpntk: Command, *arguments: object) -> str:
    outcome = dpntk(*arguments)
    assert outcome.code == 1
    lines = [line for line in outcome.stderr.splitlines() if "made a signing key" not in line]
    assert len(lines) == 1
    return lines[0]


class Steps:
    """What the steps of runs were given: watched from inside."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.batches: list[list[int]] = []
        self.gradients: list[NDArray[np.float64]] = []
        self.points: list[NDArray[np.float64]] = []
        self.die_at: int | None = None
        self.die_after_noise = True
        # As they are there now: a test may have put something else in their place.
        sample, gradient = vars(descent)["poisson_sample"], vars(descent)["gradient_of"]

        def sampled(records: int, rate: float) -> NDArray[np.int64]:
            if len(self.batches) + 1 == self.die_at and not self.die_after_noise:
                self.die_at = None
                raise KeyboardInterrupt
            self.batches.append(sample(records, rate).tolist())
            return np.array(self.batches[-1], dtype=np.int64)

        def drawn(step: mechanism.Step, sums: NDArray[np.float64]) -> NDArray[np.float64]:
            self.points.append(step.points.numpy().copy())
            self.gradients.append(gradient(step, sums))
            if len(self.gradients) == self.die_at:
                self.die_at = None
                raise KeyboardInterrupt
            return self.gradients[-1]

        monkeypatch.setattr(descent, "poisson_sample", sampled)
        monkeypatch.setattr(descent, "gradient_of", drawn)


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> Steps:
    return Steps(monkeypatch)


def test_figures_and_settings_are_spelt_in_files_as_they_always_were(
    folder: Path, tmp_path: Path
) -> None:
    made = run(folder, tmp_path)
    figures, settings = made.guarantee.figures(), made.settings
    (entry,) = json.loads(ledger_of(folder).read_text())["entries"]
    assert entry["run"] == {
        "rate": 0.5, "multiplier": figures["noise_multiplier"], "steps": STEPS
    }  # fmt: skip
    assert list(entry) == ["release_id", "created", "epsilon", "delta", "run", "adjacency"]
    assert (figures["rate"], figures["clip_norm"]) == (0.5, 0.1)
    assert (settings["rate"], settings["clip"]) == (0.5, 0.1)
    assert not {"sampling_prob", "clip_norm"} & set(settings)


def replayed(gradients: list[NDArray[np.float64]], begun: list[int]) -> State:
    """The state that these gradients lead to, if they were those of these steps."""
    state = begin(SETTINGS, 3, 64, 8)
    for gradient, number in zip(gradients, begun, strict=True):
        state = descend(replace(state, begun=number), gradient, SETTINGS, 8)
    return state


def test_the_whole_path(dpntk: Command, folder: Path, tmp_path: Path) -> None:
    made = dpntk("distill", folder, *OPTIONS)
    assert made.code == 0
    assert "6 points in 3 classes; epsilon 2, delta 0.001, add-remove" in made.stderr
    assert ledger_of(folder).stat().st_mode & 0o777 == 0o600
    assert not list(tmp_path.glob(".release*"))
    assert "distilled: 6 points" in dpntk("inspect").stdout
    label = json.loads(dpntk("inspect", "--json").stdout)
    assert label["guarantee"]["steps"] == STEPS
    assert dpntk("verify").code == 0
    assert dpntk("generate").code == 0
    with np.load(tmp_path / "synthetic/images.npz") as archive:
        assert archive["x"].shape == (6, 8, 8)
        assert archive["y"].tolist() == [0, 1, 2, 0, 1, 2]
    assert (tmp_path / "synthetic/preview.png").read_bytes().startswith(b"\x89PNG")
    outcome = dpntk("evaluate", "--test", folder, "--release", "release.h5")
    assert outcome.code == 0
    row = json.loads((tmp_path / "evaluation.json").read_text())["rows"][0]
    assert {"kernel regression", "ConvNet", "CNN"} < set(row)


def test_the_release_says_what_was_done(folder: Path, tmp_path: Path, steps: Steps) -> None:
    made = run(folder, tmp_path)
    opened = open_any(tmp_path / "release.h5")
    assert isinstance(opened.release, DistilledRelease)
    promise = opened.release.guarantee
    assert promise == made.guarantee
    assert np.array_equal(opened.release.points, made.points)
    expected = replayed(steps.gradients, [1, 2, 3, 4, 5, 6]).mean.astype(np.float32)
    assert np.array_equal(opened.release.points, expected)
    entry = read_ledger(ledger_of(folder))[0]
    assert entry.release_id == made.release_id
    assert (run_of(entry).sampling_prob, run_of(entry).steps) == (0.5, STEPS)
    assert sampled_epsilon([run_of(entry)], 1e-3) <= promise.epsilon == 2.0
    assert promise.noise_multiplier == run_of(entry).noise_multiplier
    assert "number of records is not in it" in opened.release.statement


def test_the_start_is_drawn_without_records(folder: Path, tmp_path: Path, steps: Steps) -> None:
    """The first step sees the same points whatever the records are."""
    run(folder, tmp_path)
    drawn = torch.randn((6, 64), generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    expected = gaussian_filter(drawn.numpy().reshape(6, 8, 8), (0, 1.5, 1.5), mode="constant")
    weight = gaussian_filter(np.ones((8, 8)), 1.5, mode="constant")
    expected = (expected / weight).reshape(6, 64)
    expected *= SETTINGS.start / np.sqrt(np.mean(expected**2))
    assert np.abs(steps.points[0] - expected).max() < 1e-3
    assert abs(steps.points[0].std() / SETTINGS.start - 1) < 0.2


def test_batches_are_drawn_anew_at_every_step(folder: Path, tmp_path: Path, steps: Steps) -> None:
    """Not dealt out: some record is in two batches, and the sizes differ."""
    run(folder, tmp_path, settings=replace(SETTINGS, steps=40), epsilon=8.0)
    sizes = [len(batch) for batch in steps.batches]
    assert len(set(sizes)) > 3
    assert np.var(sizes) > 30 * 0.25 / 3  # Poisson: 7.5; epochs dealt out evenly: 0
    pairs = zip(steps.batches[::2], steps.batches[1::2], strict=True)
    shared = [len(set(a) & set(b)) for a, b in pairs]
    assert abs(np.mean(shared) - 30 / 4) < 6 * math.sqrt(30 * 3 / 16 / len(shared))


def test_no_two_steps_have_the_same_noise(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor two runs: with no record in any batch there is only noise to compare."""
    noisy_sums, sums = mechanism.noisy_sums, []

    def noted(
        step: mechanism.Step,
        records: NDArray[np.uint8],
        targets: torch.Tensor,
        **settings: Any,  # noqa: ANN401 - those that it is called with
    ) -> NDArray[np.float64]:
        sums.append(noisy_sums(step, records, targets, **settings))
        return sums[-1]

    monkeypatch.setattr(descent, "noisy_sums", noted)
    monkeypatch.setattr(descent, "poisson_sample", lambda records, rate: np.empty(0, np.int64))
    run(folder, tmp_path)
    run(folder, tmp_path, output=tmp_path / "again.h5", compose=lambda total: True)
    assert len(sums) == 2 * STEPS
    shortest = min(map(len, sums))  # that of class means
    noise = np.stack([each[:shortest] for each in sums])
    off = np.corrcoef(noise) - np.eye(2 * STEPS)
    assert np.abs(off).max() < 6 / math.sqrt(noise.shape[1])


@pytest.mark.parametrize("die_at", [1, 3, STEPS])
@pytest.mark.parametrize("die_after_noise", [False, True])
def test_an_interrupted_run_goes_on_and_counts_every_step_once(
    folder: Path, tmp_path: Path, steps: Steps, die_at: int, die_after_noise: bool
) -> None:
    """The step that was lost is spent: it is not taken again, and no other in its place."""
    steps.die_at, steps.die_after_noise = die_at, die_after_noise
    with pytest.raises(RunError, match="interrupted"):
        run(folder, tmp_path)
    assert not (tmp_path / "release.h5").exists()
    work = tmp_path / ".release.h5.distill"
    assert work.stat().st_mode & 0o777 == 0o700
    assert {file.stat().st_mode & 0o777 for file in work.iterdir()} == {0o600}
    spent = read_ledger(ledger_of(folder))
    made = run(folder, tmp_path)
    assert read_ledger(ledger_of(folder)) == spent
    taken = [number for number in range(1, STEPS + 1) if number != die_at]
    gradients = list(steps.gradients)
    if die_after_noise:
        del gradients[die_at - 1]
    assert len(steps.gradients) <= STEPS
    assert np.array_equal(made.points, replayed(gradients, taken).mean.astype(np.float32))
    assert made.settings["steps_lost"] == 1
    assert not work.exists()


def test_a_run_that_goes_on_is_entered_where_the_ledger_lacks_it(
    folder: Path, tmp_path: Path, steps: Steps
) -> None:
    """Whatever became of the ledger meanwhile."""
    steps.die_at = 3
    with pytest.raises(RunError, match="interrupted"):
        run(folder, tmp_path)
    spent = ledger_of(folder).read_bytes()
    ledger_of(folder).unlink()
    run(folder, tmp_path)
    assert ledger_of(folder).read_bytes() == spent


def test_a_step_is_on_the_disk_before_its_batch_is_drawn(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[int, int]] = []
    right = poisson_sample

    def sampled(records: int, rate: float) -> NDArray[np.int64]:
        file = tmp_path / ".release.h5.distill/begun"
        begun = int(file.read_text()) if file.exists() else 0
        seen.append((begun, len(read_ledger(ledger_of(folder)))))
        return right(records, rate)

    monkeypatch.setattr(descent, "poisson_sample", sampled)
    run(folder, tmp_path)
    assert seen == [(number, 1) for number in range(1, STEPS + 1)]


def test_a_second_run_says_what_the_total_becomes(dpntk: Command, folder: Path) -> None:
    assert dpntk("distill", folder, *OPTIONS).code == 0
    assert "already exists" in refusal(dpntk, "distill", folder, *OPTIONS)
    again = ("distill", folder, *OPTIONS, "-o", "two.h5")
    entry = read_ledger(ledger_of(folder))[0]
    total = sampled_epsilon([run_of(entry), run_of(entry)], 1e-3)
    assert f"the total would be epsilon {rounded_up(total)}" in refusal(dpntk, *again)
    assert len(read_ledger(ledger_of(folder))) == 1
    assert f"together they have epsilon {rounded_up(total)}" in dpntk(*again, "--compose").stderr
    opened = open_any("two.h5")
    assert isinstance(opened.release, DistilledRelease)
    assert opened.release.guarantee.total_epsilon == pytest.approx(total)
    assert opened.release.guarantee.total_releases == 2


def test_a_record_that_is_exchanged_can_be_what_is_hidden(dpntk: Command, folder: Path) -> None:
    """It takes more noise; and the total counts earlier runs for exchanges too."""
    assert dpntk("distill", folder, *OPTIONS).code == 0
    exchange = ("--adjacency", "replace-one", "-o", "two.h5", "--compose")
    made = dpntk("distill", folder, *OPTIONS, *exchange)
    assert "epsilon 2, delta 0.001, replace-one" in made.stderr
    opened = open_any("two.h5")
    assert isinstance(opened.release, DistilledRelease)
    assert "exchanging any one record for any other; the number" in opened.release.statement
    first, second = read_ledger(ledger_of(folder))
    assert run_of(second).noise_multiplier > 1.5 * run_of(first).noise_multiplier
    assert 1.98 < sampled_epsilon([run_of(second)], 1e-3, adjacency=Adjacency.REPLACE_ONE) <= 2
    total = sampled_epsilon([run_of(first), run_of(second)], 1e-3, adjacency=Adjacency.REPLACE_ONE)
    assert opened.release.guarantee.total_epsilon == total
    assert f"epsilon {rounded_up(total)} (replace-one)" in made.stderr


def test_the_budget_shows_what_distillations_have_spent(dpntk: Command, folder: Path) -> None:
    assert "there is no such file" in refusal(dpntk, "budget")
    assert "'dpntk distill DATA' makes one" in refusal(dpntk, "budget", folder)
    assert dpntk("distill", folder, *OPTIONS).code == 0
    entry = read_ledger(ledger_of(folder))[0]
    for named in (folder, ledger_of(folder)):
        shown = dpntk("budget", named).stdout
        assert entry.release_id[:12] in shown
        assert "spent: epsilon 2 at delta 0.001 (add-remove)" in shown
    assert dpntk("distill", folder, *OPTIONS, "-o", "two.h5", "--compose").code == 0
    total = sampled_epsilon([run_of(e) for e in read_ledger(ledger_of(folder))], 1e-3)
    assert f"spent: epsilon {rounded_up(total)} at delta" in dpntk("budget", folder).stdout


def test_the_budget_of_distillations_is_for_the_delta_and_the_adjacency_that_are_shown(
    dpntk: Command, folder: Path
) -> None:
    def spent(*options: object) -> list[tuple[float, float, str]]:
        told = json.loads(dpntk("budget", folder, *options, "--json").stdout)["spent"]
        return [(total["epsilon"], total["delta"], total["adjacency"]) for total in told]

    step = SampledGaussian(0.1, 1.0, 10)
    first = Spending("a", "2026", 2.0, 1e-3, step)
    enter(ledger_of(folder), first, lambda total: True)
    assert spent() == [(2.0, 1e-3, "add-remove")]  # as it was promised
    assert spent("--delta", 1e-6) == [(sampled_epsilon([step], 1e-6), 1e-6, "add-remove")]
    exchanging = replace(first, release_id="b", delta=1e-4, adjacency=Adjacency.REPLACE_ONE)
    enter(ledger_of(folder), exchanging, lambda total: True)
    for options, delta in (((), 1e-4), (("--delta", 1e-6), 1e-6)):
        total = spent_by([first, exchanging], delta, Adjacency.REPLACE_ONE)
        assert spent(*options) == [(total, delta, "replace-one")]


def test_runs_under_replace_one_promise_nothing_under_add_remove(
    dpntk: Command, folder: Path
) -> None:
    """The delta of such a run, and so its noise, may follow from the number of records."""
    exchange = ("--adjacency", "replace-one", "--delta", "1e-4")
    assert dpntk("distill", folder, *OPTIONS, *exchange).code == 0
    again = ("distill", folder, *OPTIONS, "-o", "two.h5")
    runs = [
        run_of(read_ledger(ledger_of(folder))[0]),
        calibrate_sampled_gaussian(2, 1e-3, 0.5, STEPS),
    ]
    total = sampled_epsilon(runs, 1e-3, adjacency=Adjacency.REPLACE_ONE)
    assert f"epsilon {rounded_up(total)} at delta 0.001 (replace-one)" in refusal(dpntk, *again)
    together = f"epsilon {rounded_up(total)} (replace-one)"
    assert together in dpntk(*again, "--compose").stderr
    opened = open_any("two.h5")
    assert isinstance(opened.release, DistilledRelease)
    promise = opened.release.guarantee
    assert (promise.epsilon, promise.adjacency) == (2.0, Adjacency.ADD_REMOVE)
    assert (promise.total_epsilon, promise.total_adjacency) == (total, Adjacency.REPLACE_ONE)
    assert together in label_of(opened).rows["in total"]
    spent = f"spent: epsilon {rounded_up(total)} at delta 0.001 (replace-one)"
    assert spent in dpntk("budget", folder).stdout


def test_a_preset_says_where_it_comes_from(dpntk: Command, folder: Path) -> None:
    """Its numbers were tuned on records, and whoever reads the release is to know."""
    parameters = (*PRIVACY, "--steps", 3, "--preset", "mnist-1")
    assert "3 points in 3 classes" in dpntk("distill", folder, *parameters).stderr
    settings = json.loads(dpntk("inspect", "--json").stdout)["settings"]
    assert settings["origin"].startswith("mnist-1: chosen on MNIST's training images")
    assert "which no guarantee covers" in settings["origin"]
    assert settings["origin"].endswith("changed: rate, steps")
    for preset in PRESETS.values():
        assert "no guarantee covers" in Settings(**preset).origin


def test_progress_of_another_run_is_not_continued(
    folder: Path, tmp_path: Path, steps: Steps
) -> None:
    steps.die_at = 2
    with pytest.raises(RunError, match="interrupted"):
        run(folder, tmp_path)
    with pytest.raises(RunError, match=r"another run \(run, settings changed\)"):
        run(folder, tmp_path, settings=replace(SETTINGS, steps=3))
    draw = Image.new("L", (8, 8))
    draw.save(folder / "a" / "new.png")
    with pytest.raises(RunError, match="data changed"):
        run(folder, tmp_path)
    before = len(steps.gradients)
    run(folder, tmp_path, restart=True, compose=lambda total: True)
    assert len(steps.gradients) == before + STEPS
    assert len(read_ledger(ledger_of(folder))) == 2


def test_data_that_change_while_they_are_read_are_not_distilled(
    folder: Path, tmp_path: Path, steps: Steps, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One image takes the place of others: in a batch, its person would count several times."""
    first, *others = sorted(folder.rglob("*.png"))
    kind = type(open_source(folder))
    batches = kind.batches

    def written_to(source: Any, *place: int) -> Iterator[Batch]:  # noqa: ANN401
        shutil.copy(first, others[-1])
        return batches(source, *place)

    monkeypatch.setattr(kind, "batches", written_to)
    with pytest.raises(DataError, match=r"the data changed while they were read, .* start again"):
        run(folder, tmp_path)
    assert steps.batches == []
    assert not (tmp_path / "release.h5").exists()
    monkeypatch.undo()
    assert run(folder, tmp_path).guarantee.total_releases == 1  # nothing was spent before


def test_nothing_is_spent_on_records_that_cannot_be_read(
    folder: Path, tmp_path: Path, dpntk: Command
) -> None:
    """Else a total that is published says that one of them could not be."""
    damaged = sorted(folder.rglob("*.png"))[-1]
    content = damaged.read_bytes()
    damaged.write_bytes(content[: len(content) // 2])
    with pytest.raises(DataError, match="cut short"):
        run(folder, tmp_path)
    assert not ledger_of(folder).exists()
    damaged.write_bytes(content)
    assert run(folder, tmp_path).guarantee.total_releases == 1


def test_a_second_process_is_refused_and_leaves_the_first_ones_folder(tmp_path: Path) -> None:
    """Even if the first one has not written its plan yet."""
    first, second = (RunFolder(tmp_path / "release.h5") for _ in range(2))
    with first.held():
        with pytest.raises(RunError, match="another process is distilling there"), second.held():
            pytest.fail("two processes at once")
        assert (first.path / "lock").exists()
    assert not first.path.exists()


def test_what_an_unfinished_clean_up_has_left_is_not_taken_up(
    folder: Path, tmp_path: Path, steps: Steps
) -> None:
    """A program that died while it deleted its folder: the plan goes first."""
    steps.die_at = 4
    with pytest.raises(RunError, match="interrupted"):
        run(folder, tmp_path)
    (tmp_path / ".release.h5.distill/plan.json").unlink()
    made = run(folder, tmp_path, compose=lambda total: True)
    assert len(steps.gradients) == 4 + STEPS
    assert made.settings["steps_lost"] == 0
    assert made.guarantee.total_releases == 2


def test_no_step_of_a_run_is_taken_again_if_a_restart_dies(
    folder: Path, tmp_path: Path, steps: Steps, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between what it throws away and its own plan: the earlier run must not begin anew."""
    steps.die_at = 4
    with pytest.raises(RunError, match="interrupted"):
        run(folder, tmp_path)

    def die(*_: object) -> None:
        raise RunError("killed")

    with monkeypatch.context() as patched:
        patched.setattr(RunFolder, "_write", die)
        with pytest.raises(RunError, match="killed"):
            run(folder, tmp_path, restart=True, compose=lambda total: True)
    made = run(folder, tmp_path, compose=lambda total: True)
    entries = {entry.release_id for entry in read_ledger(ledger_of(folder))}
    assert made.guarantee.total_releases == len(entries) == 3


def test_who_finds_a_run_at_work_leaves_its_folder_alone(
    folder: Path, tmp_path: Path, steps: Steps
) -> None:
    """Also before the run has a plan, while its owner is asked about the total."""
    run(folder, tmp_path, output=tmp_path / "first.h5")

    def meanwhile(_: object) -> bool:
        with pytest.raises(RunError, match="another process"):
            run(folder, tmp_path, compose=lambda total: True)
        return True

    run(folder, tmp_path, compose=meanwhile)
    assert len(read_ledger(ledger_of(folder))) == 2
    assert len(steps.gradients) == 2 * STEPS


def test_a_folder_that_is_removed_while_one_waits_for_it_is_made_anew(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lock on a file that is gone keeps nobody else out."""
    work, right = tmp_path / ".release.h5.distill", fcntl.flock
    seen: list[int] = []

    def removed_before(descriptor: int, operation: int) -> None:
        if not seen:
            seen.append(os.fstat(descriptor).st_ino)
            shutil.rmtree(work)
        right(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", removed_before)
    with RunFolder(tmp_path / "release.h5").held():
        held = os.stat(work / "lock")
        with (work / "lock").open() as other, pytest.raises(BlockingIOError):
            right(other.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    assert seen
    assert held.st_nlink == 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--eps", 0), "--eps 0: it must be a positive number"),
        (("--eps", 1, "--delta", 0.5), "not below one over the number of records"),
        (("--eps", 1, "--sampling-prob", 2), "--sampling-prob 2"),
        (("--eps", 1, "--clip-norm", 0), "--clip-norm 0"),
        (("--eps", 1, "--clip-norm", 1e-310), "it must be from 1e-06 to 1e+06"),
        (("--eps", 1, "--ridge", 1e-30), "--ridge 1e-30: it must be from 1e-06 to 1000"),
        (("--eps", 1, "--per-class", 0), "--per-class 0"),
        (("--eps", 1, "--per-class", 10_000), "choose a smaller --per-class"),
        (("--eps", 1e6, "--delta", 1e-3, "--steps", 1), "than 1 steps at a rate"),
        (("--eps", 1, "--accept-from-data"), "means nothing without --schema"),
    ],
)
def test_bad_numbers_are_refused_in_one_line(
    dpntk: Command, folder: Path, options: tuple[object, ...], words: str
) -> None:
    assert words in refusal(dpntk, "distill", folder, *options)
    assert not ledger_of(folder).exists()
    assert not list(folder.parent.glob(".release*"))


def test_a_link_to_a_ledger_leads_to_the_one_that_counts(dpntk: Command, folder: Path) -> None:
    link = folder.parent / "link.json"
    link.symlink_to(ledger_of(folder))
    assert dpntk("distill", folder, *OPTIONS, "--ledger", link).code == 0
    assert len(read_ledger(ledger_of(folder))) == 1
    assert "distilled before" in refusal(dpntk, "distill", folder, *OPTIONS, "-o", "two.h5")


def parts_of(folder: Path) -> Path:
    """A folder whose part for training is the other folder, beside one for tests."""
    whole = folder.with_name("whole")
    whole.mkdir()
    folder.rename(whole / "train")
    shutil.copytree(whole / "train", whole / "test")
    return whole


def test_a_part_has_one_ledger_whichever_folder_is_named(dpntk: Command, folder: Path) -> None:
    whole = parts_of(folder)
    first = dpntk("distill", whole, *OPTIONS)
    assert first.code == 0
    assert first.stderr.count("and passed over test beside it") == 1
    assert not ledger_of(whole).exists()
    again = ("distill", whole / "train", *OPTIONS, "-o", "two.h5")
    assert "these records were distilled before" in refusal(dpntk, *again)
    assert dpntk(*again, "--compose").code == 0
    assert len(read_ledger(ledger_of(whole / "train"))) == 2
    assert dpntk("distill", whole / "test", *OPTIONS, "-o", "three.h5").code == 0
    assert "name the ledger of one" in refusal(dpntk, "budget", whole)
    ledger_of(whole / "test").unlink()
    for named in (whole, whole / "train", ledger_of(whole / "train")):
        shown = json.loads(dpntk("budget", named, "--json").stdout)
        assert len(shown["releases"]) == 2


def test_a_ledger_of_the_whole_folder_counts_for_its_parts(dpntk: Command, folder: Path) -> None:
    """That is where it lay before."""
    whole = parts_of(folder)
    assert dpntk("distill", whole, *OPTIONS).code == 0
    ledger_of(whole / "train").rename(ledger_of(whole))
    (before,) = read_ledger(ledger_of(whole))
    for named in (whole, whole / "train"):
        again = ("distill", named, *OPTIONS, "-o", "two.h5", "-q")
        assert "these records were distilled before" in refusal(dpntk, *again)
    made = dpntk(*again, "--compose")
    assert made.code == 0
    (after,) = read_ledger(ledger_of(whole / "train"))
    assert read_all(ledger_of(whole / "train")) == (before, after)
    assert open_any("two.h5", Acceptance()).release.guarantee.total_releases == 2
    total = sampled_epsilon([run_of(before), run_of(after)], 1e-3)
    for named in (whole, whole / "train", ledger_of(whole / "train")):
        shown = dpntk("budget", named)
        assert f"spent: epsilon {rounded_up(total)} at delta" in shown.stdout
        assert "of the whole folder, are counted as well" in shown.stdout
    ledger_of(whole).write_text("{}")
    assert "the ledger cannot be read" in refusal(dpntk, *again, "--compose", "--overwrite")


def test_simultaneous_entries_all_count(tmp_path: Path) -> None:
    """Each process looks at the ledger, works out a total, and writes it anew."""
    ledger, step = tmp_path / "ledger.json", SampledGaussian(1.0, 20.0, 1)
    children = []
    for number in range(6):
        if not (child := os.fork()):
            try:
                enter(ledger, Spending(f"{number}", "now", 1.0, 1e-3, step), lambda total: True)
            finally:
                os._exit(0)
        children.append(child)
    for child in children:
        os.waitpid(child, 0)
    assert sorted(entry.release_id for entry in read_ledger(ledger)) == list("012345")


def test_a_damaged_ledger_stops_everything(dpntk: Command, folder: Path) -> None:
    ledger_of(folder).write_text("{}")
    assert "the ledger cannot be read" in refusal(dpntk, "distill", folder, *OPTIONS)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("release_id", 5), ("created", None), ("epsilon", "1"), ("epsilon", -1.0), ("epsilon", 0),
        ("epsilon", True), ("delta", "y"), ("delta", 0.0), ("delta", 1.0), ("steps", 10.5),
        ("steps", True), ("rate", "q"), ("multiplier", []),
    ],
)  # fmt: skip
def test_a_ledger_with_an_impossible_entry_is_one_line(
    dpntk: Command, folder: Path, name: str, value: object
) -> None:
    """Without the check its distillation might seem to have spent nothing, or less."""
    entry = Spending("a", "now", 1.0, 1e-3, SampledGaussian(0.1, 1.0, 10)).to_json()
    (entry["run"] if name in entry["run"] else entry)[name] = value
    document = {"format": "dpntk ledger of distillations 1", "entries": [entry]}
    ledger_of(folder).write_text(json.dumps(document))
    refused(dpntk("budget", folder), "the ledger cannot be read", "nobody knows what was spent")


def test_another_entry_under_the_same_id_counts_as_well(tmp_path: Path) -> None:
    """Whoever put it there, the ledger cannot tell which of the two was spent."""
    ledger, steps = tmp_path / "train.ledger.json", SampledGaussian(0.1, 1.0, 10)
    entry = Spending("a", "now", 5.0, 1e-3, steps)
    less = replace(entry, epsilon=0.01, run=replace(steps, noise_multiplier=100.0))
    for later in (entry, less, entry, less):
        total = enter(ledger, later, lambda total: True)
    assert read_all(ledger) == (entry, less)
    assert total.releases == 2
    assert total.epsilon >= spent_by([entry], 1e-3)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"seed": 2**64}, "seed=18446744073709551616: a whole number from 0 to 4,294,967,295 "),
        ({"seed": -1}, "seed=-1: a whole number from 0 "),
        ({"centre": 256}, "centre=256: it must be from 0 to 255"),
        ({"averaging": 1.0}, "averaging=1: it must be from 0 to below 1"),
        ({"smoothing": 17.0}, "smoothing=17: it must be from 0 to 16"),
    ],
)
def test_settings_out_of_range_are_refused_by_name(wrong: dict[str, Any], message: str) -> None:
    """Before anything is spent on them."""
    with pytest.raises(BudgetError, match=message):
        Settings(**wrong)


def test_a_total_is_never_below_what_the_latest_run_says() -> None:
    """That is above what it spends; and a reader would refuse such a total."""
    step = SampledGaussian(0.1, 1.0, 10)
    hardly = Spending("a", "2026", 1e-3, 1e-3, SampledGaussian(0.001, 4000.0, 1))
    latest = Spending("b", "2026", sampled_epsilon([step], 1e-3) * 1.005, 1e-3, step)
    assert total_of_distillations([hardly, latest], latest).epsilon == latest.epsilon
    assert total_of_distillations([latest, hardly], hardly).epsilon < latest.epsilon
    assert total_of_distillations([hardly, latest], latest, 1e-3).epsilon == latest.epsilon
    elsewhere = total_of_distillations([hardly, latest], latest, 1e-5)
    assert elsewhere.delta == 1e-5
    assert elsewhere.epsilon == spent_by([hardly, latest], 1e-5)


def test_damaged_progress_is_not_continued(folder: Path, tmp_path: Path, steps: Steps) -> None:
    steps.die_at = 3
    with pytest.raises(RunError, match="interrupted"):
        run(folder, tmp_path)
    work = tmp_path / ".release.h5.distill"
    damages: list[Callable[[], object]] = [
        (work / "begun").unlink,  # would lose count of the steps
        lambda: (work / "begun").write_text("1"),
        lambda: (work / "state.safetensors").write_bytes(b"no"),
        lambda: (work / "plan.json").write_text("["),
    ]
    kept = tmp_path / "kept"
    shutil.copytree(work, kept)
    for damage in damages:
        damage()
        with pytest.raises(RunError, match="damaged"):
            run(folder, tmp_path)
        shutil.copytree(kept, work, dirs_exist_ok=True)


def test_points_learn_what_tells_the_classes_apart(tmp_path: Path) -> None:
    """Three classes of bright stripes: with little noise a few steps are enough."""
    records, labels = draw_records(300)
    images = records.reshape(-1, 8, 8) // 4
    for label in range(3):
        images[labels == label, 2 * label : 2 * label + 2] = 220
    np.savez(tmp_path / "data.npz", x=images, y=labels)
    made = distill(
        open_source(tmp_path / "data.npz", SourceOptions(classes=3)),
        str(tmp_path / "release.h5"),
        str(tmp_path / "ledger.json"),
        epsilon=20.0,
        delta=1e-4,
        settings=Settings(
            per_class=1, sampling_prob=0.5, steps=30, smoothing=0.0, learning_rate=0.05
        ),
    )
    for label in range(3):
        rows = made.release.points[label].reshape(8, 8)[:6].mean(1).reshape(3, 2).mean(1)
        assert rows.argmax() == label
    read = open_any(tmp_path / "release.h5")
    assert (made.digest, made.signed_by, made.path) == (read.digest, read.signed_by, read.path)


def test_tables_are_distilled_and_written_as_tables(dpntk: Command, tmp_path: Path) -> None:
    rows = ["age,colour,sold"]
    rows += [f"{20 + i % 50},{'red' if i % 3 else 'blue'},{i % 2}" for i in range(60)]
    (tmp_path / "data.csv").write_text("\n".join(rows) + "\n")
    assert dpntk("schema", "data.csv", "--label", "sold").code == 0
    table = ("--schema", "schema.toml", "--accept-from-data")
    assert dpntk("distill", "data.csv", *OPTIONS, *table).code == 0
    assert dpntk("generate").code == 0
    written = (tmp_path / "synthetic/table.csv").read_text().splitlines()
    assert written[0] == "age,colour,sold"
    assert len(written) == 5
    assert {line.split(",")[1] for line in written[1:]} <= {"red", "blue"}
    assert "nothing to train" in refusal(dpntk, "generate", "--steps", 3)
    assert "--lr: the release is of a distilled set" in refusal(dpntk, "generate", "--lr", 0.1)
    assert dpntk("evaluate", "--test", "data.csv").code == 0
    rows = json.loads((tmp_path / "evaluation.json").read_text())["rows"]
    assert rows[1]["trained_on"] == "synthetic (epsilon 2): kernel regression"
    source = TableSource.open(tmp_path / "data.csv", read_schema(
        tmp_path / "schema.toml", accept_from_data=True
    ))  # fmt: skip
    provenance = json.loads((tmp_path / "synthetic/provenance.json").read_text())
    points = read_points(tmp_path / "synthetic", provenance, 2, source.schema.record_size)
    batch = next(iter(source.batches(60)))
    outputs = points.outputs(batch.records)[:, 1]
    assert rows[1]["ROC"] == pytest.approx(roc_auc_score(batch.labels == 1, outputs))


def test_it_signs_with_the_key_that_it_is_given(folder: Path, tmp_path: Path) -> None:
    key: SigningKey = own_key()
    run(folder, tmp_path)
    assert open_any(tmp_path / "release.h5").signed_by.fingerprint == key.public.fingerprint


class Miscounted:
    """A source of one's own that says of records how many they are, and does not know."""

    def __init__(self, records: Source, count: int) -> None:
        self._records, self._count = records, count
        self.schema = records.schema

    def __len__(self) -> int:
        return self._count

    def batches(self, size: int, start: int = 0, stop: int | None = None) -> Iterator[Batch]:
        return self._records.batches(size, start, stop)

    def fingerprint(self) -> str:
        return self._records.fingerprint()


@pytest.mark.parametrize("more", [-1, 1])
def test_records_are_as_many_as_their_source_says(tmp_path: Path, more: int) -> None:
    """Otherwise what memory held before would count as records."""
    images, labels = draw_records(20)
    records = open_source((images, labels), SourceOptions(classes=3))
    output, ledger = tmp_path / "release.h5", tmp_path / "ledger.json"
    with pytest.raises(DataError, match="not as many records as the data say"):
        distill(
            Miscounted(records, 20 + more), output, ledger,
            epsilon=2.0, delta=1e-3, settings=SETTINGS,
        )  # fmt: skip
    assert not output.exists()
