"""Moves that refine drawn rows towards a release: values change places, or are drawn anew."""
