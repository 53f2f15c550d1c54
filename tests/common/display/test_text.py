"""How names of many things are written on one line."""

from __future__ import annotations

import csv

import pytest

from dpntk.common.display.text import some_of

NAMES = ("cat", "eel, moray", 'the "best"', "dog", "yak", "gnu")


@pytest.mark.parametrize(
    ("count", "said"),
    [
        (0, ""),
        (1, "cat"),
        (2, 'cat, "eel, moray"'),
        (5, 'cat, "eel, moray", "the ""best""", dog, yak'),
        (6, 'cat, "eel, moray", "the ""best""", dog, yak and 1 more'),
    ],
)
def test_the_first_names_are_said_and_how_many_more_there_are(count: int, said: str) -> None:
    assert some_of(NAMES[:count]) == said


def test_all_names_can_be_read_back_as_they_are_typed_for_class_names() -> None:
    (read,) = csv.reader([some_of(NAMES, len(NAMES))], skipinitialspace=True, strict=True)
    assert tuple(read) == NAMES
