"""A pass over a bucket has the bits of one over a copy, interrupted and divided or not."""

from __future__ import annotations

import signal
from pathlib import Path

import numpy as np
import pytest

from dpntk.common.sources.remote import RemotePath
from dpntk.embed import load_embedding
from tests.conftest import Command, refused
from tests.embed.run.test_work_folder import names
from tests.helpers.data_sets import IMAGES, KINDS, LABELS, write_npy, write_parquet_shards
from tests.helpers.object_storage import KEY, SECRET, replace, upload
from tests.helpers.processes import embed_arguments, embed_in_a_child, finish, kill_at, start
from tests.helpers.tables import CSV

LOCAL_ONLY = "not a path of this machine: from object storage 'dpntk embed' and 'dpntk schema'"


def same_sums(path: Path, other: Path) -> bool:
    ours, theirs = load_embedding(path), load_embedding(other)
    return np.array_equal(ours.sums, theirs.sums) and np.array_equal(ours.counts, theirs.counts)


def everything_in(folder: Path) -> bytes:
    """All files' names and contents."""
    files = [file for file in folder.rglob("*") if file.is_file()]
    return b"".join(f"{file}".encode() + file.read_bytes() for file in files)


def test_a_killed_pass_is_continued_to_the_bit(
    bucket: str, many_records: Path, undisturbed: bytes, tmp_path: Path, dpntk: Command
) -> None:
    address, name = upload(many_records, bucket), bucket.removeprefix("s3://")
    for output, prepare in (
        ("whole.h5", lambda: None),
        ("killed.h5", kill_at("os.fsync", 2 + 2 * 5 + 1)),
    ):
        finish(start(embed_arguments(address, tmp_path / output), prepare=prepare))
    assert (tmp_path / ".killed.h5.work" / "share-1-of-1.checkpoint").exists()
    written = everything_in(tmp_path)
    assert not [word for word in (KEY, SECRET, name, "s3://") if word.encode() in written]
    outcome = dpntk(*embed_arguments(address, Path("killed.h5")))
    assert outcome.code == 0
    assert "of 60,000 records, which were counted before an interruption" in outcome.stderr
    assert (tmp_path / "killed.h5").read_bytes() == (tmp_path / "whole.h5").read_bytes()
    assert same_sums(tmp_path / "whole.h5", many_records.with_name("undisturbed.h5"))
    assert names(tmp_path) == ["killed.h5", "whole.h5"]
    assert not [word for word in (KEY, SECRET) if word in outcome.stderr]


def test_changed_objects_are_refused(
    bucket: str, many_records: Path, tmp_path: Path, dpntk: Command
) -> None:
    address = upload(many_records, bucket)
    stop = kill_at("os.fsync", 2 + 2 * 5 + 1)
    child = start(embed_arguments(address, tmp_path / "e.h5"), prepare=stop)
    assert finish(child) == -signal.SIGKILL
    content = many_records.read_bytes()
    replace(address, content[:200] + bytes([content[200] ^ 1]) + content[201:])
    outcome = dpntk(*embed_arguments(address, Path("e.h5")))
    refused(outcome, "the data have changed (files, sizes or times)", "add --restart")


def test_ranks_write_the_file_that_one_process_writes(
    bucket: str, many_records: Path, undisturbed: bytes, tmp_path: Path
) -> None:
    address = upload(many_records, bucket)
    assert embed_in_a_child(embed_arguments(address, tmp_path / "one.h5")) == 0
    children = [
        start(embed_arguments(address, tmp_path / "two.h5"), rank=rank, ranks=2)
        for rank in range(2)
    ]
    assert [finish(child) for child in children] == [0, 0]
    assert (tmp_path / "one.h5").read_bytes() == (tmp_path / "two.h5").read_bytes()
    assert same_sums(tmp_path / "two.h5", many_records.with_name("undisturbed.h5"))


