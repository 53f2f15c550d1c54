"""The release as values and as a file."""
