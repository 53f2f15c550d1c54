"""Rows as they are written: their types, their texts, and the rules that they keep."""
