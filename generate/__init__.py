"""Stage three: post-processing. Reads release files only, and cannot name anything else."""

from .fit.settings import TableSettings, TrainingSettings
from .images.export import SavedGenerator, load_generator
from .images.pipeline import generate, sample_to
from .images.training import Training, train
from .tables.export import SavedTableGenerator, load_table_generator
from .tables.pipeline import generate_table, sample_table_to
from .tables.training import TableTraining, train_table

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
