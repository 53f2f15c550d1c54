"""Adjacency: which two data sets the guarantee makes indistinguishable."""

from __future__ import annotations

from enum import Enum


class Adjacency(Enum):
    """Who is protected, and against what change."""

    REPLACE_ONE = "replace-one"
    """One record is exchanged for any other; the number of records n is public."""

    ADD_REMOVE = "add-remove"
    """One record is added or taken away; the number of records is not public."""

    @property
    def meaning(self) -> str:
        """One sentence for people who read a release."""
        return {
            Adjacency.REPLACE_ONE: (
                "exchanging any one record for any other; the number of records is public"
            ),
            Adjacency.ADD_REMOVE: (
                "adding or taking away any one record; the number of records is noisy"
            ),
        }[self]
