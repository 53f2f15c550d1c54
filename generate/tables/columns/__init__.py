"""Denoised columns of the classes of a table."""
