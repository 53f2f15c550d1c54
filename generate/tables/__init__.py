"""From a release of a table to a synthetic table."""
