"""From an embedding to a release: the one place where noise is added to sums."""
