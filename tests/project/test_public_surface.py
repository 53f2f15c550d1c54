"""What users import and catch: public names are there, and errors form the tree that is drawn."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import inspect
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from torch import nn

from dpntk.common import errors

embed: Any = importlib.import_module("dpntk.embed")
"""Of no type: what is tried here is what a type checker would find."""

ROOT = Path(__file__).parents[2]
PUBLIC = ("embed", "release", "release.distill", "generate", "evaluate", "evaluate.tables")


@pytest.mark.parametrize("room", PUBLIC)
def test_every_public_name_is_there(room: str) -> None:
    module = importlib.import_module(f"dpntk.{room}")
    assert module.__all__ == sorted(module.__all__)
    assert [name for name in module.__all__ if not hasattr(module, name)] == []


@pytest.mark.parametrize("name", embed.__all__)
def test_what_is_public_says_what_it_takes_gives_and_refuses(name: str) -> None:
    """In Google's sections: of a function its arguments, of a class its fields."""
    thing = getattr(embed, name)
    said = inspect.getdoc(thing) or ""
    entries = set(re.findall(r"^    (\w+): ", said, re.MULTILINE))
    if dataclasses.is_dataclass(thing):
        assert {field.name for field in dataclasses.fields(thing)} <= entries
        members = [value for key, value in vars(thing).items() if not key.startswith("_")]
        assert all(inspect.getdoc(member) for member in members if callable(member))
    else:
        signature = inspect.signature(thing)
        assert {*signature.parameters} <= entries
        assert "\nReturns:\n" in said or signature.return_annotation == "None"
        assert "\nRaises:\n" in said
    assert "Guarantee:" in said or name in ("Embedding", "SourceOptions", "load_embedding")


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("images")
    np.save(folder / "x.npy", np.zeros((4, 8, 8), dtype=np.uint8))
    np.save(folder / "y.npy", np.arange(4) % 2)
    return folder


NETWORK = nn.Sequential(nn.Linear(64, 2), nn.ReLU(), nn.Linear(2, 2))
MISTAKES: dict[str, tuple[Callable[[Any], Any], str]] = {
    "no data": (lambda _: embed.embed(None), "data must be the path of a data set"),
    "an array": (lambda _: embed.embed(np.zeros((4, 64))), "not of type ndarray"),
    "features by name": (lambda at: embed.embed(at, "ntk"), "such as FeatureOptions('ntk')"),
    "nothing for features": (lambda at: embed.embed(at, {}), "not of type dict"),
    "a network for features": (lambda at: embed.embed(at, NETWORK), "tangent_features_of"),
    "the schema itself": (
        lambda at: embed.embed(at, None, "schema.toml"),
        "such as SourceOptions(schema='schema.toml')",
    ),
    "no device": (lambda at: embed.embed(at, device=None), "device must be auto, cpu or cuda"),
    "no room": (lambda at: embed.embed(at, capacity=0), "a capacity of 0 records"),
    "room as text": (lambda at: embed.embed(at, capacity="9"), "a number of records"),
    "no classes": (
        lambda at: embed.embed(at, source=embed.SourceOptions(classes=0)),
        "between 1 and 10000",
    ),
    "classes as text": (lambda _: embed.SourceOptions(classes="10"), "such as 10, not of type str"),
    "one name for all": (lambda _: embed.SourceOptions(class_names="cat"), "('cat', 'dog')"),
    "names that are numbers": (lambda _: embed.SourceOptions(class_names=(1, 2)), "a text"),
    "another part": (lambda _: embed.SourceOptions(split="dev"), "'train' or 'test'"),
    "a schema as JSON": (lambda _: embed.SourceOptions(schema={}), "path of a schema.toml"),
    "no kind": (lambda _: embed.FeatureOptions(None), "one of ntk, "),
    "half a unit": (lambda _: embed.FeatureOptions(width=0.5), "such as '3000_200'"),
    "a negative seed": (lambda _: embed.FeatureOptions(seed=-1), "a seed is from 0"),
    "a length that is none": (
        lambda _: embed.FeatureOptions("rff", length_scale=math.nan),
        "positive number",
    ),
    "no frequencies": (lambda _: embed.FeatureOptions("rff", frequencies=0), "from 1 to 1048576"),
    "marginals alone": (lambda _: embed.FeatureOptions(marginals=1), "from 0 to below 1"),
    "pairs as text": (lambda _: embed.FeatureOptions(pairs="all"), "or ('all',)"),
    "a word that is not given": (
        lambda _: embed.FeatureOptions("perceptual", module_is_public="no"),
        "True or False",
    ),
    "one file to merge": (lambda at: embed.merge(at), "a list of embedding files"),
    "nothing to load": (lambda _: embed.load_embedding(None), "path must be the path of a file"),
    "nothing to save": (lambda at: embed.save_embedding(None, at), "what embed or merge has made"),
    "a budget as text": (lambda _: embed.PrivacyBudget("3"), "a number, such as 1.0"),
    "a layer for a network": (
        lambda _: embed.tangent_features_of(nn.Linear(64, 2), (64,)),
        "a torch.nn.Sequential",
    ),
    "no network": (lambda _: embed.tangent_features_of(nn.Sequential(), (64,)), "comes last"),
    "a size for a shape": (lambda _: embed.tangent_features_of(NETWORK, 64), "such as (784,)"),
    "a front by name": (
        lambda _: embed.tangent_features_of(NETWORK, (64,), front="pixels"),
        "what make_front makes",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_gets_one_line_that_says_what_to_write(mistake: str, images: Path) -> None:
    call, hint = MISTAKES[mistake]
    with pytest.raises(errors.DpntkError) as caught:
        call(images)
    assert hint in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_table_asks_for_its_schema(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("age,pay\n1,2\n")
    with pytest.raises(errors.SchemaError, match=re.escape("SourceOptions(schema='schema.toml')")):
        embed.embed(tmp_path / "a.csv")


def test_what_the_readme_imports_is_public() -> None:
    (example,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    imported = [
        (statement.module or "", alias.name)
        for statement in ast.parse(example).body
        if isinstance(statement, ast.ImportFrom)
        for alias in statement.names
    ]
    ours = [(module, name) for module, name in imported if module.startswith("dpntk.")]
    assert len(ours) > 5
    for module, name in ours:
        assert name in importlib.import_module(module).__all__


def test_errors_form_the_tree_that_is_drawn() -> None:
    drawn: dict[str, str] = {}
    above: dict[int, str] = {}
    for line in (errors.__doc__ or "").splitlines():
        if match := re.match(r" {4}([│├└─ ]*)(\w+(?:Error|Signer))\b", line):
            depth, name = len(match[1]) // 4, match[2]
            above[depth] = name
            drawn[name] = above[depth - 1] if depth else "Exception"
    classes = {name: getattr(errors, name) for name in errors.__all__}
    assert drawn == {name: kind.__base__.__name__ for name, kind in classes.items()}
    assert errors.__all__ == sorted(errors.__all__)
