"""Distillation (DP-KIP): the other room that reads records, and adds its noise itself."""

from .pipeline import distill
from .settings import PRESETS, Settings

__all__ = ["PRESETS", "Settings", "distill"]
