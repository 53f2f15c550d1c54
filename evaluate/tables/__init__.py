"""How good synthetic tables are: the papers' twelve classifiers, and total variation distances."""
