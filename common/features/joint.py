"""Two or three feature maps side by side, in one vector that gets noise once."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from ..arguments import argument
from ..display.text import counted
from ..errors import SchemaError
from ..schema import Schema
from ..schema.table import TableSchema
from .base import FEATURE_MAPS, FeatureMap, described_so
from .marginals.cells import MarginalGroup
from .marginals.map import GroupChoice, MarginalFeatures
from .moments import MomentFeatures
from .ntk.map import TangentFeatures
from .rff import RandomFourierFeatures

_KEYS: Final[dict[type[TangentFeatures | RandomFourierFeatures], str]] = {
    TangentFeatures: "tangent",
    RandomFourierFeatures: "rff",
}
"""The name of psi in `spec`."""


@dataclass(frozen=True, kw_only=True)
class Parts:
    """The parts of a feature map, in the order of the feature: main, marginals, moments.

    Attributes:
        main: the map that is not tied to single columns; None if there are only marginals.
        main_weight: the factor of the main part.
        marginals: the marginals, if any.
        weight: the factor of the marginals.
        moments: the products of columns, if any.
        moment_weight: the factor of the products.
    """

    main: FeatureMap | None = None
    main_weight: float = 1.0
    marginals: MarginalFeatures | None = None
    weight: float = 1.0
    moments: MomentFeatures | None = None
    moment_weight: float = 0.0

    @property
    def split(self) -> int:
        """The coordinate at which the main part ends and the marginals begin."""
        return 0 if self.main is None else self.main.dimension

    @property
    def marginal_place(self) -> slice:
        """The coordinates of the marginals."""
        size = 0 if self.marginals is None else self.marginals.dimension
        return slice(self.split, self.split + size)

    @property
    def groups(self) -> tuple[MarginalGroup, ...]:
        """The pairs and triples of columns with joint marginals."""
        return () if self.marginals is None else self.marginals.groups

    @property
    def group_place(self) -> slice:
        """The coordinates of the groups."""
        stop = self.marginal_place.stop
        return slice(stop - sum(group.dimension for group in self.groups), stop)

    @property
    def coarse_place(self) -> slice:
        """The coordinates of pairs of numbers in few cells."""
        coarse = () if self.marginals is None else self.marginals.coarse
        stop = self.group_place.start
        return slice(stop - sum(group.dimension for group in coarse), stop)

    @property
    def level_place(self) -> slice:
        """The coordinates of numbers by level."""
        columns = () if self.marginals is None else self.marginals.by_level
        stop = self.coarse_place.start
        return slice(stop - sum(column.dimension for column in columns), stop)

    @property
    def moment_place(self) -> slice:
        """The coordinates of the products."""
        start = self.marginal_place.stop
        return slice(start, start + (0 if self.moments is None else self.moments.dimension))


def parts_of(feature_map: FeatureMap) -> Parts:
    """The parts of any feature map."""
    if isinstance(feature_map, JointFeatures):
        return Parts(
            main=feature_map.main,
            main_weight=feature_map.main_weight,
            marginals=feature_map.marginals,
            weight=feature_map.weight,
            moments=feature_map.moments,
            moment_weight=feature_map.moment_weight,
        )
    if isinstance(feature_map, MarginalFeatures):
        return Parts(marginals=feature_map)
    return Parts(main=feature_map)


@FEATURE_MAPS.add("joint")
@dataclass(frozen=True, eq=False)
class JointFeatures:
    """phi(x) = (a psi(x), b chi(x), c pi(x)) with a^2 + b^2 + c^2 = 1, where chi are marginals.

    If psi are tangent features, chi are the marginals of all columns and of requested pairs and
    triples, and pi, if present, are products of columns. If psi are random Fourier features of the
    numbers and chi the one-hot categories, it is the heterogeneous sum kernel of DP-MERF (Harder,
    Adamczewski, Park 2021, section 4.3).

    Attributes:
        main: psi.
        marginals: chi.
        weight: b, above 0 and below 1.
        moments: pi, or None.
        moment_weight: c, 0 without pi.
        weights_undecided: whether a release from this embedding is to choose b and c. Until then
            they are what they are here.

    Guarantee:
        norm_bound: a^2 ||psi||^2 + b^2 ||chi||^2 + c^2 ||pi||^2 is at most a^2 + b^2 + c^2 = 1.
        nonnegative: an inner product is the sum of the parts' inner products times a^2, b^2 and
        c^2. chi and pi are nonnegative, so the whole is nonnegative if psi is.
        (docs/privacy/proofs.md, statements 1 and 2.)
    """

    main: TangentFeatures | RandomFourierFeatures
    marginals: MarginalFeatures
    weight: float
    moments: MomentFeatures | None = None
    moment_weight: float = 0.0
    weights_undecided: bool = False
    norm_bound: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        if not 0 < self.weight < 1:
            raise SchemaError(
                f"{argument('marginals', self.weight)}: the weight is between 0 and 1"
            )
        if (self.moments is None) != (self.moment_weight == 0) or not 0 <= self.moment_weight < 1:
            weight = argument("moments", self.moment_weight)
            raise SchemaError(f"{weight}: the weight is between 0 and 1")
        if self.weight**2 + self.moment_weight**2 >= 1:
            raise SchemaError(
                f"{argument('marginals', self.weight)} and "
                f"{argument('moments', self.moment_weight)} leave nothing to the other features: "
                "their squares add up to less than 1"
            )
        if self.marginals.undecided and self.moments is None:
            raise SchemaError("feature map: pairs of columns that nothing is to choose among")
        for part in (self.marginals, self.moments):
            if part is not None and part.record_size != self.main.record_size:
                raise SchemaError("feature map: its maps take records of different sizes")
            if part is not None and part.levels != self.main.levels:
                raise SchemaError("feature map: its maps take records of different levels")

    @property
    def main_weight(self) -> float:
        """The weight of psi, a."""
        return math.sqrt(1 - self.weight**2 - self.moment_weight**2)

    def weighing(self, weight: float, moment_weight: float) -> JointFeatures:
        """The same map with these weights of its parts.

        Args:
            weight: b.
            moment_weight: c; without products there is none.
        """
        return replace(
            self,
            weight=weight,
            moment_weight=0.0 if self.moments is None else moment_weight,
            weights_undecided=False,
        )

    def choosing(
        self,
        chosen: GroupChoice | None,
        coarse: GroupChoice | None = None,
        by_level: float | None = None,
    ) -> JointFeatures:
        """The same map with some of its undecided groups chosen.

        The rest of the squared norm of 1 is divided among the other parts as before.

        Args:
            chosen: the chosen groups, and their length in the whole feature; None for none.
            coarse: the chosen pairs of numbers in few cells, likewise.
            by_level: length of numbers by level in the whole feature; None for none.
        """
        if chosen is None or not chosen.numbers:
            return replace(self, marginals=self.marginals.choosing(None))
        lengths = [choice.length for choice in (chosen, coarse) if choice and choice.numbers]
        lengths += [] if by_level is None else [by_level]
        left = math.sqrt(1 - sum(length**2 for length in lengths))
        weight = math.hypot(left * self.weight, *lengths)
        marginals = self.marginals.choosing(
            replace(chosen, length=chosen.length / weight),
            coarse and replace(coarse, length=coarse.length / weight),
            None if by_level is None else by_level / weight,
        )
        return replace(
            self, marginals=marginals, weight=weight, moment_weight=left * self.moment_weight
        )

    @property
    def record_size(self) -> int:
        """Number of values in a record."""
        return self.main.record_size

    @property
    def levels(self) -> int:
        """Records hold integers 0..levels, which stand for the values 0..1."""
        return self.main.levels

    @property
    def dimension(self) -> int:
        """The number of features: those of psi, which come first, of chi, and of pi."""
        moments = 0 if self.moments is None else self.moments.dimension
        return self.main.dimension + self.marginals.dimension + moments

    @property
    def nonnegative(self) -> bool:
        """See the class docstring."""
        return self.main.nonnegative

    def describe(self, schema: Schema) -> str:
        """A description for readers of a release."""
        return f"{self.main.describe(schema)}, {self.beside_in(schema)}"

    def beside_in(self, schema: Schema, *, planned: bool = False) -> str:
        """The parts beside the main part, in words, with the names of columns.

        Args:
            schema: the table's schema.
            planned: whether the pairs are still to be chosen.
        """
        if not isinstance(schema, TableSchema):
            return self.beside
        names = []
        known = self.marginals.named or not planned
        if self.marginals.group_length is not None and known:
            pairs = (" and ".join(names) for names in self.marginals.names_of_groups(schema))
            names.append(f"the pairs are {', '.join(pairs)}")
        target = None if self.moments is None else self.moments.target_in(schema)
        if target is not None:
            names.append(f"the target is {target}")
        return f"{self.beside} ({'; '.join(names)})" if names else self.beside

    @property
    def beside(self) -> str:
        """The parts beside the main part, in words."""
        marginals = self.marginals
        sizes = [len(group.sides) for group in marginals.groups]
        kinds = {2: "pair", 3: "triple"}
        counts = [counted(sizes.count(k), kind) for k, kind in kinds.items() if k in sizes]
        groups, length = " and ".join(counts), marginals.group_length
        if length is not None:
            of_columns = self.weight * marginals.entry * math.sqrt(len(marginals.columns))
            parts = [f"marginals of weight {of_columns:.3g}"]
            if marginals.by_level_length is not None:
                parts.append(
                    f"{counted(len(marginals.by_level), 'column')} of numbers by their levels of "
                    f"weight {self.weight * marginals.by_level_length:.3g}"
                )
            if marginals.coarse_length is not None:
                parts.append(
                    f"{counted(len(marginals.coarse), 'pair')} of numbers in few cells of weight "
                    f"{self.weight * marginals.coarse_length:.3g}"
                )
            why = "named by the owner" if marginals.named else "chosen by what the rest shows"
            parts.append(f"{groups} of columns, {why}, of weight {self.weight * length:.3g}")
        else:
            which = "to choose among" if marginals.undecided else "among them"
            if marginals.named:
                which = f"with {len(marginals.named):,} that the owner named"
            several = f" ({groups} of columns {which})" if groups else ""
            parts = [f"marginals of weight {self.weight:.3g}{several}"]
        if self.moments is not None:
            aim = self.moments.target
            larger = "" if aim is None else f" with a target {aim[1]} times as large"
            parts.append(f"products of columns of weight {self.moment_weight:.3g}{larger}")
        *others, last = parts
        return f"{', '.join(others)}, and {last}" if others else f"and {last}"

    def spec(self) -> dict[str, Any]:
        """Everything beside `weights` that is needed to rebuild the map, as plain JSON."""
        return {
            "features": "joint",
            _KEYS[type(self.main)]: self.main.spec(),
            "marginals": self.marginals.spec(),
            "weight": self.weight,
            **(
                {"moments": self.moments.spec(), "moment_weight": self.moment_weight}
                if self.moments is not None
                else {}
            ),
            **({"weights_undecided": True} if self.weights_undecided else {}),
        }

    def weights(self) -> dict[str, NDArray[np.float32]]:
        """The weights of psi."""
        return self.main.weights()

    @classmethod
    def from_spec(
        cls, spec: Mapping[str, Any], weights: Mapping[str, NDArray[Any]]
    ) -> JointFeatures:
        """Rebuild a map from `spec()` and `weights()`.

        Raises:
            SchemaError: they do not describe such a map.
        """
        marginals, weight = spec.get("marginals"), spec.get("weight")
        kind = next((kind for kind, key in _KEYS.items() if key in spec), TangentFeatures)
        main = spec.get(_KEYS[kind])
        if not isinstance(main, Mapping) or not isinstance(marginals, Mapping):
            raise SchemaError("feature map: a joint map has two parts, one of them the marginals")
        if not isinstance(weight, float):
            raise SchemaError("feature map: the marginals' weight must be a number")
        moments, moment_weight = spec.get("moments"), spec.get("moment_weight", 0.0)
        if not isinstance(moments, Mapping | None) or not isinstance(moment_weight, float):
            raise SchemaError("feature map: products of columns and their weight go together")
        rebuilt = cls(
            kind.from_spec(main, weights),
            MarginalFeatures.from_spec(marginals, {}),
            weight,
            None if moments is None else MomentFeatures.from_spec(moments),
            moment_weight,
            spec.get("weights_undecided") is True,
        )
        return described_so(rebuilt, spec)
