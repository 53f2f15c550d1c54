"""Attacks on the mechanism and on synthetic records, and what they prove."""
