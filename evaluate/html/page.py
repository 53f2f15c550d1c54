"""Render the page of a report."""

from __future__ import annotations

from typing import Any, Final

from jinja2 import Environment

from ...common.display.html import pages_of
from ...common.display.text import promised

BEGINS: Final = b"<!DOCTYPE html>\n<!-- dpntk report"
"""Beginning of every report."""
_LONGEST_NAME: Final = 60


def rendered(**what: Any) -> bytes:  # noqa: ANN401 - whatever the template shows
    """Render the report, in UTF-8.

    Args:
        **what: values by their names in `templates/report.html`.
    """
    return _pages().get_template("report.html").render(what).encode()


def _pages() -> Environment:
    pages = pages_of("dpntk.evaluate.html")
    pages.filters |= {
        "short": _short, "percent": _percent, "signed": "{:z.2f}".format, "figure": _figure,
    }  # fmt: skip
    return pages


def _short(name: str) -> str:
    """Shorten a name to fit into a table."""
    return name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}…"


def _percent(share: float) -> str:
    return f"{100 * share:.1f}%"


def _figure(value: object, name: str) -> str:
    """Format a figure of the promise with six digits; epsilon and delta are never rounded down."""
    if isinstance(value, float):
        is_loss = "epsilon" in name or "delta" in name
        return promised(value) if is_loss else f"{value:.6g}"
    return f"{value:,}" if isinstance(value, int) else str(value)
