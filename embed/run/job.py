"""One pass over the records: what it reads, and how it adds them up."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from ...common.features.base import FeatureMap
from ...common.features.torchscript import PublicModule
from ...common.ledger import Ledger
from ...common.sources import Source
from ..exact.grid import Grid
from ..sums.accumulate import ClassSums
from ..sums.file import Embedding
from ..sums.totals import Totals


@dataclass(frozen=True, eq=False)
class Job:
    """Records to read, and the plan by which they are reduced to sums.

    Attributes:
        source: the records.
        feature_map: phi, with its weights.
        grid: the unit of the sums.
        device: where to compute; it changes no bit of the result.
        module: the module that computes the feature map, if one does.
    """

    source: Source
    feature_map: FeatureMap
    grid: Grid
    device: torch.device
    module: PublicModule | None = None

    def class_sums(self) -> ClassSums:
        """Empty sums, to which no record has been added yet."""
        classes = len(self.source.schema.classes)
        return ClassSums(self.feature_map, classes, self.grid, self.device, self.module)

    def embedding(self, totals: Totals, run: str = "") -> Embedding:
        """The embedding with the totals over all records.

        Args:
            totals: over all records.
            run: digest of the run's plan, if it had one.

        Raises:
            SchemaError: these are the totals over other records.
        """
        return Embedding(
            sums=totals.sums,
            counts=totals.counts,
            schema=self.source.schema,
            feature_map=self.feature_map,
            grid=self.grid,
            ledger=Ledger(self.source.schema.spent),
            run=run,
        )
