"""Attacks on the mechanism, and what they prove."""
