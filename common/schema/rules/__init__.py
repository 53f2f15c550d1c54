"""Conditions on the rows of a table, and the small language for them."""
