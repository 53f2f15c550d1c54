"""Documents lead somewhere: links, contents, names of files, and what they show of other files."""

from __future__ import annotations

import ast
import importlib
import re
import runpy
import shlex
import sys
from pathlib import Path

import click
import pytest

from dpntk.common.cli.app import COMMANDS, dpntk
from dpntk.evaluate.images import classifiers

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
ROOMS = ("common", "embed", "release", "generate", "evaluate")
PAGES = sorted(
    [*ROOT.glob("*.md"), *DOCS.rglob("*.md"), *(ROOT / "benchmarks").rglob("*.md")],
    key=lambda page: page.relative_to(ROOT).as_posix(),
)
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
LINK = re.compile(r"\]\(([^)\s]+)\)")
SHOWN = re.compile(r"^```\{(?:include|literalinclude)\} (\S+)$", re.MULTILINE)


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def anchors(page: Path) -> set[str]:
    """The names of a page's headings, of those that it includes, too."""
    text = without_code(page.read_text())
    found = {
        re.sub(r"[^\w\- ]", "", title.lower().strip()).replace(" ", "-")
        for title in re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    }
    for other in re.findall(r"^```\{include\} (\S+)$", page.read_text(), re.MULTILINE):
        found |= anchors((page.parent / other).resolve())
    return found


def without_code(text: str) -> str:
    return re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_to_files_and_headings_that_are_there(page: Path) -> None:
    broken = []
    for target in LINK.findall(without_code(page.read_text())):
        path, _, anchor = target.partition("#")
        if "://" in path:
            continue
        file = (page.parent / path).resolve() if path else page
        if not file.exists() or (anchor and anchor not in anchors(file)):
            broken.append(target)
    assert broken == []


def test_every_page_is_in_the_contents_once() -> None:
    index = (DOCS / "index.md").read_text()
    listed = [
        re.sub(r".*<(.*)>", r"\1", line)
        for block in re.findall(r"^```\{toctree\}\n(.*?)^```", index, re.MULTILINE | re.DOTALL)
        for line in block.splitlines()
        if line and not line.startswith(":")
    ]
    pages = {page.relative_to(DOCS).with_suffix("").as_posix() for page in DOCS.rglob("*.md")}
    assert sorted(listed) == sorted(pages - {"index"})


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_files_that_a_page_names_are_there(page: Path) -> None:
    """But for those that a reader is to make in the course of CONTRIBUTING.md."""
    text = page.read_text()
    folders = "|".join((*ROOMS, "tests", "benchmarks", "examples", "docs"))
    named = re.findall(rf"`((?:{folders})/[\w./-]+\.\w+)`", text)
    named += [(page.parent / shown).resolve() for shown in SHOWN.findall(text)]
    made = {"edges", "test_edges", "lmdb"} if page.name == "CONTRIBUTING.md" else set()
    missing = [name for name in named if not (ROOT / name).exists()]
    assert [name for name in missing if Path(name).stem not in made] == []


def test_the_table_of_sharp_edges_has_each_of_them() -> None:
    text = (DOCS / "privacy/sharp-edges.md").read_text()
    listed = re.findall(r"^\| \[(.+?)\]\(#", text, re.MULTILINE)
    assert listed == re.findall(r"^## (.+)$", text, re.MULTILINE)


def test_the_table_of_commands_says_what_the_help_says() -> None:
    text = (DOCS / "reference/command-line.md").read_text()
    listed = dict(re.findall(r"^\| `dpntk (\w+)` \| (.+) \|$", text, re.MULTILINE))
    lines = {name: line.removesuffix(".") for name, (_, line) in COMMANDS.items()}
    assert listed == {name: line[0].lower() + line[1:] for name, line in lines.items()}


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text().split()) <= 700


def test_the_pages_api_names_are_those_of_the_rooms() -> None:
    """A room that exports names is on the page, and what the page names can be imported."""
    modules = re.findall(r"^\.\. automodule:: (\S+)$", (DOCS / "api.md").read_text(), re.MULTILINE)
    assert {f"dpntk.{room}" for room in ROOMS[1:]} <= set(modules)
    for module in modules:
        assert importlib.import_module(module).__all__


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_python_in_a_page_imports_what_is_public(page: Path) -> None:
    for block in re.findall(r"^```python\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL):
        for statement in ast.parse(block).body:
            if isinstance(statement, ast.ImportFrom) and (statement.module or "")[:6] == "dpntk.":
                public = importlib.import_module(statement.module or "").__all__
                assert {alias.name for alias in statement.names} <= set(public)


@pytest.mark.usefixtures("hasty_rows", "two_kinds")
@pytest.mark.parametrize("example", EXAMPLES, ids=name_of)
def test_examples_run(
    example: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """In this process, and with classifiers of images that learn for a few steps."""
    for steps in ("_MLP_STEPS", "_CNN_STEPS"):
        monkeypatch.setattr(classifiers, steps, 5)
    monkeypatch.setattr(sys, "argv", [str(example), str(tmp_path / "folder")])
    runpy.run_path(str(example), run_name="__main__")
    assert capsys.readouterr().out.count("\n") >= 3
    for name in ("embedding.h5", "release.h5", "synthetic/provenance.json"):
        assert (tmp_path / "folder" / name).is_file()


def commands_in(page: Path) -> list[str]:
    """What a page tells its readers to type."""
    found = []
    for block in re.findall(r"^```\w*\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL):
        for line in block.replace("\\\n", " ").splitlines():
            typed = re.sub(r"^(\$ |.* --no-python )", "", line)
            if typed.startswith("dpntk "):
                found.append(typed)
    return found


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_commands_in_a_page_are_understood(page: Path) -> None:
    """They are parsed, and not run: options are there, and have values that they can have."""
    for typed in commands_in(page):
        command: click.Command = dpntk
        words = shlex.split(typed, comments=True)[1:]
        while isinstance(command, click.Group) and words and not words[0].startswith("-"):
            found = command.get_command(click.Context(dpntk), words.pop(0))
            assert found is not None, typed
            command = found
        if "--help" not in words:
            command.make_context(command.name, words)
