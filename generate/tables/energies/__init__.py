"""Energies of rows: what the rows of a class are to have in common with a release."""
