"""Whatever interrupts a pass, and however many processes share it, the same bits come out."""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest

from dpntk.common.errors import OutputError, RunError, SchemaError
from dpntk.common.runtime.ranks import Ranks
from dpntk.common.sources.options import SourceOptions
from dpntk.embed import TangentOptions, embed, load_embedding
from dpntk.embed.exact.grid import DEFAULT_CAPACITY, Grid
from dpntk.embed.feature_options.kinds import options_for
from dpntk.embed.run import worker as counting
from dpntk.embed.run.checkpoint import Progress, Share, load_progress, save_progress, split
from dpntk.embed.run.interval import CheckpointInterval
from dpntk.embed.run.job import Job
from dpntk.embed.run.plan import RunPlan
from dpntk.embed.run.work_folder import NothingLeft, WorkFolder
from dpntk.embed.sums.file import Embedding
from dpntk.embed.sums.totals import Totals
from tests.common.storage.test_atomic import full_disk
from tests.conftest import Command, refused
from tests.helpers.processes import (
    CHUNKS,
    RECORDS,
    Gate,
    embed_arguments,
    embed_in_a_child,
    finish,
    kill_at,
    start,
    write_records,
)

GRID = Grid.for_capacity(255, DEFAULT_CAPACITY)
FSYNCS = 2 + 2 * (CHUNKS - 1) + 2
"""Calls in a pass, two for each file: plan, checkpoints of all chunks but the last, embedding."""
WORK = "dpntk.embed.run.work_folder.WorkFolder"
ADD = "dpntk.embed.sums.accumulate.ClassSums.add"
SAVE = "dpntk.embed.run.worker.save_progress"
SAVE_WHOLE = "dpntk.embed.run.work_folder.save_progress"
WRITE = "dpntk.embed.commands.running.save_embedding"


def interrupt(many_records: Path, output: Path, *, chunks: int = 5) -> Path:
    """Kill a pass after some chunks; returns its folder of work."""
    # Two calls for the plan, two for each checkpoint: the file, and its folder.
    child = start(
        embed_arguments(many_records, output), prepare=kill_at("os.fsync", 2 + 2 * chunks + 1)
    )
    assert finish(child) == -signal.SIGKILL
    return output.with_name(f".{output.name}.work")


def names(folder: Path) -> list[str]:
    """Of what is there, but for the lock file that stays."""
    return sorted(file.name for file in folder.iterdir() if file.name != ".dpntk.lock")


def test_the_result_is_that_of_the_sums_in_memory(many_records: Path, undisturbed: bytes) -> None:
    path = many_records.with_name("undisturbed.h5")
    in_memory, from_file = (
        embed(many_records, TangentOptions(front="pixels", width=5), SourceOptions(classes=3)),
        load_embedding(path),
    )
    assert np.array_equal(in_memory.sums, from_file.sums)
    assert np.array_equal(in_memory.counts, from_file.counts)
    assert from_file.records == RECORDS


