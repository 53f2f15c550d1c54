"""Distances between two tables: one metric per module, all of them in `distances`."""
