"""Distances to a release, differentiable with respect to the records."""
