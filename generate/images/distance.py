"""What training of images makes small."""

from __future__ import annotations

from typing import Protocol

from torch import Tensor


class ImageDistance(Protocol):
    """How far generated images are from a release."""

    noise_variance: Tensor
    """Of an entry of each class's mean feature, (c,)."""
    in_pairs: bool
    """Whether the second half of a class's records may be made of the first half's codes times -1.
    What is linear in a code then cancels in their mean, and a batch tells more of it."""

    @property
    def noise_floor(self) -> float:
        """What the release's noise alone adds to the distance, in expectation."""
        ...

    def look_at(self, records: Tensor) -> None:
        """Choose directions and weights by generated records, if there is something to choose."""
        ...

    def __call__(self, records: Tensor) -> Tensor:
        """The distance of a batch (c, b, record size), a scalar."""
        ...
