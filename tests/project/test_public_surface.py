"""What users import and catch: public names are there, and errors form the tree that is drawn."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import dpntk.release
import dpntk.release.distill
from dpntk.common import errors
from dpntk.common.errors import DpntkError
from dpntk.embed import load_embedding

ROOT = Path(__file__).parents[2]
ROOMS = ("common", "embed", "release", "generate", "evaluate")
PUBLIC = ("embed", "release", "release.distill", "generate", "evaluate", "evaluate.tables")


@pytest.mark.parametrize("room", PUBLIC)
def test_every_public_name_is_there(room: str) -> None:
    module = importlib.import_module(f"dpntk.{room}")
    assert module.__all__ == sorted(module.__all__)
    assert [name for name in module.__all__ if not hasattr(module, name)] == []


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


def uses(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """The names that a module uses, each with the function or class at the top that uses it."""
    for statement in tree.body:
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            continue
        where = getattr(statement, "name", "")
        for node in ast.walk(statement):
            if isinstance(node, ast.Name):
                yield node.id, where
            elif isinstance(node, ast.Attribute):
                yield node.attr, where


def users_of(name: str) -> set[str]:
    return {
        f"{file.relative_to(ROOT)}: {where}"
        for room in ROOMS
        for file in (ROOT / room).rglob("*.py")
        for used, where in uses(ast.parse(file.read_text()))
        if used == name
    }


def signers() -> set[str]:
    """Modules that import what signs, by its name or with the module that it is in."""
    return {
        str(file.relative_to(ROOT))
        for room in ROOMS
        for file in (ROOT / room).rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for alias in node.names
        if alias.name.endswith("sshsig")
        or (isinstance(node, ast.ImportFrom) and alias.name in ("sign", "*"))
    }


def test_a_signed_file_comes_of_what_enters_it_into_a_ledger_and_of_nothing_else() -> None:
    """From the signature up to what is public: a new way to a signed file is a decision."""
    ways = {
        "sign_file": {
            "release/publishing/pipeline.py: write_release",
            "release/file/distilled_codec.py: save_distilled",
        },
        "write_release": {"release/publishing/pipeline.py: release"},
        "save_distilled": {"release/distill/pipeline.py: distill"},
    }
    assert signers() == {"release/file/user_block.py"}
    assert {name: users_of(name) for name in ways} == ways
    public = {name for room in PUBLIC for name in importlib.import_module(f"dpntk.{room}").__all__}
    assert not public & {*ways, "unrecorded_release"}
    assert {"release", "distill"} <= public


@pytest.mark.parametrize(
    "program",
    [
        "from dpntk.release import release",
        "import dpntk.release.commands.release, dpntk.release; release = dpntk.release.release",
    ],
)
def test_release_is_the_function_whatever_was_imported_before(program: str) -> None:
    program += "; import dpntk.release, dpntk.release.publishing.pipeline as pipeline"
    program += "; assert dpntk.release.release is release is pipeline.release"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_reading_a_release_loads_nothing_that_makes_one() -> None:
    makers = ("dpntk.embed", "dpntk.release.publishing", "dpntk.release.distill")
    program = "import sys, dpntk.release; from dpntk.release import open_any, open_release, Opened"
    program += f"; assert not [name for name in sys.modules if name.startswith({makers})]"
    subprocess.run([sys.executable, "-c", program], check=True)


ours: Any = dpntk.release
theirs: Any = dpntk.release.distill
"""Without types: what follows is what type checkers would object to, too."""
MISTAKES: dict[str, tuple[Callable[[], object], str]] = {
    "a release in place of an embedding": (
        lambda: ours.release("release.h5", "o.h5", ours.PrivacyParameters(1.0)),
        "release.h5: not a dpntk embedding",
    ),
    "an embedding that is not in a file": (
        lambda: ours.release(load_embedding(Path("embedding.h5")), "o.h5", None),
        "embedding must be the path of a file, not of type Embedding",
    ),
    "no embedding": (lambda: ours.release("none.h5", "o.h5", ours.PrivacyParameters(1)), "no such"),
    "a folder to write": (
        lambda: ours.release("embedding.h5", ".", ours.PrivacyParameters(1.0)), "is a folder",
    ),
    "a number to write": (
        lambda: ours.release("embedding.h5", 1, ours.PrivacyParameters(1.0)),
        "output must be the path of a file, not of type int",
    ),
    "epsilon in place of parameters": (
        lambda: ours.release("embedding.h5", "o.h5", 1.0),
        "parameters must be PrivacyParameters, not of type float",
    ),
    "a key's path": (
        lambda: ours.release("embedding.h5", "o.h5", ours.PrivacyParameters(1.0), key="id_ed25519"),
        "key must be what load_key, make_key or own_key returns, not of type str",
    ),
    "consent in place of a question": (
        lambda: ours.release("embedding.h5", "o.h5", ours.PrivacyParameters(1.0), compose=True),
        "compose must be a function of the total",
    ),
    "epsilon as text": (
        lambda: ours.PrivacyParameters("1"),
        "epsilon must be a number, not of type str",
    ),
    "delta as text": (lambda: ours.PrivacyParameters(1.0, "1e-5"), "delta must be a number"),
    "no weight": (lambda: ours.PrivacyParameters(1.0, count_weight=None), "count_weight must be"),
    "adjacency as text": (
        lambda: ours.PrivacyParameters(1.0, adjacency="add-remove"),
        "adjacency must be Adjacency.REPLACE_ONE or Adjacency.ADD_REMOVE, not of type str",
    ),
    "class counts as text": (
        lambda: ours.PrivacyParameters(1.0, class_counts="uniform"), "must be ClassCounts.NOISY or",
    ),
    "epsilon of nothing": (lambda: ours.PrivacyParameters(0), "must be a positive number"),
    "not a number": (lambda: ours.PrivacyParameters(float("nan")), "must be a positive number"),
    "an embedding in place of a release": (
        lambda: ours.open_release("embedding.h5"), "is an embedding, not a release",
    ),
    "a number in place of a release": (
        lambda: ours.open_release(7), "path must be the path of a file, not of type int",
    ),
    "what was opened before": (
        lambda: ours.open_any(ours.open_any("release.h5")), "not of type Opened",
    ),
    "a signer's name": (
        lambda: ours.open_release("release.h5", "alice"), "acceptance must be an Acceptance",
    ),
    "a signer whom nobody knows": (
        lambda: ours.open_release("release.h5", ours.Acceptance(signer="alice")), "not by alice",
    ),
    "no key": (lambda: ours.load_key("none"), "there is no such file"),
    "a number in place of a key": (lambda: ours.load_key(3), "path must be the path of a file"),
    "a key that is there": (lambda: ours.make_key("release.h5"), "already exists"),
    "a key nowhere": (lambda: ours.make_key(None), "path must be the path of a file"),
    "a path in place of records": (
        lambda: theirs.distill("images", "o.h5", "ledger.json", epsilon=1.0),
        "source must be what open_source returns, not a str",
    ),
    "settings as a mapping": (
        lambda: theirs.distill(None, "o.h5", "l.json", epsilon=1.0, settings=theirs.PRESETS),
        "settings must be Settings, not of type dict",
    ),
    "epsilon of a distillation as text": (
        lambda: theirs.distill(None, "o.h5", "l.json", epsilon="1"), "epsilon must be a number",
    ),
    "half a point": (
        lambda: theirs.Settings(per_class=0.5), "per_class must be a whole number",
    ),
    "a step as text": (lambda: theirs.Settings(clip_norm="1"), "clip_norm must be a number"),
}  # fmt: skip


def test_a_mistake_gets_one_line_and_costs_nothing(
    embedding_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    dpntk.release.release(embedding_file, "release.h5", dpntk.release.PrivacyParameters(1.0))
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    for mistake, (make, words) in MISTAKES.items():
        with pytest.raises(DpntkError) as caught:
            make()
        assert words in str(caught.value), mistake
        assert "\n" not in str(caught.value), mistake
        assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before, mistake
