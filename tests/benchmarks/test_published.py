"""The papers' tables: what was printed has a source, and what was measured is a mean of runs."""

from __future__ import annotations

import re

from benchmarks.published import MISSING, SOURCES, load, section

FIGURE = re.compile(r"\.\d{1,4}|\d{2,3}|-")


def test_every_cell_is_quoted_with_its_source_or_looked_up() -> None:
    published, _ = load()
    for table in published["tables"]:
        for row in table["rows"]:
            measured = {"method", "file", "keys", *(["scores"] if "scores" in row else [])}
            if "source" not in row:
                absent = row.get("cells", ["not obtainable"])
                assert set(absent) == {"not obtainable"}
                assert row.keys() - {"only", "except"} in ({"method", "cells"}, measured)
                continue
            assert row.keys() == {"method", "source", "cells"}
            assert row["source"] in SOURCES
            assert len(row["cells"]) == len(table["columns"])
            figures = [figure for cell in row["cells"] if cell for figure in cell.split(" / ")]
            assert all(FIGURE.fullmatch(figure) for figure in figures), row


def test_measured_cells_are_means_over_the_seeds() -> None:
    columns = [
        {"name": "MNIST", "key": "MNIST | 1"},
        {"name": "SVHN", "absent": "not obtainable"},
        {"name": "FashionMNIST", "key": "FashionMNIST | 10"},
    ]
    scores = ["logistic regression", "MLP"]
    rows = [
        {"method": "theirs", "source": "DP-NTK", "cells": [".8 / .9", "", ".7 / .75"]},
        {"method": "ours", "file": "a.json", "keys": ["{} | default"], "scores": scores},
        {
            "method": "of MNIST",
            "file": "a.json",
            "keys": ["{} | other"],
            "scores": scores,
            "only": " | 1",
        },
        {
            "method": "but MNIST",
            "file": "a.json",
            "keys": ["{} | default"],
            "scores": scores,
            "except": " | 1",
        },
    ]
    published = {"tables": [{"title": "T", "about": "A.", "columns": columns, "rows": rows}]}
    runs = {
        "MNIST | 1 | default | 0": {"logistic regression": 0.8, "MLP": 0.9},
        "MNIST | 1 | default | 1": {"logistic regression": 0.82, "MLP": 0.94},
        "MNIST | 10 | default | 0": {"logistic regression": 0.1, "MLP": 0.1},
        "MNIST | 1 | other | 0": {"logistic regression": 0.1, "MLP": 0.1},
    }
    lines = section(published, {"a.json": runs}).splitlines()
    assert lines[-4:] == [
        "| theirs | quoted: DP-NTK | .8 / .9 | - | .7 / .75 |",
        f"| ours | measured, 2 | .810 / .920 | not obtainable | {MISSING} |",
        "| of MNIST | measured, 1 | .100 / .100 | not obtainable | - |",
        f"| but MNIST |  | - | not obtainable | {MISSING} |",
    ]
