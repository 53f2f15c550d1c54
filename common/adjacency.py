"""Adjacency: which two data sets the guarantee makes indistinguishable."""

from __future__ import annotations

from enum import Enum


class Adjacency(Enum):
    """The change between neighbouring data sets."""

    REPLACE_ONE = "replace-one"
    """One record is exchanged for any other; the number of records n is public."""

    ADD_REMOVE = "add-remove"
    """One record is added or removed; the number of records is not public."""

    @property
    def meaning(self) -> str:
        """The change in words, for readers of a release."""
        return {
            Adjacency.REPLACE_ONE: (
                "exchanging any one record for any other; the number of records is public"
            ),
            Adjacency.ADD_REMOVE: (
                "adding or taking away any one record; the number of records is noisy"
            ),
        }[self]
