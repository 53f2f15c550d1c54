"""What users import and catch: public names are there, and errors form the tree that is drawn."""

from __future__ import annotations

import ast
import importlib
import re
from pathlib import Path

import pytest

from dpntk import evaluate, generate
from dpntk.common import errors

ROOT = Path(__file__).parents[2]
PUBLIC = ("embed", "release", "release.distill", "generate", "evaluate")


@pytest.mark.parametrize("room", PUBLIC)
def test_every_public_name_is_there(room: str) -> None:
    module = importlib.import_module(f"dpntk.{room}")
    assert module.__all__ == sorted(module.__all__)
    assert [name for name in module.__all__ if not hasattr(module, name)] == []


def test_the_last_two_stages_have_one_name_for_every_kind_of_record() -> None:
    """What they do, is in tests/generate/test_pipeline.py and tests/evaluate/test_pipeline.py."""
    assert [name for name in generate.__all__ if name.islower()] == [
        "generate", "load_generator", "points_to", "sample_to",
    ]  # fmt: skip
    assert [name for name in evaluate.__all__ if name.islower()] == ["evaluate"]


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
