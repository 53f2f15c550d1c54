"""What users import and catch: public names are there, and errors form the tree that is drawn."""

from __future__ import annotations

import ast
import dataclasses
import functools
import importlib
import inspect
import math
import re
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from torch import nn

import dpntk.release
import dpntk.release.distill
from dpntk import evaluate, generate
from dpntk.common import errors
from dpntk.common.errors import DpntkError
from dpntk.common.schema.drafts.draft import Draft
from dpntk.embed import load_embedding
from tests.conftest import Command
from tests.helpers.processes import run_anew

embed: Any = importlib.import_module("dpntk.embed")
"""Of no type: what is tried here is what a type checker would find."""

ROOT = Path(__file__).parents[2]
ROOMS = ("common", "embed", "release", "generate", "evaluate", "dpntk")
PUBLIC = (
    "dpntk",
    "dpntk.embed",
    "dpntk.release",
    "dpntk.release.distill",
    "dpntk.generate",
    "dpntk.evaluate",
)


@pytest.mark.parametrize("room", PUBLIC)
def test_every_public_name_is_there(room: str) -> None:
    module = importlib.import_module(room)
    assert module.__all__ == sorted(module.__all__)
    assert [name for name in module.__all__ if not hasattr(module, name)] == []


@pytest.mark.parametrize("room", PUBLIC)
def test_help_begins_with_what_every_public_name_is_for(room: str) -> None:
    module = importlib.import_module(room)
    words = set(re.findall(r"\w+", module.__doc__ or ""))
    assert set(module.__all__) <= words
    assert set(module.__all__) <= set(dir(module))


def test_importing_the_package_is_enough_to_use_any_room() -> None:
    program = "import sys, dpntk; assert not {'torch', 'numpy'} & set(sys.modules)"
    program += "; dpntk.embed.embed, dpntk.release.release"
    program += "; dpntk.generate.generate, dpntk.evaluate.evaluate"
    subprocess.run([sys.executable, "-c", program], check=True)


def examples_of(thing: object) -> list[str]:
    """The code in a docstring: what is indented behind a double colon."""
    said = f"{inspect.getdoc(thing)}\n"
    return [textwrap.dedent(code) for code in re.findall(r"::\n\n((?: {4}.*\n|\n)+)", said)]


def members_of(room: str) -> Iterator[tuple[str, object]]:
    """The public functions and classes of a module, and what users call of the classes."""
    module = importlib.import_module(room)
    for name in module.__all__:
        thing = getattr(module, name)
        yield name, thing
        if inspect.isclass(thing) and not issubclass(thing, BaseException):
            yield from (
                (key, getattr(thing, key)) for key in vars(thing) if not key.startswith("_")
            )


def calls_in(example: str) -> Iterator[tuple[str, ast.Call]]:
    """What some code calls, by its name alone."""
    for node in ast.walk(ast.parse(example)):
        if isinstance(node, ast.Call):
            yield getattr(node.func, "id", getattr(node.func, "attr", "")), node


def test_examples_call_what_is_there_with_arguments_that_it_takes() -> None:
    """An argument that was renamed would be told from its example."""
    members: dict[str, Any] = dict(member for room in PUBLIC[1:] for member in members_of(room))
    main = ("embed", "merge_files", "draft_schema", "release", "generate", "evaluate")
    assert [name for name in main if not examples_of(members[name])] == []
    examples = [example for thing in members.values() for example in examples_of(thing)]
    calls = [found for example in examples for found in calls_in(example) if found[0] in members]
    assert len(calls) > 20
    for name, call in calls:
        is_method = inspect.isfunction(members[name]) and "." in members[name].__qualname__
        given = [None, *call.args] if is_method else call.args
        named = {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}
        inspect.signature(members[name]).bind(*given, **named)


