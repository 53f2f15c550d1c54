"""Conditions on the rows of a table, in a small language of their own."""
