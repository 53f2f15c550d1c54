"""Output for people: the terminal, pages, texts, and the `repr` of objects."""
