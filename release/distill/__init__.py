"""Distillation (DP-KIP): a mechanism that reads records, and adds noise, at every step."""

from .pipeline import distill
from .settings import PRESETS, Settings

__all__ = ["PRESETS", "Settings", "distill"]
