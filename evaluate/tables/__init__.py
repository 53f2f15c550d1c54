"""The quality of synthetic tables: the papers' twelve classifiers, and distances."""
