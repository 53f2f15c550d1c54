"""How good synthetic records are, measured on real ones."""

from .images.records import Records, read_real, read_synthetic
from .images.utility import Accuracies, measure

__all__ = ["Accuracies", "Records", "measure", "read_real", "read_synthetic"]