def test_a_killed_pass_is_continued_to_the_bit(
    many_records: Path, undisturbed: bytes, tmp_path: Path
) -> None:
    output = tmp_path / "embedding.h5"
    work = interrupt(many_records, output)
    assert (work / "share-1-of-1.checkpoint").exists()
    assert embed_in_a_child(embed_arguments(many_records, output)) == 0
    assert output.read_bytes() == undisturbed


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize(
    ("function", "call"),
    [
        (f"{WORK}._begin", 1),
        (f"{WORK}._hold", 1),
        (ADD, 1),
        (ADD, CHUNKS // 2),
        (ADD, CHUNKS),
        (SAVE, CHUNKS // 2),
        (f"{WORK}._join", 1),
        (WRITE, 1),
        (f"{WORK}.remove", 1),
        ("pathlib.Path.rename", 1),
    ],
)
def test_killed_before_or_after_what_it_does(
    many_records: Path, undisturbed: bytes, tmp_path: Path, function: str, call: int, after: bool
) -> None:
    output = tmp_path / "embedding.h5"
    stop = kill_at(function, call, after=after)
    child = start(embed_arguments(many_records, output), prepare=stop)
    assert finish(child) == -signal.SIGKILL
    if names(tmp_path) != ["embedding.h5"]:
        assert embed_in_a_child(embed_arguments(many_records, output)) == 0
    assert output.read_bytes() == undisturbed
    assert names(tmp_path) == ["embedding.h5"]


@pytest.mark.parametrize("fatal", [*range(1, 9), *range(FSYNCS - 5, FSYNCS + 2)])
def test_killed_at_each_step(
    many_records: Path, undisturbed: bytes, tmp_path: Path, fatal: int
) -> None:
    """At one call of fsync: the plan, its folder, a checkpoint, its folder, ..., the embedding."""
    output = tmp_path / "embedding.h5"
    stop = kill_at("os.fsync", fatal)
    code = finish(start(embed_arguments(many_records, output), prepare=stop))
    assert code == (0 if fatal > FSYNCS else -signal.SIGKILL)
    if names(tmp_path) != ["embedding.h5"]:
        assert embed_in_a_child(embed_arguments(many_records, output)) == 0
    assert output.read_bytes() == undisturbed
    assert names(tmp_path) == ["embedding.h5"]


@pytest.mark.parametrize("deleted", range(3))
def test_killed_while_deleting_its_progress(
    many_records: Path, undisturbed: bytes, tmp_path: Path, dpntk: Command, deleted: int
) -> None:
    """The embedding is written, the sensitive checkpoints are still there, under another name."""

    def die_while_deleting() -> None:
        really = shutil.rmtree

        def rmtree(folder: Path, ignore_errors: bool) -> None:
            for file in sorted(folder.iterdir())[:deleted]:
                file.unlink()
            if folder.suffix == ".old":
                os.kill(os.getpid(), signal.SIGKILL)
            really(folder, ignore_errors)

        pytest.MonkeyPatch().setattr(shutil, "rmtree", rmtree)

    output = tmp_path / "embedding.h5"
    child = start(embed_arguments(many_records, output), prepare=die_while_deleting)
    assert finish(child) == -signal.SIGKILL
    assert output.read_bytes() == undisturbed
    assert [name.endswith(".old") for name in names(tmp_path)] == [True, False]

    outcome = dpntk(*embed_arguments(many_records, output))

    assert outcome.code == 0
    assert "holds the embedding of these records already" in outcome.stderr
    assert output.read_bytes() == undisturbed
    assert names(tmp_path) == ["embedding.h5"]


def test_the_same_command_goes_on_and_says_so(
    many_records: Path, undisturbed: bytes, tmp_path: Path, dpntk: Command
) -> None:
    work = interrupt(many_records, tmp_path / "embedding.h5")
    assert work.stat().st_mode & 0o777 == 0o700
    assert {file.stat().st_mode & 0o777 for file in work.iterdir()} == {0o600}
    before = json.loads((work / "plan.json").read_text())["plan"]
    assert before["records"] == RECORDS

    outcome = dpntk(*embed_arguments(many_records, tmp_path / "embedding.h5"))

    assert outcome.code == 0
    assert "note: going on after " in outcome.stderr
    assert "of 60,000 records, which were counted before an interruption" in outcome.stderr
    assert (tmp_path / "embedding.h5").read_bytes() == undisturbed
    assert names(tmp_path) == ["embedding.h5"]


def test_only_what_came_after_the_checkpoint_is_read_again(
    many_records: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "embedding.h5"
    work = interrupt(many_records, output)
    run = json.loads((work / "plan.json").read_text())
    assert run["shares"] == 1
    with WorkFolder(output) as folder:
        job = captured_job(many_records)
        begun: list[int] = []
        really = type(job.source).batches

        def batches(self: object, size: int, start: int = 0, stop: int | None = None) -> object:
            begun.append(start)
            return really(self, size, start, stop)  # type: ignore[arg-type]

        monkeypatch.setattr(type(job.source), "batches", batches)
        folder.carry_out(job)
    assert begun[0] == 5 * job.class_sums().chunk_size


def captured_job(many_records: Path) -> Job:
    """The job that `embed` would carry out."""
    jobs: list[Job] = []

    def capture(job: Job) -> Embedding:
        jobs.append(job)
        raise NothingLeft("", written=False)

    with pytest.raises(NothingLeft):
        embed(
            many_records,
            TangentOptions(front="pixels", width=5),
            SourceOptions(classes=3),
            carry_out=capture,
        )
    return jobs[0]


def test_what_killed_processes_leave_is_cleared_away(
    many_records: Path, undisturbed: bytes, tmp_path: Path, dpntk: Command
) -> None:
    """Files cut short by a power failure lie under temporary names, and go."""
    output = tmp_path / "embedding.h5"
    work = interrupt(many_records, output)
    whole = (work / "share-1-of-1.checkpoint").read_bytes()
    for cut in (0, 100, 700, len(whole) - 1):
        (work / f".share-1-of-1.checkpoint.cut{cut}.tmp").write_bytes(whole[:cut])
    (tmp_path / ".embedding.h5.cut.tmp").write_bytes(whole[:1000])
    (tmp_path / "..embedding.h5.work.1.old").mkdir()
    (tmp_path / ".embedding.h5.work.1.old").mkdir()
    assert dpntk(*embed_arguments(many_records, output)).code == 0
    assert output.read_bytes() == undisturbed
    assert names(tmp_path) == ["..embedding.h5.work.1.old", "embedding.h5"]


def test_a_killed_process_that_had_finished_is_cleaned_up_after(
    many_records: Path, undisturbed: bytes, tmp_path: Path, dpntk: Command
) -> None:
    output = tmp_path / "embedding.h5"
    interrupt(many_records, output)
    output.write_bytes(undisturbed)  # as if it had died between writing this and cleaning up
    outcome = dpntk(*embed_arguments(many_records, output))
    assert outcome.code == 0
    assert "holds the embedding of these records already" in outcome.stderr
    assert names(tmp_path) == ["embedding.h5"]
    outcome = dpntk(*embed_arguments(many_records, output))
    assert outcome.code == 1
    assert "already exists" in outcome.stderr


def test_a_full_disk_costs_the_checkpoint_and_not_the_pass(
    many_records: Path,
    undisturbed: bytes,
    tmp_path: Path,
    dpntk: Command,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    attempts: list[int] = []

    def save(progress: Progress, path: Path, run: str) -> None:
        attempts.append(progress.done)
        if len(attempts) in {2, 3}:
            with full_disk():
                save_progress(progress, path, run)
        else:
            save_progress(progress, path, run)

    monkeypatch.setattr(counting, "save_progress", save)
    outcome = dpntk(*embed_arguments(many_records, tmp_path / "embedding.h5"))
    assert outcome.code == 0
    assert outcome.stderr.count("no checkpoint, going on without: cannot write") == 1
    assert len(attempts) > 5
    assert (tmp_path / "embedding.h5").read_bytes() == undisturbed


def test_a_full_disk_and_then_a_kill_lose_one_chunk(
    many_records: Path, undisturbed: bytes, tmp_path: Path
) -> None:
    """The checkpoint that could not be written leaves the one before it as it was."""
    output = tmp_path / "embedding.h5"
    reached: list[int] = []

    def prepare() -> None:
        def save(progress: Progress, path: Path, run: str) -> None:
            reached.append(progress.done)
            if len(reached) == 4:
                with pytest.raises(OutputError), full_disk():
                    save_progress(progress, path, run)
                os.kill(os.getpid(), signal.SIGKILL)
            save_progress(progress, path, run)

        pytest.MonkeyPatch().setattr(counting, "save_progress", save)

    assert finish(start(embed_arguments(many_records, output), prepare=prepare)) == -signal.SIGKILL
    work = tmp_path / ".embedding.h5.work"
    (share,) = split(RECORDS, 1)
    run = load_embedding(many_records.with_name("undisturbed.h5")).run
    found = load_progress(work / "share-1-of-1.checkpoint", share, GRID, run)
    assert found.done == 3 * captured_job(many_records).class_sums().chunk_size
    assert names(work) == ["lock", "plan.json", "share-1-of-1.checkpoint", "share-1-of-1.lock"]
    assert embed_in_a_child(embed_arguments(many_records, output)) == 0
    assert output.read_bytes() == undisturbed


def test_the_pause_between_checkpoints_grows_with_their_cost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    interval = CheckpointInterval(None)
    ends = []
    for cost in (0.1, 2.0):
        while not interval.elapsed:
            now += 1.0
        ends.append(now)
        with interval.restarted():
            now += cost
    while not interval.elapsed:
        now += 1.0
    assert ends == [30.0, 60.1]  # 30 seconds apart
    assert now == pytest.approx(162.1)  # 2 seconds are 2 % of 100


# Refusals.


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--width", "6"], 'feature map width is "6" and was "5"; add'),
        (["--feature-seed", "1"], "the random weights are others (--feature-seed)"),
        (["--classes", "4"], "feature map outputs is 4 and was 3"),
        (["--capacity", "3000000"], "grid capacity is 3000000 and was 1048576"),
        (["--image-size", "9"], "schema side is 9 and was 8"),
        (["--grey"], 'schema channels origin is "declared" and was null'),
    ],
)
def test_other_options_are_refused_and_named(
    many_records: Path, tmp_path: Path, dpntk: Command, options: list[str], words: str
) -> None:
    work = interrupt(many_records, tmp_path / "embedding.h5")
    before = {file: file.read_bytes() for file in work.iterdir()}
    outcome = dpntk(*embed_arguments(many_records, tmp_path / "embedding.h5", *options))
    refused(outcome, f"{work}: holds the progress of another pass: ", words, "--restart")
    assert {file: file.read_bytes() for file in work.iterdir()} == before


def test_changed_data_are_refused(tmp_path: Path, dpntk: Command) -> None:
    records = write_records(tmp_path / "data.npz")
    interrupt(records, tmp_path / "embedding.h5")
    write_records(tmp_path / "data.npz", seed=1)
    outcome = dpntk(*embed_arguments(records, tmp_path / "embedding.h5"))
    refused(outcome, "the data have changed", "--restart")


@pytest.mark.parametrize("what", ["code", "package", "tables", "format"])
def test_another_version_is_refused(
    many_records: Path, tmp_path: Path, dpntk: Command, what: str
) -> None:
    work = interrupt(many_records, tmp_path / "embedding.h5")
    stored = json.loads((work / "plan.json").read_text())
    match what:
        case "code":
            stored["plan"]["code"]["source"] = "0" * 64
            words = "the code of dpntk has changed"
        case "package":
            stored["plan"]["code"]["numpy"] = "1.0"
            words = "and was 1.0"
        case "tables":
            stored["plan"]["tables"] = "0" * 64
            words = "this machine's mathematics library rounds differently"
        case _:
            stored["plan"]["something"] = 1
            words = "another version of dpntk"
    (work / "plan.json").write_text(json.dumps(stored))
    refused(dpntk(*embed_arguments(many_records, tmp_path / "embedding.h5")), words, "--restart")


@pytest.mark.parametrize("features", ["ntk", "rff", "hermite"])
def test_tables_of_another_machine_make_another_plan(
    many_records: Path, features: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One unit in the last place of one entry is enough."""
    jobs: list[Job] = []

    def capture(job: Job) -> Embedding:
        jobs.append(job)
        raise NothingLeft("", written=False)

    with pytest.raises(NothingLeft):
        embed(many_records, options_for(features), SourceOptions(classes=3), carry_out=capture)
    plan = RunPlan.of(jobs[0])
    assert RunPlan.of(jobs[0]).digest == plan.digest
    really_cos, really_exp = np.cos, np.exp

    def off_by_one(function: Callable[..., object]) -> Callable[..., object]:
        def other(values: object) -> object:
            result = np.array(function(values))
            result.flat[1] = np.nextafter(result.flat[1] * (1 - 1e-9), 0)
            return result

        return other

    monkeypatch.setattr(np, "cos", off_by_one(really_cos))
    monkeypatch.setattr(np, "exp", off_by_one(really_exp))
    same = RunPlan.of(jobs[0]).digest == plan.digest
    assert same == (features == "ntk")


def test_restart_begins_anew(
    many_records: Path, undisturbed: bytes, tmp_path: Path, dpntk: Command
) -> None:
    interrupt(many_records, tmp_path / "embedding.h5")
    outcome = dpntk(*embed_arguments(many_records, tmp_path / "embedding.h5", "--restart"))
    assert outcome.code == 0
    assert "going on" not in outcome.stderr
    assert (tmp_path / "embedding.h5").read_bytes() == undisturbed
    assert names(tmp_path) == ["embedding.h5"]


@pytest.mark.parametrize("cut", [0, 300, 700, -1])
def test_a_damaged_checkpoint_is_refused(
    many_records: Path, tmp_path: Path, dpntk: Command, cut: int
) -> None:
    work = interrupt(many_records, tmp_path / "embedding.h5")
    file = work / "share-1-of-1.checkpoint"
    content = bytearray(file.read_bytes())
    if cut == -1:
        content[-9] ^= 1  # a bit of a sum or a count
    else:
        del content[cut:]
    file.write_bytes(content)
    outcome = dpntk(*embed_arguments(many_records, tmp_path / "embedding.h5"))
    refused(outcome, "share-1-of-1.checkpoint", "--restart")


def test_a_damaged_plan_is_refused(many_records: Path, tmp_path: Path, dpntk: Command) -> None:
    work = interrupt(many_records, tmp_path / "embedding.h5")
    for damage in (b"{", b"[]", b'{"plan":{},"shares":0}'):
        (work / "plan.json").write_bytes(damage)
        refused(
            dpntk(*embed_arguments(many_records, tmp_path / "embedding.h5")), "plan.json: damaged"
        )


def test_a_second_process_on_the_same_output_is_refused(
    many_records: Path, undisturbed: bytes, tmp_path: Path, dpntk: Command
) -> None:
    output = tmp_path / "embedding.h5"
    gate = Gate(SAVE)
    child = start(embed_arguments(many_records, output), prepare=gate.prepare)
    gate.wait()
    for more in ([], ["--restart"]):
        outcome = dpntk(*embed_arguments(many_records, output, *more))
        refused(outcome, "another process is at work on", "embedding.h5")
    gate.open()
    assert finish(child) == 0
    assert output.read_bytes() == undisturbed


def test_an_error_without_progress_leaves_no_folder(tmp_path: Path, dpntk: Command) -> None:
    records = write_records(tmp_path / "data.npz", count=50)
    outcome = dpntk(*embed_arguments(records, tmp_path / "embedding.h5", "--classes", "2"))
    refused(outcome, "has a label that is too large", "('2')")
    assert names(tmp_path) == ["data.npz"]


def test_an_interruption_says_what_is_safe(
    many_records: Path, tmp_path: Path, dpntk: Command, monkeypatch: pytest.MonkeyPatch
) -> None:

    def save(progress: Progress, path: Path, run: str) -> None:
        save_progress(progress, path, run)
        if progress.done > RECORDS / 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(counting, "save_progress", save)
    outcome = dpntk(*embed_arguments(many_records, tmp_path / "embedding.h5"))
    refused(outcome, "interrupted: ", "of 60,000 records are counted and saved")
    monkeypatch.undo()


# Several processes.


def test_shares_hold_every_record_once() -> None:
    for records in (1, 2, 7, 60_000):
        for count in (1, 2, 3, 8, 64):
            shares = split(records, count)
            assert [n for share in shares for n in range(share.start, share.stop)] == [
                *range(records)
            ]
            sizes = [share.size for share in shares]
            assert max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize("ranks", [2, 3])
def test_ranks_write_the_file_that_one_process_writes(
    many_records: Path, undisturbed: bytes, tmp_path: Path, ranks: int
) -> None:
    output = tmp_path / "embedding.h5"
    children = [
        start(embed_arguments(many_records, output), rank=rank, ranks=ranks)
        for rank in range(ranks)
    ]
    assert [finish(child) for child in children] == [0] * ranks
    assert output.read_bytes() == undisturbed
    assert names(tmp_path) == ["embedding.h5"]


def test_ranks_need_not_run_at_the_same_time(
    many_records: Path, undisturbed: bytes, tmp_path: Path
) -> None:
    """Nobody waits for anybody: one after the other does as well, in any order, more than once."""
    output = tmp_path / "embedding.h5"
    for rank in (2, 0, 0):
        assert embed_in_a_child(embed_arguments(many_records, output), rank=rank, ranks=3) == 0
        assert not output.exists()
    for rank in (1, 0, 1, 2):  # what comes after the end finds it, and is content
        assert embed_in_a_child(embed_arguments(many_records, output), rank=rank, ranks=3) == 0
        assert output.read_bytes() == undisturbed
        assert names(tmp_path) == ["embedding.h5"]


@pytest.mark.parametrize(("before", "after"), [(3, 1), (3, 2), (1, 3), (2, 5)])
def test_another_number_of_processes_goes_on(
    many_records: Path, undisturbed: bytes, tmp_path: Path, before: int, after: int
) -> None:
    output = tmp_path / "embedding.h5"
    stop = kill_at("os.fsync", 2 + 2 * 2 + 1)
    finish(start(embed_arguments(many_records, output), rank=0, ranks=before, prepare=stop))
    for rank in range(after):
        assert embed_in_a_child(embed_arguments(many_records, output), rank=rank, ranks=after) == 0
    assert output.read_bytes() == undisturbed
    assert names(tmp_path) == ["embedding.h5"]


@pytest.mark.parametrize("unlucky", range(2))
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize(
    ("function", "call"), [(f"{WORK}._hold", 1), (ADD, 4), (SAVE, 4), (SAVE_WHOLE, 1)]
)
def test_one_of_two_ranks_is_killed_while_the_other_is_at_work(
    many_records: Path,
    undisturbed: bytes,
    tmp_path: Path,
    function: str,
    call: int,
    after: bool,
    unlucky: int,
) -> None:
    output = tmp_path / "embedding.h5"
    arguments = embed_arguments(many_records, output)
    gate = Gate(SAVE, 3)
    other = start(arguments, rank=1 - unlucky, ranks=2, prepare=gate.prepare)
    gate.wait()
    stop = kill_at(function, call, after=after)
    assert finish(start(arguments, rank=unlucky, ranks=2, prepare=stop)) == -signal.SIGKILL
    gate.open()
    assert finish(other) == 0
    if names(tmp_path) != ["embedding.h5"]:
        assert embed_in_a_child(arguments, rank=unlucky, ranks=2) == 0
    assert output.read_bytes() == undisturbed
    assert names(tmp_path) == ["embedding.h5"]


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("function", [f"{WORK}._add_up", WRITE, f"{WORK}.remove"])
def test_the_last_of_two_ranks_is_killed_while_it_adds_up(
    many_records: Path, undisturbed: bytes, tmp_path: Path, function: str, after: bool
) -> None:
    output = tmp_path / "embedding.h5"
    arguments = embed_arguments(many_records, output)
    assert embed_in_a_child(arguments, rank=0, ranks=2) == 0
    stop = kill_at(function, after=after)
    assert finish(start(arguments, rank=1, ranks=2, prepare=stop)) == -signal.SIGKILL
    assert embed_in_a_child(arguments, rank=1, ranks=2) == 0
    assert output.read_bytes() == undisturbed
    assert names(tmp_path) == ["embedding.h5"]


def test_more_processes_than_records(tmp_path: Path) -> None:
    records = write_records(tmp_path / "data.npz", count=3)
    for rank in range(5):
        assert (
            embed_in_a_child(embed_arguments(records, tmp_path / "e.h5"), rank=rank, ranks=5) == 0
        )
    assert load_embedding(tmp_path / "e.h5").records == 3


def test_processes_do_not_restart_one_another(
    many_records: Path, tmp_path: Path, dpntk: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    refused(
        dpntk(*embed_arguments(many_records, tmp_path / "embedding.h5", "--restart")),
        "--restart is for one process: remove",
    )
    with pytest.raises(RunError, match="restart=True is for one process: remove"):
        WorkFolder(tmp_path / "embedding.h5", Ranks(0, 2), restart=True)


def test_a_late_process_may_not_change_the_ceiling(
    many_records: Path,
    undisturbed: bytes,
    tmp_path: Path,
    dpntk: Command,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "embedding.h5").write_bytes(undisturbed)
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    arguments = embed_arguments(many_records, tmp_path / "embedding.h5", "--budget-eps", "2")
    refused(dpntk(*arguments), "with another ceiling")


# Checkpoints.


def some_totals(records: int) -> Totals:
    return Totals(np.arange(12, dtype=np.int64).reshape(4, 3), np.array([records - 2, 1, 1]))


def test_a_checkpoint_cannot_say_that_more_or_less_was_read_than_counted(tmp_path: Path) -> None:
    share = Share(1, 2, 100, 200)
    for done in (99, 149, 151, 201):
        with pytest.raises(SchemaError, match=r"were counted where|none of the share's"):
            Progress(share, done, some_totals(50))
    progress = Progress(share, 150, some_totals(50))
    save_progress(progress, tmp_path / "c", "abc")
    assert load_progress(tmp_path / "c", share, GRID, "abc").totals.digest() == (
        progress.totals.digest()
    )


def test_a_checkpoint_of_another_run_or_share_is_refused(tmp_path: Path) -> None:
    save_progress(Progress(Share(1, 2, 100, 200), 150, some_totals(50)), tmp_path / "c", "abc")
    with pytest.raises(RunError, match="another run"):
        load_progress(tmp_path / "c", Share(1, 2, 100, 200), GRID, "abd")
    with pytest.raises(RunError, match="another share"):
        load_progress(tmp_path / "c", Share(1, 2, 100, 201), GRID, "abc")


def test_a_sum_in_a_checkpoint_that_has_changed_is_noticed(tmp_path: Path) -> None:
    share = Share(1, 1, 0, 50)
    save_progress(Progress(share, 50, some_totals(50)), tmp_path / "c", "abc")
    with h5py.File(tmp_path / "c", "r+") as file:
        file["sums"][0, 0] += 1
    with pytest.raises(RunError, match="its integers have changed"):
        load_progress(tmp_path / "c", share, GRID, "abc")


def test_sums_that_no_integers_or_no_records_make_are_noticed(tmp_path: Path) -> None:
    """Their digest is right: it is of what they become as integers."""
    share, totals = Share(1, 1, 0, 50), some_totals(50)
    save_progress(Progress(share, 50, totals), tmp_path / "c", "abc")
    with h5py.File(tmp_path / "c", "r+") as file:
        sums = file["sums"][...]
        del file["sums"]
        file["sums"] = sums.astype(np.float64)
    with pytest.raises(RunError, match="the sums are not 64-bit integers"):
        load_progress(tmp_path / "c", share, GRID, "abc")
    beyond = Totals(totals.sums + 51 * GRID.units_per_one, totals.counts)
    save_progress(Progress(share, 50, beyond), tmp_path / "c", "abc")
    with pytest.raises(RunError, match="sums that so many records cannot have"):
        load_progress(tmp_path / "c", share, GRID, "abc")


def remove_before_joining(folder: WorkFolder, then: Callable[[], object]) -> None:
    """Let the folder vanish after this process's share is counted."""
    really = folder._join

    def join(*arguments: object) -> Totals:
        folder.remove()
        then()
        return really(*arguments)  # type: ignore[arg-type]

    pytest.MonkeyPatch().setattr(folder, "_join", join)


def test_a_removed_folder_is_noticed(many_records: Path, tmp_path: Path) -> None:
    """A share that is nowhere any more cannot be added up; no embedding without it."""
    output = tmp_path / "embedding.h5"
    assert embed_in_a_child(embed_arguments(many_records, output), rank=0, ranks=2) == 0
    folder = WorkFolder(output, Ranks(1, 2))
    remove_before_joining(folder, lambda: None)
    with pytest.raises(RunError, match="removed while it was in use"):
        folder.carry_out(captured_job(many_records))
    assert names(tmp_path) == []


def test_a_process_that_is_overtaken_is_content(
    many_records: Path, undisturbed: bytes, tmp_path: Path
) -> None:
    output = tmp_path / "embedding.h5"
    folder = WorkFolder(output, Ranks(1, 2))
    remove_before_joining(folder, lambda: output.write_bytes(undisturbed))
    with pytest.raises(NothingLeft, match="was written by another process") as caught:
        folder.carry_out(captured_job(many_records))
    assert caught.value.written
    assert names(tmp_path) == ["embedding.h5"]


def test_only_whole_shares_are_added_up(many_records: Path, tmp_path: Path, dpntk: Command) -> None:
    """A checkpoint under the name of a whole share is not taken for one."""
    output = tmp_path / "embedding.h5"
    child = start(
        embed_arguments(many_records, output), rank=0, ranks=2, prepare=kill_at("os.fsync", 7)
    )
    assert finish(child) == -signal.SIGKILL
    work = tmp_path / ".embedding.h5.work"
    (work / "share-1-of-2.checkpoint").rename(work / "share-1-of-2.whole")
    outcome = dpntk(*embed_arguments(many_records, output))
    refused(outcome, "share-1-of-2.whole: not whole", "--restart")
    assert not output.exists()
