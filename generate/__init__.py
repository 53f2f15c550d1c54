"""Stage three: post-processing. Reads release files only, and cannot name anything else."""

from .fit.recipe import ComposedSettings
from .fit.settings import TableSettings, TrainingSettings
from .images.inducing_points import PointSettings
from .pipeline import generate
from .synthetic import SavedGenerator, Synthetic, load_generator, points_to, sample_to

__all__ = [
    "ComposedSettings",
    "PointSettings",
    "SavedGenerator",
    "Synthetic",
    "TableSettings",
    "TrainingSettings",
    "generate",
    "load_generator",
    "points_to",
    "sample_to",
]