@pytest.mark.usefixtures("hasty_rows", "two_kinds")
def test_the_examples_in_help_go_the_whole_way(
    dpntk: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each begins with what the one before has made, as its docstring says."""
    assert dpntk("demo", "--table").code == 0
    for part in ("demo/train.csv", "demo/test.csv"):
        rows = Path(part).read_text().splitlines()[:101]
        Path(part).write_text("\n".join(rows))
    brief = generate.TableSettings(steps=2, batch=20)
    monkeypatch.setattr("dpntk.generate.pipeline.default_settings", lambda _: brief)
    for room in PUBLIC[1:]:
        (example,) = examples_of(importlib.import_module(room))
        few_steps = example.replace("Settings(", "Settings(steps=2, ")
        exec(compile(few_steps, room, "exec"), {})  # noqa: S102 - it is what users are told to run
    written = {"embedding.h5", "release.h5", "points.h5", "synthetic", "more", "report.html"}
    assert written <= {file.name for file in Path().iterdir()}


def _entries(said: str | None) -> set[str]:
    """What a docstring in Google's style has entries for."""
    return set(re.findall(r"^    (\w+): ", said or "", re.MULTILINE))


def _said_of(thing: type) -> set[str]:
    """The entries of a class and of those that it inherits from."""
    return set().union(*(_entries(inspect.getdoc(each)) for each in thing.__mro__[:-1]))


CALLABLE = {
    f"{room}.{name}": thing
    for room in PUBLIC
    for name, thing in inspect.getmembers(importlib.import_module(room))
    if name in importlib.import_module(room).__all__
    and (inspect.isfunction(thing) or inspect.isclass(thing))
}


@pytest.mark.parametrize("name", CALLABLE)
def test_what_is_public_says_what_it_takes_gives_and_refuses(name: str) -> None:
    """In Google's sections: of a function its arguments, of a class its fields."""
    thing = CALLABLE[name]
    if inspect.isfunction(thing):
        said, signature = inspect.getdoc(thing) or "", inspect.signature(thing)
        assert {*signature.parameters} <= _entries(said)
        assert "\nReturns:\n" in said or signature.return_annotation == "None"
        assert "\nRaises:\n" in said
        return
    fields = (
        {field.name for field in dataclasses.fields(thing)}
        if dataclasses.is_dataclass(thing)
        else set()
    )
    assert fields <= _said_of(thing)
    for key, member in vars(thing).items():
        if not key.startswith("_") and key not in fields and callable(member):
            assert inspect.getdoc(member), key


@pytest.mark.parametrize("name", embed.__all__)
def test_what_embeds_says_what_it_guarantees(name: str) -> None:
    said = inspect.getdoc(getattr(embed, name)) or ""
    plain = {
        "Column", "CsvFormat", "Draft", "Embedding", "SourceOptions", "TableSchema",
        "load_embedding", "open_source",
    }  # fmt: skip
    assert "Guarantee:" in said or name in plain


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("images")
    np.save(folder / "x.npy", np.zeros((4, 8, 8), dtype=np.uint8))
    np.save(folder / "y.npy", np.arange(4) % 2)
    return folder


AGE = embed.Column.integer("age", 0, 120)
DRAFT: Any = Draft(embed.TableSchema((AGE,)))
NETWORK = nn.Sequential(nn.Linear(64, 2), nn.ReLU(), nn.Linear(2, 2))
MISTAKES: dict[str, tuple[Callable[[Any], Any], str]] = {
    "no data": (lambda _: embed.embed(None), "data must be the path of a data set"),
    "an array": (lambda _: embed.embed(np.zeros((4, 64))), "not of type ndarray"),
    "features by name": (lambda at: embed.embed(at, "ntk"), "such as TangentOptions("),
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
    "half a unit": (lambda _: embed.TangentOptions(width=0.5), "such as '3000_200'"),
    "a negative seed": (lambda _: embed.HermiteOptions(seed=-1), "a seed is from 0"),
    "a length that is none": (
        lambda _: embed.FourierOptions(length_scale=math.nan),
        "positive number",
    ),
    "no frequencies": (lambda _: embed.FourierOptions(frequencies=0), "from 1 to 1048576"),
    "marginals alone": (lambda _: embed.TangentOptions(marginals=1), "from 0 to below 1"),
    "products alone": (lambda _: embed.TangentOptions(moments=1), "from 0 to below 1"),
    "a target by number": (lambda _: embed.TangentOptions(target=3), "the name of a column"),
    "a weight as text": (lambda _: embed.TangentOptions(moments="0.2"), "a weight from 0"),
    "pairs of numbers": (lambda _: embed.TangentOptions(pairs=[(1, 2)]), "or ('age', 'pay')"),
    "pairs as text": (lambda _: embed.TangentOptions(pairs="all"), "or ('all',)"),
    "a word that is not given": (
        lambda _: embed.PerceptualOptions(module_is_public="no"),
        "True or False",
    ),
    "a word for overwriting": (
        lambda at: embed.merge_files([at, at], at / "sum.h5", overwrite="no"),
        "overwrite must be True or False",
    ),
    "a word for no noise": (
        lambda _: dpntk.release.PrivacyParameters(math.inf, not_private="no"),  # type: ignore[arg-type]
        "not_private must be True or False",
    ),
    "a number to confirm": (
        lambda _: DRAFT.confirm(5),
        "confirm must be a Column, or the name of one, not of type int",
    ),
    "a list to confirm": (lambda _: DRAFT.confirm(["age"]), "not of type list"),
    "one constraint to confirm": (
        lambda _: DRAFT.confirm(constraints="age > 1"),
        "constraints must be a list of rules",
    ),
    "a number of constraints": (lambda _: DRAFT.confirm(constraints=5), "a list of rules"),
    "a separator for a format": (
        lambda _: embed.draft_schema("rows.csv", csv=";"),
        "csv must be a CsvFormat, such as CsvFormat(';'), not of type str",
    ),
    "a word for constraints": (
        lambda _: embed.draft_schema("rows.csv", constraints="no"),
        "constraints must be True or False",
    ),
    "a unit by number": (lambda _: embed.PrivacyUnit(5, rows=1), "of type int, which is no text"),
    "a pattern by number": (lambda _: embed.MadeColumn("m", pattern=5), "which is no text"),
    "a word for names": (
        lambda _: DRAFT.confirm(names="no"),
        "names must be True or False",
    ),
    "a word for what the data decided": (
        lambda _: DRAFT.settled(accept_from_data="no"),
        "accept_from_data must be True or False",
    ),
    "a word for no signature": (
        lambda _: dpntk.release.Acceptance(allow_unsigned="no"),  # type: ignore[arg-type]
        "allow_unsigned must be True or False",
    ),
    "one file to merge": (lambda at: embed.merge(at), "a list of embedding files"),
    "nothing to load": (lambda _: embed.load_embedding(None), "path must be the path of a file"),
    "nothing to save": (lambda at: embed.save_embedding(None, at), "what embed or merge has made"),
    "a budget as text": (lambda _: embed.PrivacyBudget("3"), "a number, such as 1.0"),
    "a column alone": (lambda _: embed.TableSchema(AGE), "columns must be a tuple of Columns"),
    "columns by name": (lambda _: embed.TableSchema(("age",)), "each of columns must be"),
    "one name left out": (lambda _: embed.TableSchema((AGE,), left_out="x"), "such as ('name',)"),
    "one constraint": (lambda _: embed.TableSchema((AGE,), constraints="age > 1"), "a tuple of"),
    "bins as text": (lambda _: embed.TableSchema((AGE,), bins="20"), "bins must be a whole number"),
    "a unit by name": (
        lambda _: embed.TableSchema((AGE,), left_out=("x",), privacy_unit="x"),
        "such as PrivacyUnit('patient', rows=5), not of type str",
    ),
    "a unit to draft by name": (
        lambda at: embed.draft_schema(at, privacy_unit="x"),
        "such as PrivacyUnit('patient', rows=5), not of type str",
    ),
    "one column to draft": (
        lambda at: embed.draft_schema(at, columns="age"),
        "columns must be a list of names",
    ),
    "a layer for a network": (
        lambda _: embed.tangent_features_of(nn.Linear(64, 2), (64,)),
        "a torch.nn.Sequential",
    ),
    "no network": (lambda _: embed.tangent_features_of(nn.Sequential(), (64,)), "comes last"),
    "a size for a shape": (lambda _: embed.tangent_features_of(NETWORK, 64), "such as (784,)"),
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
    wanted = "give schema='schema.toml' in SourceOptions or Synthesizer"
    with pytest.raises(errors.SchemaError, match=re.escape(wanted)):
        embed.embed(tmp_path / "a.csv")


def test_the_last_two_stages_have_one_name_for_every_kind_of_record() -> None:
    """What they do, is in tests/generate/test_pipeline.py and tests/evaluate/test_pipeline.py."""
    assert [name for name in generate.__all__ if name.islower()] == [
        "generate", "load_generator", "open_for_training", "points_to", "require_replaceable",
        "require_settings", "sample_to", "train",
    ]  # fmt: skip
    assert [name for name in evaluate.__all__ if name.islower()] == [
        "evaluate", "write_report",
    ]  # fmt: skip


def test_what_the_readme_imports_is_public() -> None:
    (example,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    imported = [
        (statement.module or "", alias.name)
        for statement in ast.parse(example).body
        if isinstance(statement, ast.ImportFrom)
        for alias in statement.names
    ]
    ours = [(module, name) for module, name in imported if module.startswith("dpntk.")]
    assert len(ours) > 4
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


@functools.cache
def trees() -> dict[str, ast.Module]:
    """All modules of the package, by their paths."""
    return {
        str(file.relative_to(ROOT)): ast.parse(file.read_text())
        for room in ROOMS
        for file in (ROOT / room).rglob("*.py")
    }


@functools.cache
def users() -> dict[str, set[str]]:
    """Who uses a name, by that name."""
    found: dict[str, set[str]] = {}
    for file, tree in trees().items():
        for used, where in uses(tree):
            found.setdefault(used, set()).add(f"{file}: {where}")
    return found


def signers() -> set[str]:
    """Modules that import what signs, by its name or with the module that it is in."""
    return {
        file
        for file, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for alias in node.names
        if alias.name.endswith("sshsig")
        or (isinstance(node, ast.ImportFrom) and alias.name in ("sign", "*"))
    }


def test_a_signed_file_comes_of_what_enters_it_into_a_ledger_and_of_nothing_else() -> None:
    """From the signature up to what is public: a new way to a signed file is a decision."""
    ways = {
        "sign_file": {"release/file/writer.py: write_signed"},
        "write_signed": {
            "release/publishing/pipeline.py: write_release",
            "release/file/distilled_codec.py: save_distilled",
        },
        "write_release": {"release/publishing/pipeline.py: release"},
        "save_distilled": {"release/distill/pipeline.py: distill"},
    }
    assert signers() == {"release/file/user_block.py"}
    assert {name: users().get(name) for name in ways} == ways
    public = {name for room in PUBLIC for name in importlib.import_module(room).__all__}
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
    assert run_anew(program) == 0


def test_reading_a_release_loads_nothing_that_makes_one() -> None:
    makers = ("dpntk.embed", "dpntk.release.publishing", "dpntk.release.distill")
    program = "import sys, dpntk.release; from dpntk.release import open_any, open_release, Opened"
    program += f"; assert not [name for name in sys.modules if name.startswith({makers})]"
    assert run_anew(program) == 0


ours: Any = dpntk.release
theirs: Any = dpntk.release.distill
"""Without types: what follows is what type checkers would object to, too."""
MISTAKES_OF_RELEASES: dict[str, tuple[Callable[[], object], str]] = {
    "a release in place of an embedding": (
        lambda: ours.release("release.h5", "o.h5", ours.PrivacyParameters(1.0)),
        "release.h5: not a dpntk embedding",
    ),
    "an embedding that is not in a file": (
        lambda: ours.release(load_embedding(Path("embedding.h5")), "o.h5", None),
        "embedding must be the path of a file or folder, not of type Embedding",
    ),
    "no embedding": (lambda: ours.release("none.h5", "o.h5", ours.PrivacyParameters(1)), "no such"),
    "a folder to write": (
        lambda: ours.release("embedding.h5", ".", ours.PrivacyParameters(1.0)), "is a folder",
    ),
    "a number to write": (
        lambda: ours.release("embedding.h5", 1, ours.PrivacyParameters(1.0)),
        "output must be the path of a file or folder, not of type int",
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
    "epsilon of 400 digits": (lambda: ours.PrivacyParameters(10**400), "this one is too large"),
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
        lambda: ours.open_release(7), "path must be the path of a file or folder, not of type int",
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


def test_a_mistake_with_releases_gets_one_line_and_costs_nothing(
    embedding_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    dpntk.release.release(embedding_file, "release.h5", dpntk.release.PrivacyParameters(1.0))
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    for mistake, (make, words) in MISTAKES_OF_RELEASES.items():
        with pytest.raises(DpntkError) as caught:
            make()
        assert words in str(caught.value), mistake
        assert "\n" not in str(caught.value), mistake
        assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before, mistake