def test_sites_add_up(bucket: str, tmp_path: Path, dpntk: Command) -> None:
    first = KINDS["tar"](tmp_path / "a", IMAGES[:8], LABELS[:8])
    second = KINDS["npz"](tmp_path / "b", IMAGES[8:], LABELS[8:])
    places = {"here": (first, second), "there": (upload(first, bucket), upload(second, bucket))}
    for where, parts in places.items():
        for number, part in enumerate(parts):
            output = f"{where}-{number}.h5"
            assert dpntk("embed", part, "--classes", 3, "--width", 5, "-o", output).code == 0
        assert dpntk("merge", f"{where}-0.h5", f"{where}-1.h5", "-o", f"{where}.h5").code == 0
    assert same_sums(tmp_path / "here.h5", tmp_path / "there.h5")
    # The same records are recognised, wherever they were read.
    refused(dpntk("merge", "here-0.h5", "there-0.h5", "-o", "twice.h5"), "twice")


def test_what_is_replaced_leaves_no_embedding(
    bucket: str, tmp_path: Path, dpntk: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = upload(write_parquet_shards(tmp_path / "data"), bucket)
    range_of, content = RemotePath.range, (tmp_path / "data").glob("*")
    other = max(file.read_bytes() for file in content)

    def disturbed(path: RemotePath, start: int, stop: int) -> bytes:
        found = range_of(path, start, stop)
        replace(str(path), other + b"PAR1")
        return found

    monkeypatch.setattr(RemotePath, "range", disturbed)
    outcome = dpntk("embed", address, "--classes", 3, "--width", 5, "-o", "e.h5")
    refused(outcome, address, "was replaced while it was read")
    assert names(tmp_path) == ["data"]


def test_a_table_from_its_draft_to_its_embedding(
    bucket: str, tmp_path: Path, dpntk: Command
) -> None:
    (tmp_path / "people.csv").write_text(CSV)
    address = upload(tmp_path / "people.csv", bucket)
    outcome = dpntk("schema", address, "--label", "grade")
    assert outcome.code == 0
    assert f"next: dpntk embed {address} --schema schema.toml" in outcome.stderr
    for data, output in ((address, "there.h5"), ("people.csv", "here.h5")):
        command = ("embed", data, "--schema", "schema.toml", "--accept-from-data", "--width", 5)
        assert dpntk(*command, "-o", output).code == 0
    assert same_sums(tmp_path / "there.h5", tmp_path / "here.h5")


@pytest.mark.parametrize(
    "command",
    [
        "embed data -o {}/e.h5",
        "embed data --schema {}/schema.toml",
        "embed data --module {}/module.pt",
        "schema data -o {}/schema.toml",
        "bounds {}/magnitudes.h5",
        "merge {}/a.h5 b.h5",
        "plan {}/e.h5",
        "release {}/e.h5",
        "release e.h5 -o {}/release.h5",
        "release e.h5 --key {}/key",
        "distill {}/data --eps 1",
        "budget {}/e.h5",
        "inspect {}/release.h5",
        "inspect release.h5 --page {}/page.html",
        "verify {}/release.h5",
        "generate {}/release.h5",
        "generate release.h5 -o {}/synthetic",
        "evaluate {}/synthetic --test data",
        "evaluate synthetic --test {}/data",
        "evaluate synthetic --test data --baseline {}/data",
        "report release.h5 {}/synthetic",
        "audit {}/e.h5",
    ],
)
def test_whatever_is_no_data_is_local(command: str, tmp_path: Path, dpntk: Command) -> None:
    write_npy(tmp_path / "data")
    refused(dpntk(*command.format("s3://ward").split()), "error: s3://ward", LOCAL_ONLY)
    outcome = dpntk(*command.format("s3://key:hunter2@ward").split())
    refused(outcome, "error: s3://...: not a path of this machine")
    assert "hunter2" not in outcome.stderr
    assert names(tmp_path) == ["data"]
