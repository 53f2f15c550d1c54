"""The generators of rows, and the table of them by name."""
