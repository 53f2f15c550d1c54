"""Moves that refine drawn rows towards a release: values are swapped or resampled."""
