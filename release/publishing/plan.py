"""The noise of a release, computed before anything is spent."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ...common.features.base import FeatureMap
from ...common.schema.privacy_unit import PrivacyUnit
from ...embed.exact.grid import Grid
from ..file.model import INDISTINCT
from ..mechanism.accountant import epsilon_for
from .fewer_cells import map_with_fewer_cells
from .layout import layout_of
from .lengths import blur_of
from .parameters import PrivacyParameters, noise_on


@dataclass(frozen=True)
class Plan:
    """The noise of a planned release, and a bound on its signal.

    The released matrix is the sum of the records' features by class (d x c) divided by their
    number. Column j holds the mean feature of class j, of length 1 at most, times the share of the
    class. All classes are taken to be equally frequent: a rare class has less signal in the same
    noise.

    Attributes:
        parameters: the promise of the release.
        records: number of records.
        classes: c, the number of classes.
        feature_map: of the release, with the weights that its parts would have.
        noise_multiplier: standard deviation of the noise at sensitivity 1.
        sensitivity: L2 sensitivity of the sums, in units of the norm of one record's feature.
        sigma: standard deviation of the noise on every sum, in the same units.
        unit: whose records are protected together; None if each is protected by itself.
    """

    parameters: PrivacyParameters
    records: int
    classes: int
    feature_map: FeatureMap
    noise_multiplier: float
    sensitivity: float
    sigma: float
    unit: PrivacyUnit | None = None

    @property
    def delta(self) -> float:
        """The delta that the release would promise."""
        return self.parameters.delta_for(self.records)

    @property
    def dimension(self) -> int:
        """The length d of a feature."""
        return self.feature_map.dimension

    @property
    def noise_per_coordinate(self) -> float:
        """Standard deviation of the noise on each entry of the released matrix."""
        return self.sigma / self.records

    @property
    def noise_norm(self) -> float:
        """Expected Frobenius norm of the noise in the released matrix."""
        return self.noise_per_coordinate * math.sqrt(self.dimension * self.classes)

    @property
    def signal_bound(self) -> float:
        """The largest Frobenius norm of the matrix without noise: 1 / sqrt(c)."""
        return 1 / math.sqrt(self.classes)

    @property
    def excess(self) -> float:
        """Norm of the noise over the bound on the signal; above 1, most of the matrix is noise."""
        return self.noise_norm / self.signal_bound

    @property
    def loss_floor(self) -> float:
        """Expected contribution of the noise to the training loss."""
        return self.excess**2

    @property
    def blur(self) -> float:
        """Noise of a class's mean feature along any one direction; the feature has length up to 1.

        Training averages over the coordinates, so features down to about this size can be learnt.
        Near 1, nothing can.
        """
        return self.noise_per_coordinate * self.classes

    @property
    def indistinct(self) -> bool:
        """Whether classes can hardly be distinguished from noise."""
        return self.blur > INDISTINCT

    def epsilon_where(self, share: float) -> float:
        """The epsilon, other things equal, of a release with `share` times the noise."""
        return epsilon_for(self.noise_multiplier * share, self.delta)


def plan(
    feature_map: FeatureMap,
    grid: Grid,
    classes: int,
    records: int,
    parameters: PrivacyParameters,
    unit: PrivacyUnit | None = None,
) -> Plan:
    """Compute the noise of a release from public facts.

    Guarantee:
        Reads no record and no sum, and spends nothing. Under add-remove the number of records is
        itself protected: `records` has to be a guess that does not come from them.

    Args:
        feature_map: of the embedding, made or planned.
        grid: of its sums.
        classes: number of classes.
        records: number of records.
        parameters: the promise of the release.
        unit: whose records are protected together; None if each is protected by itself.

    Raises:
        BudgetError: the parameters do not suit this number of records.
    """
    noise = noise_on(feature_map, grid, records, parameters, unit)
    blur = blur_of(noise, grid, classes, records)
    fewer = map_with_fewer_cells(feature_map, noise, blur, classes)
    released = layout_of(fewer, noise, blur, classes).feature_map
    return Plan(
        parameters=parameters,
        records=records,
        classes=classes,
        feature_map=released,
        noise_multiplier=noise.noise_multiplier,
        sensitivity=noise.sensitivity * grid.unit,
        sigma=noise.sigma * grid.unit,
        unit=unit,
    )
