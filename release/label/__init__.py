"""The label of a release, for people and for programs."""
