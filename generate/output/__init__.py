"""Files that are written beside the records."""
