"""Notebooks were executed, are small, name no machine, and ask for nothing that is not there."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import click
import pytest

from docs.examples.execute import code_cells, execute
from dpntk.common.cli.app import dpntk

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
NOTEBOOKS = sorted(EXAMPLES.glob("*.ipynb"))
MACHINE = re.compile(r"(?<![\w./])/(?:tmp|home|root|work|var|Users)\b")


def source_of(cell: dict[str, Any]) -> str:
    return "".join(cell["source"])


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_was_executed_from_top_to_bottom(path: Path) -> None:
    text = path.read_text()
    assert len(text) < 60_000
    assert not MACHINE.search(text)
    notebook = json.loads(text)
    assert notebook["nbformat"] == 4
    cells = code_cells(notebook)
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    assert sum(bool(cell["outputs"]) for cell in cells) >= len(cells) - 1
    kinds = {kind for cell in cells for out in cell["outputs"] for kind in out.get("data", {})}
    assert ("text/html" if path.stem == "table" else "image/png") in kinds


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_its_cells_can_be_typed(path: Path) -> None:
    """Python is compiled, and commands are parsed: that they run, `execute.py` has shown."""
    for cell in code_cells(json.loads(path.read_text())):
        source = source_of(cell)
        if not source.startswith("!dpntk "):
            compile(source, path.name, "exec")
            continue
        name, *words = shlex.split(source)[1:]
        command = dpntk.get_command(click.Context(dpntk), name)
        assert command is not None
        command.make_context(name, words)


def test_what_cells_show_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    cells: list[dict[str, Any]] = [
        {"cell_type": "markdown", "source": ["# Text"]},
        {"cell_type": "code", "source": ["!dpntk --help"]},
        {"cell_type": "code", "source": ["x = 3\n", "print(x)\n", "object()"]},
    ]
    execute({"cells": cells})
    (help_text,) = cells[1]["outputs"]
    assert "Usage: dpntk" in "".join(help_text["text"])
    printed, result = cells[2]["outputs"]
    assert printed == {"output_type": "stream", "name": "stdout", "text": ["3"]}
    assert result["data"] == {"text/plain": "<object object>"}
    assert result["execution_count"] == cells[2]["execution_count"] == 2
