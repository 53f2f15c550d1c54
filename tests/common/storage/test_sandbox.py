"""What a child says of a stranger's file is checked, whatever it says and however it ends."""

from __future__ import annotations

import io
import os
import signal
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from dpntk.common.storage import sandbox
from dpntk.common.storage.container import build
from dpntk.common.storage.contents import contents_of
from dpntk.common.storage.hdf5 import inventory
from dpntk.common.storage.layout import FLOAT32, INT64, INTEGER, NUMBER, TEXT, Layout, Rule
from dpntk.common.storage.sandbox import Refused, parse_in_child

ROOT = Path(__file__).parents[3]
LAYOUT = Layout(
    "a file",
    1,
    datasets={"sums": Rule(INT64, 2), "more": Rule(INT64, 1)},
    attributes={"format_version": INTEGER, "name": TEXT, "size": NUMBER},
    groups={"weights": Rule(FLOAT32, 3)},
    optional=("more", "size"),
)
OTHER = Layout("a file", 1, {"x": Rule(FLOAT32, 1)}, {"format_version": INTEGER}, {})
SUMS = np.arange(-6, 6).reshape(3, 4)
WEIGHT = np.linspace(0, 1, 5, dtype=np.float32)


def fill(file: h5py.File) -> None:
    file.attrs["format_version"] = 1
    file.attrs["name"] = "M\u00fcnchen"
    file["sums"] = SUMS
    file["weights/first"] = WEIGHT


CONTENT = bytes(build(b"a file\n", fill))


@pytest.mark.parametrize("ours", [True, False])
def test_values_are_those_in_the_file(ours: bool) -> None:
    found = contents_of(CONTENT, [OTHER, LAYOUT], ours=ours)
    assert found.attributes == {"format_version": 1, "name": "M\u00fcnchen"}
    assert found.arrays.keys() == {"sums", "weights/first"}
    assert np.array_equal(found.arrays["sums"], SUMS)
    assert np.array_equal(found.arrays["weights/first"], WEIGHT)
    found.arrays["sums"][0] = 0  # a copy
    with h5py.File(io.BytesIO(CONTENT)) as file:
        assert np.array_equal(file["sums"], SUMS)


Said = tuple[dict[str, Any], dict[str, Any]]


def said() -> Said:
    attributes, places = inventory(CONTENT, [LAYOUT])
    return dict(attributes), dict(places)


def attribute(**changes: object) -> Said:
    return {**said()[0], **changes}, said()[1]


def place(**changes: object) -> Said:
    return said()[0], {**said()[1], **changes}


END = len(CONTENT)


@pytest.mark.parametrize(
    "answer",
    [
        None,
        [],
        "x",
        {},
        attribute(size="1"),
        attribute(size=1),
        attribute(name=1),
        attribute(format_version=True),
        attribute(extra="x"),
        ({}, said()[1]),
        (said()[0], {}),
        place(sums=["<i8", [3], END]),
        place(sums=["<i8", [3, 4], END - 8]),
        place(sums=["<i8", [3, 4], 0]),
        place(sums=["<i8", [3, 4], -96]),
        place(sums=["<i8", [3, -4], 600]),
        place(sums=["<i8", [3, 4.0], 600]),
        place(sums=["<i8", [0, 4], 600]),
        place(sums=["<i8", [], 600]),
        place(sums=["<i8", [1 << 60, 1 << 60], 600]),
        place(sums=["O", [3, 4], 600]),
        place(sums=["<f8", [3, 4], 600]),
        place(sums=[INT64, [2, 2, 3], 600]),
        place(more=["<i8", [2], said()[1]["sums"].offset + 8]),
        place(more=["<i8", [2], 504]),
        place(extra=["<i8", [2], 600]),
        place(**{"weights/first/second": [FLOAT32, [1], 600]}),
        place(**{"other/first": [FLOAT32, [1], 600]}),
    ],
)
def test_a_child_is_not_believed(answer: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "parse_in_child", lambda *given: answer)
    with pytest.raises(Refused):
        contents_of(CONTENT, [LAYOUT])


def test_and_is_if_it_says_what_is_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "parse_in_child", lambda *given: said())
    assert np.array_equal(contents_of(CONTENT, [LAYOUT]).arrays["sums"], SUMS)


# Parsers, which run in a child


def refuses(content: bytes, argument: str) -> None:
    raise Refused(f"{content.decode()} is not {argument}")


def fails(content: bytes, argument: object) -> float:
    return 1 / 0


def dies(content: bytes, argument: object) -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


def opens(content: bytes, argument: str) -> str:
    return Path(argument).read_text()


def writes(content: bytes, argument: str) -> None:
    os.open(argument, os.O_WRONLY | os.O_CREAT)


def swells(content: bytes, argument: int) -> int:
    return len(bytearray(argument))


def answers_with_no_json(content: bytes, argument: object) -> None:
    os.write(1, b"[")
    os._exit(0)


def counts(content: bytes, argument: list[int]) -> list[int]:
    return [len(content), *argument]


@pytest.mark.parametrize(
    ("parser", "argument", "words"),
    [
        (refuses, "a number", "seven is not a number"),
        (fails, None, "failed with exit code 1"),
        (dies, None, "ended with signal 11"),
        (opens, "/etc/hostname", "failed with exit code 1"),
        (writes, "file", "failed with exit code 1"),
        (swells, 1 << 29, "failed with exit code 1"),
        (answers_with_no_json, None, "gave no result"),
    ],
)
def test_however_a_child_ends_it_is_a_refusal(
    parser: sandbox.Parser,
    argument: object,
    words: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(Refused, match=words):
        parse_in_child(parser, b"seven", argument)
    assert not list(tmp_path.iterdir())


def test_a_child_gets_all_of_a_large_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    assert parse_in_child(counts, bytes(10**7), [1, 2]) == [10**7, 1, 2]
