"""The release, as values in memory and as a file."""
