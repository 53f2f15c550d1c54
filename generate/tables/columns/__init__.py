"""Columns of the classes of a table, without noise as far as a release allows."""
