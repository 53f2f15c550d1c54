"""Stage three: post-processing. Reads release files only, and cannot name anything else."""

from .export import SavedGenerator, load_generator
from .pipeline import generate, sample_to
from .training import Training, TrainingSettings, train

__all__ = [
    "SavedGenerator",
    "Training",
    "TrainingSettings",
    "generate",
    "load_generator",
    "sample_to",
    "train",
]
