"""Measure how good synthetic records are, on real ones that were not embedded.

The figures are computed from real records without noise. Publishing them is a small release of its
own, which no epsilon covers.

Example, after that of `dpntk.generate`::

    from dpntk.evaluate import evaluate, write_report

    evaluation = evaluate("synthetic", test="demo/test.csv", baseline="demo/train.csv")
    print(evaluation)
    evaluation.save("evaluation.json")
    write_report("release.h5", "synthetic", "report.html", public=True)

The public names, by what they are for:

- Measure: `evaluate`, with `TableOptions` for tables. It gives an `Evaluation`: an
  `ImageEvaluation` or a `TableEvaluation`.
- Show a release and its synthetic records on one page of HTML: `write_report`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..common.lazy import attach

if TYPE_CHECKING:
    from .html.report import write_report
    from .images.report import ImageEvaluation
    from .pipeline import evaluate
    from .report import Evaluation
    from .tables.options import TableOptions
    from .tables.report import TableEvaluation

__all__ = [
    "Evaluation",
    "ImageEvaluation",
    "TableEvaluation",
    "TableOptions",
    "evaluate",
    "write_report",
]

__getattr__, __dir__ = attach(
    __name__,
    {
        "Evaluation": ".report",
        "ImageEvaluation": ".images.report",
        "TableEvaluation": ".tables.report",
        "TableOptions": ".tables.options",
        "evaluate": ".pipeline",
        "write_report": ".html.report",
    },
)
