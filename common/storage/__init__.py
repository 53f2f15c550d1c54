"""Atomic writes, locks, and the layout of files and folders."""
