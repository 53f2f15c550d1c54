"""The papers' tables: what they printed beside what was measured here.

Printed figures are in benchmarks/results/published.toml, each row with its source. Measured ones
are means over the runs of the other benchmarks, from their JSON files. A cell without runs says so.
The tables are a section of benchmarks/results/README.md.

Run: python -m benchmarks.published
"""

from __future__ import annotations

import json
import statistics
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from .sections import put_section

RESULTS: Final = Path(__file__).parent / "results"
SOURCES: Final = {
    "DP-NTK": "Yang, Adamczewski, Li, Sutherland and Park, arXiv 2303.01687",
    "DP-KIP": "Vinaroz and Park, arXiv 2301.13389",
    "DPImageBench": "Gong, Li, Lin and Wang, arXiv 2503.14681",
    "FETA-Pro": "Gong, Li, Lin and Wang, arXiv 2601.06368",
}
MISSING: Final = "not measured"
_SEPARATOR: Final = " | "
_EMPTY: Final = "-"

Runs = Mapping[str, Mapping[str, float]]


def section(published: Mapping[str, Any], results: Mapping[str, Runs]) -> str:
    """All tables as Markdown.

    Args:
        published: what published.toml says.
        results: runs by name, seed last, of each file that it names.
    """
    lines = ["# Published figures beside ours", ""]
    lines += [f"{name}: {reference}." for name, reference in SOURCES.items()]
    lines += [
        "Quoted rows are as that paper has them, its own and other people's. Measured ones are",
        "ours: means over so many runs, each with the same settings for all data and epsilons.",
        f'"{_EMPTY}": not printed, or not measured. Written by `benchmarks/published.py`.',
    ]
    for table in published["tables"]:
        columns = table["columns"]
        names = [column["name"] for column in columns]
        lines += ["", f"## {table['title']}", "", table["about"], ""]
        lines.append(f"| | from | {' | '.join(names)} |")
        lines.append("|---|---|" + "---|" * len(names))
        for row in table["rows"]:
            cells, origin = _cells(row, columns, results)
            lines.append(f"| {row['method']} | {origin} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _cells(
    row: Mapping[str, Any], columns: list[dict[str, Any]], results: Mapping[str, Runs]
) -> tuple[list[str], str]:
    """A row's cells, and where they are from."""
    if "cells" in row:
        assert len(row["cells"]) == len(columns)
        origin = f"quoted: {row['source']}" if "source" in row else ""
        return [cell or _EMPTY for cell in row["cells"]], origin
    runs = results[row["file"]]
    cells, seeds = [], set()
    for column in columns:
        if "absent" in column:
            cells.append(column["absent"])
            continue
        kept, left_out = row.get("only", ""), row.get("except")
        if not column["key"].endswith(kept) or (left_out and column["key"].endswith(left_out)):
            cells.append(_EMPTY)
            continue
        means = []
        for key in row["keys"]:
            name = key.format(column["key"])
            found = [run for each, run in runs.items() if each.rsplit(_SEPARATOR, 1)[0] == name]
            seeds |= {len(found)} - {0}
            for score in row.get("scores") or column["scores"]:
                values = [run[score] for run in found if score in run]
                means.append(f"{statistics.fmean(values):.3f}".lstrip("0") if values else "")
        cells.append(" / ".join(mean or _EMPTY for mean in means) if any(means) else MISSING)
    if not seeds:
        return cells, ""
    few, many = min(seeds), max(seeds)
    return cells, f"measured, {few}" + ("" if few == many else f" to {many}")


def load() -> tuple[dict[str, Any], dict[str, Runs]]:
    """What published.toml says, and the results that it names."""
    published = tomllib.loads((RESULTS / "published.toml").read_text())
    rows = [row for table in published["tables"] for row in table["rows"]]
    files = {row["file"] for row in rows if "file" in row}
    results: dict[str, Runs] = {}
    for name in files:
        path = RESULTS / name
        results[name] = json.loads(path.read_text()) if path.exists() else {}
    return published, results


if __name__ == "__main__":
    put_section(section(*load()))
