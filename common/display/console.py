"""The terminal: every text on its way to it passes through here.

Names in data, in releases and of files are other people's. Whatever is in them, a text that is
printed stays one line, in its cell if it is in a table, and shows all that it holds
(`dpntk.common.display.untrusted`). Nothing else in dpntk writes to a terminal.
"""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Final

from rich.console import Console
from rich.panel import Panel
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
from rich.table import Table
from rich.text import Text

from .untrusted import shown

_ANY_WIDTH: Final = 1000
_USUAL_WIDTH: Final = 80
_plain_console: Final = partial(Console, highlight=False, markup=False, emoji=False)
"""Shows texts as they are: a file name may look like markup."""

Advance = Callable[[int, str], None]
"""Report progress: how many units were done, and a short remark (may be empty)."""


class Lines:
    """A stream that takes lines of text.

    Args:
        stderr: whether it is stderr, and not stdout.
    """

    def __init__(self, *, stderr: bool) -> None:
        self.terminal: Final = _plain_console(stderr=stderr)
        self.hushed = False

    @property
    def is_terminal(self) -> bool:
        """Whether somebody is looking."""
        return self.terminal.is_terminal

    def print(self, *lines: str) -> None:
        """Print each text as a line of its own; one that is longer than a terminal is not cut."""
        if self.hushed:
            return
        for line in lines:
            self.terminal.print(Text(shown(line)), soft_wrap=True)


console: Final = Lines(stderr=True)
"""For what people are told. It goes to stderr, so that stdout stays free for results that are
piped."""
out: Final = Lines(stderr=False)
"""For what was asked for."""


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Tell people nothing for a while but warnings and errors; results are printed as ever."""
    console.hushed = True
    try:
        yield
    finally:
        console.hushed = False


def notice(text: str) -> None:
    """Tell the user something worth knowing that is not an error."""
    if not console.hushed:
        _labelled("note: ", "dim", text)


def warning(text: str) -> None:
    """Tell the user something that must not be overlooked."""
    _labelled("", "", text, "bold red")


def failure(text: str) -> None:
    """Print an error as the one line that it is; a stranger's file may have a say in it."""
    _labelled("error: ", "bold red", text)


def _labelled(label: str, style: str, text: str, style_of_text: str = "") -> None:
    said = Text.assemble((label, style), (shown(text), style_of_text))
    console.terminal.print(said, soft_wrap=True)


class TextTable:
    """A table; `show` prints it.

    Args:
        title: above it.
        caption: below it.
        header: whether columns have headers.
    """

    def __init__(self, title: str = "", *, caption: str = "", header: bool = True) -> None:
        self.table: Final = Table(
            title=shown(title) or None, caption=shown(caption) or None, show_header=header
        )

    def add_column(
        self, header: str = "", *, right: bool = False, wrap: bool = True, min_width: int = 0
    ) -> None:
        """Add a column.

        Args:
            header: above it.
            right: whether its cells stand to the right, as numbers do.
            wrap: whether its cells may be broken into several lines.
            min_width: in characters; whatever its words need if 0.
        """
        self.table.add_column(
            shown(header),
            justify="right" if right else "left",
            no_wrap=not wrap,
            min_width=min_width or None,
        )

    def add_row(self, *cells: str) -> None:
        """Add a row, with a text for each column or fewer."""
        self.table.add_row(*map(shown, cells))

    def add_section(self) -> None:
        """Draw a line below the last row."""
        self.table.add_section()


def show_json(document: Mapping[str, Any]) -> None:
    """Print a document for programs to stdout."""
    out.print(*json.dumps(document, indent=2, allow_nan=False).splitlines())


def show(grid: TextTable) -> None:
    """Print a table to stdout; a terminal too narrow for it breaks its lines.

    Rich would leave out columns, and so figures.
    """
    _plain_console(width=_width_of(grid, _plain_console().width)).print(grid.table)


def as_text(grid: TextTable) -> str:
    """A table as `show` would print it where nobody looks, in lines of a usual width."""
    text = io.StringIO()
    _plain_console(file=text, width=_width_of(grid, _USUAL_WIDTH)).print(grid.table)
    return text.getvalue().rstrip("\n")


def _width_of(grid: TextTable, wanted: int) -> int:
    """The width, or what the table needs if that is more."""
    terminal = _plain_console()
    options = terminal.options.update(max_width=_ANY_WIDTH)
    needs = terminal.measure(grid.table, options=options)
    return max(wanted, needs.minimum, min(needs.maximum, _USUAL_WIDTH))


def show_label(title: str, rows: Mapping[str, str], *, good: bool) -> None:
    """Print texts with their names to stdout, in a frame.

    Names stand in a column of their own, which no text can reach.

    Args:
        title: of the frame.
        rows: name to text.
        good: whether the frame is to look so.
    """
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, text in rows.items():
        table.add_row(name, shown(text))
    style = "green" if good else "bold red"
    out.terminal.print(Panel(table, title=title, border_style=style))


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
    terminal = console.terminal
    bar = Progress(
        TextColumn(title),
        BarColumn(),
        MofNCompleteColumn(),
        _Rate(unit),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[remark]}", style="dim", markup=False),
        console=terminal,
        disable=not terminal.is_terminal or console.hushed,
        transient=True,
    )
    with bar:
        task = bar.add_task(title, total=total, remark="")

        def advance(units: int, remark: str = "") -> None:
            bar.update(task, advance=units, remark=shown(remark))

        yield advance
