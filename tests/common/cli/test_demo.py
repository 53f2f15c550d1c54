"""Data to try dpntk on: the same for everybody, and taken by what comes next."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from tests.conftest import Command, Outcome, refused


def suggested(made: Outcome) -> list[str]:
    """What comes next, after `dpntk`."""
    (line,) = [line for line in made.stderr.splitlines() if line.startswith("next: dpntk ")]
    return shlex.split(line)[2:]


@pytest.mark.parametrize(
    ("options", "also", "records"),
    [
        (("--table",), ("--schema", "demo/schema.toml"), "embedded 4,000 rows of 6 columns"),
        ((), ("--classes", 10), "embedded 1,438 images of 8x8 pixels"),
    ],
)
def test_what_comes_next_takes_it(
    dpntk: Command, options: tuple[str, ...], also: tuple[object, ...], records: str
) -> None:
    made = dpntk("demo", *options)
    assert made.code == 0, made.stderr
    data = "demo/train.csv" if options else "demo/train.npz"
    assert suggested(made)[:2] == ["embed", data]
    assert records in dpntk("embed", data, *also, "--width", 3).stderr
    assert dpntk("demo", *options, "-o", "again").code == 0
    for file in Path("demo").iterdir():
        assert (Path("again") / file.name).read_bytes() == file.read_bytes()
    refused(dpntk("demo", *options), "demo is there already")


def test_what_is_suggested_works_as_printed_where_earlier_results_lie(dpntk: Command) -> None:
    made = dpntk("demo", "--table")
    for command in ("embed", "release"):
        assert suggested(made)[0] == command
        made = dpntk(*suggested(made))
        assert made.code == 0, made.stderr
    assert Path("release.h5").exists()
    data = ("demo/train.csv", "--schema", "demo/schema.toml", "--width", 3)
    again = dpntk("embed", *data, "-o", "a second.h5")
    assert dpntk(*suggested(again)).code == 0
    assert Path("a second-release.h5").exists()
    assert dpntk("embed", "demo/test.csv", *data[1:]).code == 0
    merged = dpntk("merge", "a second.h5", "embedding.h5", "-o", "both.h5")
    assert suggested(merged)[-2:] == ["-o", "both-release.h5"]
    drafted = dpntk("schema", "demo/train.csv", "--label", "readmitted")
    assert suggested(drafted)[-2:] == ["-o", "train.h5"]
