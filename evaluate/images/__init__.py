"""How useful synthetic images are."""
