"""What the user sees: notices, one-line errors and progress, all on stderr."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Final

from rich.console import Console, RenderableType
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

_ANY_WIDTH: Final = 1000
_USUAL_WIDTH: Final = 80

console = Console(stderr=True, soft_wrap=True, highlight=False, markup=False)
"""Everything goes to stderr, so that stdout stays free for results that are piped. Texts are
printed as they are: a file name may look like markup."""

Advance = Callable[[int, str], None]
"""Report progress: how many units were done, and a short remark (may be empty)."""


def notice(text: str) -> None:
    """Tell the user something worth knowing that is not an error."""
    console.print(Text.assemble(("note: ", "dim"), text))


def warning(text: str) -> None:
    """Tell the user something that must not be overlooked."""
    console.print(Text(text, style="bold red"))


def failure(text: str) -> None:
    """Print an error as the one line that it is; a stranger's file may have a say in it."""
    console.print(Text.assemble(("error: ", "bold red"), printable(" ".join(text.split()))))


def printable(text: str) -> str:
    """The text without control characters, which could repaint a terminal."""
    return "".join(c if c.isprintable() or c == "\n" else "?" for c in text)


def show(table: RenderableType) -> None:
    """Print a table to stdout; a terminal too narrow for it breaks its lines.

    Rich would leave out columns, and so figures.
    """
    out = Console(markup=False, highlight=False)
    needs = out.measure(table, options=out.options.update(max_width=_ANY_WIDTH))
    width = max(out.width, needs.minimum, min(needs.maximum, _USUAL_WIDTH))
    Console(markup=False, highlight=False, width=width).print(table)


class _Rate(ProgressColumn):
    """Units done per second."""

    def __init__(self, unit: str) -> None:
        super().__init__()
        self.unit = unit

    def render(self, task: Task) -> Text:
        """Show the rate, or a dash while it is unknown."""
        speed = task.finished_speed or task.speed
        return Text("-" if speed is None else f"{speed:,.0f} {self.unit}/s", style="cyan")


@contextlib.contextmanager
def progress(title: str, total: int | None, unit: str) -> Iterator[Advance]:
    """Show a bar with rate and time left; print nothing where stderr is not a terminal.

    Args:
        title: what is being done.
        total: how many units there are, or None if unknown.
        unit: plural name of the unit, such as "records".

    Yields:
        A function to call with the number of units done since the last call and a remark.
    """
    bar = Progress(
        TextColumn(title),
        BarColumn(),
        MofNCompleteColumn(),
        _Rate(unit),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[remark]}", style="dim"),
        console=console,
        disable=not console.is_terminal,
        transient=True,
    )
    with bar:
        task = bar.add_task(title, total=total, remark="")

        def advance(units: int, remark: str = "") -> None:
            bar.update(task, advance=units, remark=remark)

        yield advance
