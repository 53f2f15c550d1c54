"""The terminal: every text for it passes through here.

Names in data, in releases and of files come from other people. Whatever they contain, a printed
text stays on one line, inside its cell if it is in a table, and hides nothing
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
"""Shows texts literally: a file name may look like markup."""

Advance = Callable[[int, str], None]
"""Reports progress: the number of units done, and a short remark (may be empty)."""


class Lines:
    """A stream that takes lines of text.

    Args:
        stderr: whether it is stderr, not stdout.
    """

    def __init__(self, *, stderr: bool) -> None:
        self.terminal: Final = _plain_console(stderr=stderr)
        self.hushed = False

    @property
    def is_terminal(self) -> bool:
        """Whether the stream is a terminal."""
        return self.terminal.is_terminal

    def print(self, *lines: str) -> None:
        """Print each text on its own line; lines longer than the terminal are not cut."""
        if self.hushed:
            return
        for line in lines:
            self.terminal.print(Text(shown(line)), soft_wrap=True)


console: Final = Lines(stderr=True)
"""For messages to people. They go to stderr, so that stdout stays free for results that are
piped."""
out: Final = Lines(stderr=False)
"""For results."""


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Show only warnings and errors in this block; results are printed as usual."""
    before, console.hushed = console.hushed, True
    try:
        yield
    finally:
        console.hushed = before


def notice(text: str) -> None:
    """Tell the user something worth knowing that is not an error."""
    if not console.hushed:
        _labelled("note: ", "dim", text)


def warning(text: str) -> None:
    """Warn the user of something that must not be overlooked."""
    _labelled("warning: ", "bold red", text, "bold red")


def failure(text: str) -> None:
    """Print an error as a single line; a stranger's file may have influenced its text."""
    _labelled("error: ", "bold red", text)


def _labelled(label: str, style: str, text: str, style_of_text: str = "") -> None:
    said = Text.assemble((label, style), (shown(text), style_of_text))
    console.terminal.print(said, soft_wrap=True)


class TextTable:
    """A table; `show` prints it.

    Args:
        title: the title above it.
        caption: the caption below it.
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
            header: the header above it.
            right: whether its cells are right-aligned, as for numbers.
            wrap: whether its cells may be broken into several lines.
            min_width: the least width in characters; if 0, that of its words.
        """
        self.table.add_column(
            shown(header),
            justify="right" if right else "left",
            no_wrap=not wrap,
            min_width=min_width or None,
        )

    def add_row(self, *cells: str) -> None:
        """Add a row, with one text for each column, or fewer."""
        self.table.add_row(*map(shown, cells))

    def add_section(self) -> None:
        """Draw a line below the last row."""
        self.table.add_section()


def show_json(document: Mapping[str, Any]) -> None:
    """Print a document for programs to stdout."""
    out.print(*json.dumps(document, indent=2, allow_nan=False).splitlines())


def show(grid: TextTable) -> None:
    """Print a table to stdout; a terminal that is too narrow breaks its lines.

    rich alone would leave out columns, and so figures.
    """
    _plain_console(width=_width_of(grid, _plain_console().width)).print(grid.table)


def as_text(grid: TextTable) -> str:
    """A table as `show` prints it without a terminal, with lines of the usual width."""
    return _of_width(grid, _width_of(grid, _USUAL_WIDTH))


def _of_width(grid: TextTable, width: int) -> str:
    text = io.StringIO()
    _plain_console(file=text, width=width).print(grid.table)
    return text.getvalue().rstrip("\n")


def _width_of(grid: TextTable, wanted: int) -> int:
    """The wanted width, or the width that the table needs if that is larger."""
    terminal = _plain_console()
    options = terminal.options.update(max_width=_ANY_WIDTH)
    needs = terminal.measure(grid.table, options=options)
    width = max(wanted, needs.minimum, min(needs.maximum, _USUAL_WIDTH))
    # rich shares the room out without regard to least widths, and cuts what is too wide then.
    while width < needs.maximum and _is_cut(_of_width(grid, width)):
        width += 1
    return width


def _is_cut(text: str) -> bool:
    """Whether a table has lost its right border, by its last line."""
    return any(line.startswith("└") and not line.endswith("┘") for line in text.splitlines())


def show_label(title: str, rows: Mapping[str, str], *, good: bool) -> None:
    """Print named texts to stdout, in a frame.

    Names have their own column, which no text can reach.

    Args:
        title: the frame's title.
        rows: the texts by name.
        good: whether the frame signals success.
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
    """Show a bar with rate and time left; print nothing if stderr is not a terminal.

    Args:
        title: what is being done.
        total: the number of units, or None if unknown.
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
