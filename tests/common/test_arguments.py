"""Errors name what is to be changed as whoever reads them has written it."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpntk.common.adjacency import Adjacency
from dpntk.common.arguments import argument, positive_number, typed_as_options
from dpntk.common.errors import DpntkError, GeneratorError, SchemaError
from dpntk.common.ledger import PrivacyBudget
from dpntk.common.sources.prefetch import in_order, read_ahead
from dpntk.embed import Column, FourierOptions, PrivacyUnit, TableSchema, TangentOptions
from dpntk.embed.feature_options.kinds import options_for
from dpntk.generate import ComposedSettings, TrainingSettings
from dpntk.release import PrivacyParameters
from dpntk.release.distill import Settings
from tests.conftest import SIDE, Command, refused

ROOT = Path(__file__).parents[2]
ROOMS = ("common", "embed", "release", "generate", "evaluate", "dpntk")


@pytest.mark.parametrize(
    ("value", "in_python", "in_a_command"),
    [
        (None, "count_weight", "--count-weight"),
        (0.05, "count_weight=0.05", "--count-weight 0.05"),
        (1e-5, "count_weight=1e-05", "--count-weight 1e-05"),
        (3, "count_weight=3", "--count-weight 3"),
        ("a b", "count_weight='a b'", "--count-weight a b"),
        (Path("f.pt"), "count_weight='f.pt'", "--count-weight f.pt"),
        (True, "count_weight=True", "--count-weight"),
        (
            Adjacency.ADD_REMOVE,
            "count_weight=Adjacency.ADD_REMOVE",
            "--count-weight add-remove",
        ),
    ],
)
def test_an_argument_is_spelt_as_it_was_given(
    value: object, in_python: str, in_a_command: str
) -> None:
    assert argument("count_weight", value) == in_python
    with typed_as_options():
        assert argument("count_weight", value) == in_a_command
        assert argument("count_weight", option="--cw") == "--cw"
    assert argument("count_weight", option="--cw") == "count_weight"


NUMBERS: list[tuple[str, Callable[[Any], object], type]] = [
    ("epsilon", lambda value: PrivacyParameters(value).epsilon, float),
    ("delta", lambda value: PrivacyParameters(1.0, value * 1e-9).delta, float),
    ("count weight", lambda value: PrivacyParameters(1.0, count_weight=value).count_weight, float),
    ("budget", lambda value: PrivacyBudget(value).epsilon, float),
    ("rows of a person", lambda value: PrivacyUnit("who", value).rows, int),
    ("length of a code", lambda value: ComposedSettings(generator="cnn", code=value).code, int),
    ("weight of pixels", lambda value: TangentOptions(pixels=value * 1e-9).pixels, float),
    ("seed of a map", lambda value: FourierOptions(seed=value).seed, int),
    ("frequencies", lambda value: FourierOptions(frequencies=value).frequencies, int),
    ("length scale", lambda value: FourierOptions(length_scale=value).length_scale, float),
    ("bins", lambda value: TableSchema((Column.integer("a", 0, 1),), bins=value).bins, int),
    ("steps", lambda value: TrainingSettings(steps=value).steps, int),
    ("learning rate", lambda value: TrainingSettings(learning_rate=value).learning_rate, float),
    ("steps of a distillation", lambda value: Settings(steps=value).steps, int),
    ("its ridge", lambda value: Settings(ridge=value).ridge, float),
    ("its centre", lambda value: Settings(centre=value).centre, int),
]


@pytest.mark.parametrize(
    ("plain_of", "kind"), [each[1:] for each in NUMBERS], ids=[each[0] for each in NUMBERS]
)
def test_numbers_of_numpy_are_taken_and_become_plain_ones(
    plain_of: Callable[[Any], object], kind: type
) -> None:
    found = plain_of(np.int64(3))
    assert type(found) is kind
    assert found == plain_of(3)


OF_NUMBERS_ALONE = [each for each in NUMBERS if each[0] not in ("delta", "weight of pixels")]


@pytest.mark.parametrize(
    "plain_of", [each[1] for each in OF_NUMBERS_ALONE], ids=[each[0] for each in OF_NUMBERS_ALONE]
)
@pytest.mark.parametrize("wrong", [True, np.True_, "three", [3], 3 + 0j])
def test_truth_values_and_texts_are_no_numbers(
    plain_of: Callable[[Any], object], wrong: object
) -> None:
    with pytest.raises(DpntkError, match=r"must be|is wanted"):
        plain_of(wrong)


def test_a_command_names_options_in_threads_that_read_for_it_and_in_no_others() -> None:
    names = ["width", "front", "arch"]
    with typed_as_options(), ThreadPoolExecutor(1) as elsewhere:
        assert elsewhere.submit(argument, "width").result() == "width"
        read = read_ahead(in_order(argument, names, workers=2, ahead=1))
        assert list(read) == ["--width", "--front", "--arch"]


def test_a_command_and_a_function_refuse_the_same_in_their_own_words(
    dpntk: Command, tmp_path: Path
) -> None:
    np.savez(tmp_path / "train.npz", x=np.zeros((3, SIDE, SIDE), np.uint8), y=np.arange(3))
    outcome = dpntk("embed", "train.npz", "--features", "hermite", "--width", "5")
    refused(outcome, "error: --width 5: it goes with --features ntk, not hermite")
    with pytest.raises(SchemaError) as caught:
        options_for("hermite", width=5)
    assert str(caught.value) == "width=5: it goes with TangentOptions, not hermite"


def refusals() -> Iterator[tuple[str, str]]:
    """Where functions that are no commands raise something, and the texts in it."""
    for room in ROOMS:
        for path in sorted((ROOT / room).rglob("*.py")):
            place = path.relative_to(ROOT)
            if {"commands", "cli"} & set(place.parts):
                continue
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Raise):
                    for text in ast.walk(node):
                        if isinstance(text, ast.Constant) and isinstance(text.value, str):
                            yield f"{place}:{node.lineno}", text.value


OF_COMMANDS = re.compile(r"'dpntk [^']*'|^--[a-z-]+( FILE|(,| or| and) --[a-z-]+)?$")
"""Commands that are quoted, and what `argument` is told of options."""


def test_no_function_speaks_of_options_to_those_who_typed_none() -> None:
    wrong = [
        f"{place}: {text}"
        for place, text in refusals()
        if re.search(r"(?<![\w-])--([a-z]|$)", OF_COMMANDS.sub("", text))
        and not place.startswith("embed/run/")  # of work folders, which commands alone have
        and "SourceOptions(" not in text  # which says how Python spells it, too
    ]
    assert wrong == []


@pytest.mark.parametrize("number", [10**400, math.inf, math.nan, 0, -1, True])
def test_a_positive_number_is_one_that_a_float_holds(number: object) -> None:
    with pytest.raises(GeneratorError, match="a number above 0 is wanted"):
        positive_number("rate", number, refusal=GeneratorError)
