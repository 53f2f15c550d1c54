"""Adjacency: which two data sets the guarantee makes indistinguishable."""

from __future__ import annotations

from enum import Enum


class Adjacency(Enum):
    """Who is protected, and against what change."""

    REPLACE_ONE = "replace-one"
    """One record is exchanged for any other; the number of records n is public."""

    @property
    def meaning(self) -> str:
        """One sentence for people who read a release."""
        return {
            Adjacency.REPLACE_ONE: (
                "exchanging any one record for any other; the number of records is public"
            ),
        }[self]
