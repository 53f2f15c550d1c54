"""The commands of stage two."""
