"""How good synthetic records are, measured on real ones."""

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
