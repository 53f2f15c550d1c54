"""Drafting a table's schema from its values."""
