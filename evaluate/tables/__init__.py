"""How good synthetic tables are: the papers' twelve classifiers, and total variation distances."""

from .fidelity import Distances, distances
from .table import Table, read_real_table, read_synthetic_table
from .utility import Row, evaluate_tables

__all__ = [
    "Distances",
    "Row",
    "Table",
    "distances",
    "evaluate_tables",
    "read_real_table",
    "read_synthetic_table",
]
