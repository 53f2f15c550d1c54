"""Stage three: post-processing. Reads release files only, and cannot name anything else."""

from .export import SavedGenerator, load_generator
from .pipeline import generate, sample_to
from .table_export import SavedTableGenerator, load_table_generator
from .table_pipeline import generate_table, sample_table_to
from .table_training import TableSettings, TableTraining, train_table
from .training import Training, TrainingSettings, train

__all__ = [
    "SavedGenerator",
    "SavedTableGenerator",
    "TableSettings",
    "TableTraining",
    "Training",
    "TrainingSettings",
    "generate",
    "generate_table",
    "load_generator",
    "load_table_generator",
    "sample_table_to",
    "sample_to",
    "train",
    "train_table",
]
