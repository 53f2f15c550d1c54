"""What the release of a distilled set says, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ...common.adjacency import Adjacency
from ...common.outline import Outlined
from ...common.schema import Schema
from ...common.text import promised
from .model import NOT_COVERED_OPTIONS, looked_up_in_records, spent_before

KIND: Final = "distilled"
DISTILLED_MECHANISM: Final = (
    "discrete Gaussian on exact integer sums of clipped gradients over Poisson samples"
)
VALUE_LEVELS: Final = 256
"""A support point's values are pixels, less the centre, over this."""
FARTHEST: Final = 8.0
"""Largest value of a support point."""
LARGEST_CLIP: Final = 1e6
LARGEST_RIDGE: Final = 1e3
LARGEST_BIAS: Final = 1e3
UNITS_OF_CLIP_NORM: Final = 1 << 40
"""The grid of sums and noise is the clip norm over this."""


@dataclass(frozen=True)
class DistilledGuarantee:
    """The promise, and the figures that it follows from.

    Attributes:
        epsilon: of (epsilon, delta) differential privacy.
        delta: likewise.
        adjacency: which data sets are indistinguishable.
        noise_multiplier: standard deviation of a step's noise at sensitivity 1.
        rate: probability with which a record is in a step's batch.
        steps: how many.
        clip_norm: L2 sensitivity of a step's sum of gradients.
        grid: the unit in which sums and noise are whole numbers.
        sigma: standard deviation of the noise on every coordinate of a step's sum.
        mechanism: what was done.
        accountant: how epsilon follows from the noise, with the library's version.
        total_epsilon: of this and all earlier distillations of the same records, at `delta` and
            under `adjacency`.
        total_releases: how many releases that are.
    """

    epsilon: float
    delta: float
    adjacency: Adjacency
    noise_multiplier: float
    rate: float
    steps: int
    clip_norm: float
    grid: float
    sigma: float
    mechanism: str
    accountant: str
    total_epsilon: float
    total_releases: int

    @property
    def private(self) -> bool:
        """Whether anything is promised: always."""
        return True


@dataclass(frozen=True, eq=False, repr=False)
class DistilledRelease(Outlined):
    """The privacy release of a distilled set.

    Attributes:
        points: support points, float32 (m, D): of a record with values 0..255, those less the
            centre, over 256. They may lie outside of what a record can be.
        labels: the class of each, int64 (m,); as many in each class.
        bias_variance: of the kernel.
        centre: of the records' values.
        ridge: of the regression, relative to the kernel's mean on the diagonal.
        settings: how the points were found, plain JSON, for information.
        schema: what is publicly known of the records.
        guarantee: the promise.
        release_id: 32 random hexadecimal digits.
        created: when, in UTC, ISO 8601.
        dpntk_version: of the program that wrote it.
        statement: the promise in words.
    """

    points: NDArray[np.float32]
    labels: NDArray[np.int64]
    bias_variance: float
    centre: int
    ridge: float
    settings: Mapping[str, Any]
    schema: Schema
    guarantee: DistilledGuarantee
    release_id: str
    created: str
    dpntk_version: str
    statement: str

    @property
    def epsilon(self) -> float:
        """Of all that the file says."""
        return self.guarantee.epsilon


def change_in_words(adjacency: Adjacency) -> str:
    """What is hidden, and what of the number of records."""
    return {
        Adjacency.ADD_REMOVE: (
            "adding or taking away any one record; the number of records is not in it"
        ),
        Adjacency.REPLACE_ONE: (
            "exchanging any one record for any other; the number of records is public"
        ),
    }[adjacency]


def distilled_statement(guarantee: DistilledGuarantee, schema: Schema) -> str:
    """The promise in words: unit, adjacency, what is not covered.

    Args:
        guarantee: the promise.
        schema: what was taken as known of the records.
    """
    outside = ", ".join(f"the {known}" for known in schema.known)
    if guarantee.adjacency is Adjacency.REPLACE_ONE:
        outside = f"the number of records, {outside}"
    return (
        f"This file satisfies ({promised(guarantee.epsilon)}, {promised(guarantee.delta)}) "
        f"differential privacy for {change_in_words(guarantee.adjacency)}. The unit of "
        "privacy is one record: whoever contributed several is protected less. Everything computed "
        "from this file alone is covered by the same guarantee. Not covered, and treated as "
        f"public: {outside}, the sampling rate, {NOT_COVERED_OPTIONS}."
        f"{looked_up_in_records(schema)} "
        f"{spent_before(guarantee.total_releases, guarantee.total_epsilon, guarantee.adjacency)}"
    )
