"""The document of results, in which each benchmark writes a section, and the runs behind it."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Mapping
from pathlib import Path

from dpntk.common.storage.atomic import write_atomically

TABLE = Path(__file__).parent / "results/README.md"
Results = dict[str, dict[str, float]]
"""Scores and seconds of each run, by its name."""


def finished(path: Path) -> Results:
    """The runs that a file keeps; none if there is no file yet."""
    found: Results = json.loads(path.read_text()) if path.exists() else {}
    return found


def keep(results: Results, path: Path, section: str) -> None:
    """Write all finished runs, and their section of the document: after each one.

    Args:
        results: of them.
        path: of the file that keeps them.
        section: see `put_section`.
    """
    write_atomically(path, (json.dumps(dict(sorted(results.items())), indent=1) + "\n").encode())
    put_section(section)


def put_section(section: str, path: Path = TABLE) -> None:
    """Write a section, in place of the one that has the same first line.

    Args:
        section: Markdown whose first line, and no other, begins with "# ".
        path: the document.
    """
    heading = section.split("\n", 1)[0]
    text = path.read_text() if path.exists() else ""
    sections = [f"# {part.strip()}\n" for part in f"\n{text}".split("\n# ")[1:]]
    others = [part for part in sections if part.split("\n", 1)[0] != heading]
    written = sorted([*others, section.strip() + "\n"])
    write_atomically(path, "\n".join(written).encode())


def table_head(*columns: str) -> list[str]:
    """The first two lines of a table in Markdown: the names of its columns, and the rule below."""
    return [table_row(columns), "|" + "---|" * len(columns)]


def table_row(cells: Iterable[str]) -> str:
    """A line of a table in Markdown."""
    return f"| {' | '.join(cells)} |"


def rows_over_seeds(
    results: Mapping[str, Mapping[str, float]], scores: Iterable[str], separator: str
) -> dict[tuple[str, ...], list[str]]:
    """The cells of a table's rows: runs that differ in their seed alone are one row.

    Args:
        results: scores and seconds of each run, by a name whose last part is the seed.
        scores: which to show.
        separator: between the parts of a name.

    Returns:
        By the name without the seed: its parts, the number of seeds, mean and standard deviation
        of each score, and the median of the seconds. What no run has is an empty cell; of scores
        that some runs have not, it is said how many have them.
    """
    runs: dict[tuple[str, ...], list[Mapping[str, float]]] = {}
    for key, result in results.items():
        runs.setdefault(tuple(key.split(separator)[:-1]), []).append(result)
    rows: dict[tuple[str, ...], list[str]] = {}
    names = list(scores)
    for row, found in runs.items():
        cells = [*row, str(len(found))]
        for score in names:
            values = [result[score] for result in found if score in result]
            if not values:
                cells.append("")
                continue
            spread = f" ± {statistics.stdev(values):.3f}" if len(values) > 1 else ""
            of = f" ({len(values)})" if len(values) < len(found) else ""
            cells.append(f"{statistics.mean(values):.3f}{spread}{of}")
        seconds = [result["seconds"] for result in found if "seconds" in result]
        rows[row] = [*cells, f"{statistics.median(seconds):.0f}" if seconds else ""]
    return rows
