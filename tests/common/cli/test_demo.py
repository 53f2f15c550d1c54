"""Data to try dpntk on: the same for everybody, and taken by what comes next."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import Command, refused


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
    (command,) = [line for line in made.stderr.splitlines() if line.startswith("next: dpntk ")]
    data = "demo/train.csv" if options else "demo/train.npz"
    assert command.startswith(f"next: dpntk embed {data} ")
    assert records in dpntk("embed", data, *also, "--width", 3).stderr
    assert dpntk("demo", *options, "-o", "again").code == 0
    for file in Path("demo").iterdir():
        assert (Path("again") / file.name).read_bytes() == file.read_bytes()
    refused(dpntk("demo", *options), "demo is there already")
