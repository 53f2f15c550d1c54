"""The points of a distilled set, and regression from them with their own kernel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray

from ..common.display.representations import RedactedRepr
from ..common.errors import DataError
from ..common.features.infinite_ntk import ReluKernel
from ..common.features.kernel_ridge import KernelRidge, class_targets
from ..common.schema.image import PIXEL_LEVELS
from ..common.sources.images.npy import ArrayFile
from ..common.storage.synthetic_folder import POINTS
from ..release.file.distilled import LARGEST_BIAS, LARGEST_RIDGE, MOST_POINTS

_CHUNK: Final = 1000
_FARTHEST: Final = 1e3
"""Largest absolute value of a point: values are near those of records, 0..1."""


@dataclass(frozen=True, eq=False, repr=False)
class SupportSet(RedactedRepr):
    """The points of a distilled set with the regression that they were made for.

    Attributes:
        regression: fitted to the points.
        centre: subtracted from the records' values.
        levels: divisor of the records' values.
        count: number of points.
    """

    regression: KernelRidge
    centre: int
    levels: int
    count: int

    def outputs(self, records: NDArray[np.uint8]) -> NDArray[np.float64]:
        """Class scores float64 (n, classes) of records uint8 (n, D), larger if likelier."""
        found = [
            self.regression.predict((part.double() - self.centre) / self.levels)
            for part in torch.from_numpy(records).split(_CHUNK)
        ]
        return torch.cat(found).numpy()


def read_points(
    folder: Path, provenance: Mapping[str, Any], classes: int, record_size: int
) -> SupportSet:
    """Fit the regression to the points of a distilled set.

    Args:
        folder: that `dpntk generate` wrote.
        provenance: the folder's provenance.
        classes: number of classes.
        record_size: number of values in one record.

    Raises:
        DataError: they are missing or damaged, or too many for a regression.
    """
    file = folder / POINTS
    x, y = ArrayFile.open_member(file, "x"), ArrayFile.open_member(file, "y")
    if len(x) > MOST_POINTS:
        raise DataError(
            f"{file}: {len(x):,} points: a regression is fitted to {MOST_POINTS:,} at most"
        )
    damaged = DataError(f"{file}: damaged; generate the records again")
    shapes = (len(x), record_size), (len(x),)
    if (x.shape, y.shape) != shapes or x.dtype != np.float32 or y.dtype != np.int64:
        raise damaged
    try:
        (_, points), (_, labels) = next(x.read(len(x))), next(y.read(len(x)))
        kernel = provenance["kernel"]
        bias, ridge = float(kernel["bias_variance"]), float(kernel["ridge"])
        centre, levels = int(kernel["centre"]), int(kernel["levels"])
        possible = 0 < bias <= LARGEST_BIAS and 0 < ridge <= LARGEST_RIDGE
        possible = possible and 0 <= centre <= PIXEL_LEVELS and 1 <= levels <= PIXEL_LEVELS + 1
        if not possible or not np.abs(points).max() <= _FARTHEST:
            raise damaged
        regression = KernelRidge(
            ReluKernel(record_size, bias),
            torch.from_numpy(points.astype(np.float64)),
            class_targets(torch.from_numpy(labels.copy()), classes),
            ridge,
        )
    except (ArithmeticError, LookupError, TypeError, ValueError, RuntimeError) as error:
        raise damaged from error
    return SupportSet(regression, centre, levels, len(points))
