"""Arithmetic whose every bit is defined."""
