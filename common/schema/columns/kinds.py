"""The meaning and scale of a column's values, and the treatment of missing ones."""

from __future__ import annotations

from enum import Enum


class ColumnKind(Enum):
    """What the values of a column mean."""

    CONTINUOUS = "continuous"
    """Real numbers between two bounds."""
    INTEGER = "integer"
    """Whole numbers between two bounds, both included."""
    DATE = "date"
    """Days between two bounds, both included."""
    DATETIME = "datetime"
    """Times between two bounds, both included, in whole steps of a unit."""
    DURATION = "duration"
    """Lengths of time between two bounds, both included, in whole steps of a unit."""
    ORDINAL = "ordinal"
    """One of several ordered categories, listed in their order."""
    CATEGORICAL = "categorical"
    """One of several categories without an order."""
    BOOLEAN = "boolean"
    """One of two categories: the one for false, then the one for true."""

    @property
    def numeric(self) -> bool:
        """Whether values are numbers between bounds; otherwise they are categories."""
        return self in (ColumnKind.CONTINUOUS, ColumnKind.INTEGER) or self.timed

    @property
    def temporal(self) -> bool:
        """Whether values are dates or times: numbers of steps since the beginning of 1970."""
        return self in (ColumnKind.DATE, ColumnKind.DATETIME)

    @property
    def timed(self) -> bool:
        """Whether values count steps of time."""
        return self.temporal or self is ColumnKind.DURATION


class Transform(Enum):
    """The scale of a numeric column."""

    NONE = "none"
    LOG1P = "log1p"
    """log(1 + x): for nonnegative amounts that span orders of magnitude."""
    SIGNED_LOG = "signed-log"
    """sign(x) log(1 + |x|): the same for amounts of either sign."""


class Missing(Enum):
    """The treatment of missing values."""

    REFUSED = "refused"
    """A missing value is an error."""
    CATEGORY = "category"
    """It counts as one more category (for ordinal, categorical and boolean columns)."""
    INDICATOR = "indicator"
    """A further value of the record marks it (for numeric columns)."""
