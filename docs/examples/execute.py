"""Execute a notebook in a folder of its own, and keep what its cells show.

Run: python docs/examples/execute.py docs/examples/table.ipynb

Cells are Python, or begin with `!dpntk`. What a cell's last line is worth is shown: tables as HTML,
pictures as PNG. The signing key is one for the occasion.
"""

from __future__ import annotations

import ast
import base64
import contextlib
import io
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

COMMAND = Path(sys.executable).with_name("dpntk")


def execute(notebook: dict[str, Any]) -> None:
    """Run all cells from top to bottom, in the current folder, and replace their outputs."""
    names: dict[str, Any] = {}
    for number, cell in enumerate(code_cells(notebook), start=1):
        source = "".join(cell["source"])
        shown = of_command(source) if source.startswith("!") else of_python(source, names)
        cell["execution_count"] = number
        cell["outputs"] = [output | numbered(output, number) for output in shown]


def code_cells(notebook: dict[str, Any]) -> list[dict[str, Any]]:
    """Those that are no text."""
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def numbered(output: dict[str, Any], number: int) -> dict[str, Any]:
    """What the format asks for in a result."""
    return {"execution_count": number} if output["output_type"] == "execute_result" else {}


def of_command(line: str) -> list[dict[str, Any]]:
    """What a command says, on both of its streams."""
    words = shlex.split(line.removeprefix("!dpntk "))
    done = subprocess.run([COMMAND, *words], capture_output=True, text=True, check=True)
    said = [
        line
        for line in (done.stdout + done.stderr).splitlines()
        if not line.startswith("note: made a signing key")
    ]
    return printed("\n".join(said))


def of_python(source: str, names: dict[str, Any]) -> list[dict[str, Any]]:
    """What a cell prints, and what its last line is worth."""
    body = ast.parse(source).body
    last = body[-1] if isinstance(body[-1], ast.Expr) else None
    body = body[:-1] if last else body
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        exec(compile(ast.Module(body, []), "cell", "exec"), names)  # noqa: S102
        value = eval(compile(ast.Expression(last.value), "cell", "eval"), names) if last else None  # noqa: S307
    return [*printed(output.getvalue()), *([] if value is None else [result(value)])]


def printed(text: str) -> list[dict[str, Any]]:
    """Text as a notebook keeps it."""
    lines = text.strip("\n").splitlines(keepends=True)
    return [{"output_type": "stream", "name": "stdout", "text": lines}] if lines else []


def result(value: Any) -> dict[str, Any]:
    """A value as a notebook keeps it."""
    data: dict[str, Any] = {"text/plain": re.sub(r" at 0x\w+", "", repr(value))}
    if hasattr(value, "_repr_png_"):
        data["image/png"] = base64.b64encode(value._repr_png_()).decode()
    elif hasattr(value, "to_html"):
        data["text/html"] = value.to_html().splitlines(keepends=True)
    return {"output_type": "execute_result", "data": data, "metadata": {}}


def main(path: Path) -> None:
    """Execute one notebook and write it back."""
    path = path.resolve()
    notebook = json.loads(path.read_text())
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_CONFIG_HOME"] = f"{folder}/config"
        work = Path(folder) / "work"
        work.mkdir()
        os.chdir(work)
        execute(notebook)
        os.chdir("/")
        text = json.dumps(notebook, indent=1, ensure_ascii=False).replace(folder, ".")
    path.write_text(text + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
