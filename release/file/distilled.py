"""The release of a distilled set, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from ...common.display.representations import RedactedRepr
from ...common.schema import Schema
from .model import Figure, Guarantee, Opened, OpenedRelease

if TYPE_CHECKING:
    from typing_extensions import TypeIs

KIND: Final = "distilled"
DISTILLED_MECHANISM: Final = (
    "discrete Gaussian on exact integer sums of clipped vectors over Poisson samples"
)
NO_DISTILLED_MECHANISM: Final = "none: whole gradients over Poisson samples"
NO_ACCOUNTANT: Final = "nothing to account for"
VALUE_LEVELS: Final = 256
"""A support point's values are pixels minus the centre, divided by this: a power of two, so that
nothing is rounded."""
FARTHEST: Final = 8.0
"""The largest absolute value in a support point."""
LARGEST_CLIP: Final = 1e6
LARGEST_RIDGE: Final = 1e3
LARGEST_BIAS: Final = 1e3
MOST_POINTS: Final = 8_192
"""Most support points over all classes. A matrix of all pairs of them takes half a gigabyte,
and a regression on the points solves a system of that many equations."""
UNITS_OF_CLIP_NORM: Final = 1 << 40
"""The grid unit of sums and noise is the clip norm divided by this."""


@dataclass(frozen=True, kw_only=True)
class DistilledGuarantee(Guarantee):
    """The guarantee of a distilled set's release.

    Each step releases a sum of clipped vectors, from which its gradient follows.

    Attributes:
        sampling_prob: probability with which a record is in a step's batch.
        steps: the number of steps.
        clip_norm: L2 sensitivity of a step's sum. Without noise nothing is clipped:
            the norm is infinite, and the grid is 0.
    """

    sampling_prob: float
    steps: int
    clip_norm: float

    def figures(self) -> dict[str, Figure]:
        """See `Guarantee.figures`."""
        return {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "adjacency": self.adjacency.value,
            "noise_multiplier": self.noise_multiplier,
            "rate": self.sampling_prob,
            "steps": self.steps,
            "clip_norm": self.clip_norm,
            "grid": self.grid,
            "sigma": self.sigma,
            "mechanism": self.mechanism,
            "accountant": self.accountant,
            "total_epsilon": self.total_epsilon,
            "total_adjacency": self.total_adjacency.value,
            "total_releases": self.total_releases,
        }


@dataclass(frozen=True, eq=False, repr=False)
class DistilledRelease(RedactedRepr):
    """The privacy release of a distilled set.

    Attributes:
        points: support points, float32 (m, D), in the units of a record's values 0..255, minus the
            centre and divided by 256. They may lie outside the range of records.
        labels: the class of each point, int64 (m,); all classes have equally many points.
        bias_variance: the kernel's bias variance.
        centre: the centre of the records' values.
        ridge: the regression's ridge, relative to the mean of the kernel's diagonal.
        settings: how the points were found, plain JSON, for information.
        schema: what is publicly known of the records.
        guarantee: the guarantee.
        release_id: 32 random hexadecimal digits.
        created: when, in UTC, ISO 8601.
        dpntk_version: the version of dpntk that wrote it.
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
        """The epsilon of everything in the file."""
        return self.guarantee.epsilon


OpenedDistilled = Opened[DistilledRelease]
AnyOpened = OpenedRelease | OpenedDistilled


def holds_points(opened: AnyOpened) -> TypeIs[OpenedDistilled]:
    """Whether a release is a distilled set's, not an embedding's."""
    return isinstance(opened.release, DistilledRelease)
