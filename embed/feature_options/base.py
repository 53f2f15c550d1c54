"""What the options of every kind of feature maps have in common."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import MISSING, dataclass, fields
from typing import Final

from ...common.arguments import argument, require_kind
from ...common.display.representations import BriefRepr
from ...common.errors import SchemaError
from ...common.features.base import FeatureMap
from ...common.features.registry import DEFAULT_FEATURES
from ...common.features.torchscript import PublicModule
from ...common.registry import Registry
from ...common.schema import Schema

_SEEDS: Final = 1 << 32
_SPELT: Final = {"seed": "--feature-seed"}
"""Options that a command calls otherwise."""


@dataclass(frozen=True, repr=False, kw_only=True)
class FeatureOptions(BriefRepr):
    """Which feature map; each kind of maps has a class of its own.

    Guarantee:
        No option may be chosen by looking at the records: a release says what was chosen, and no
        epsilon covers the choice.

    Raises:
        SchemaError: it is of no kind.
    """

    def __post_init__(self) -> None:
        # An abstract base class would say so in a TypeError, and name no class to take instead.
        if type(self) is FeatureOptions:
            kinds = sorted(own.__name__ for own in FEATURE_OPTIONS.entries().values())
            raise SchemaError(
                "FeatureOptions: each kind of feature map has a class of its own: "
                f"{', '.join(kinds)}; TangentOptions() is the default"
            )

    @property
    def kind(self) -> str:
        """What a command calls it: `--features`."""
        return next(kind for kind, own in FEATURE_OPTIONS.entries().items() if own is type(self))

    @abstractmethod
    def draw(self, schema: Schema) -> FeatureMap:
        """Draw the map, without looking at any record.

        Args:
            schema: of the records.

        Raises:
            SchemaError: there is no such map of such records, or it takes a module.
        """

    def prepare(self, schema: Schema) -> tuple[FeatureMap, PublicModule | None]:
        """Draw the map, or find out what the module is.

        Args:
            schema: of the records.

        Returns:
            The map, and the module that computes it if it is one of a module.

        Raises:
            SchemaError: there is no such map of such records, or the owner has not said that the
                module is public.
            ModuleError: the module cannot be used.
        """
        return self.draw(schema), None

    def refuse_all(self, why: str) -> None:
        """Refuse all options but the seed, where no such map is drawn.

        Args:
            why: what the error says.

        Raises:
            SchemaError: there is one.
        """
        if self.kind != DEFAULT_FEATURES:
            raise SchemaError(f"{self._named}: {why}")
        self._refuse([field.name for field in fields(self) if field.name != "seed"], why)

    def _refuse(self, names: Iterable[str], why: str) -> None:
        """Refuse options that mean nothing here."""
        usual = defaults_of(type(self))
        for name in names:
            value = getattr(self, name)
            if is_asked(value, usual[name]):
                raise SchemaError(f"{spelt(name, value)}: {why}")

    @property
    def _named(self) -> str:
        """The kind, as an error names it."""
        return named(type(self), self.kind)


@dataclass(frozen=True, repr=False, kw_only=True)
class SeededOptions(FeatureOptions):
    """Which feature map, of a kind that has random weights.

    Attributes:
        seed: of the weights. Noise has no seed.

    Guarantee:
        That of `FeatureOptions`. No noise is drawn from `seed`.

    Raises:
        SchemaError: it is no seed.
    """

    seed: int = 0

    def __post_init__(self) -> None:
        require_kind("seed", self.seed, int, "a number", refusal=SchemaError)
        if not 0 <= self.seed < _SEEDS:
            seed = argument("seed", option=_SPELT["seed"])
            raise SchemaError(f"{seed}: a seed is from 0 to {_SEEDS - 1}")


FEATURE_OPTIONS: Final[Registry[str, type[FeatureOptions]]] = Registry(__package__ or "")
"""Options of feature maps, by the name of their kind."""


def named(options: type[FeatureOptions], kind: str) -> str:
    """A kind of features, as who chose it has written it."""
    return argument(options.__name__, option=f"--features {kind}")


def spelt(name: str, value: object) -> str:
    """An option with its value; of several values with the first."""
    value = value[0] if isinstance(value, list | tuple) else value
    return argument(name, value, option=_SPELT.get(name, ""))


def is_asked(value: object, usual: object) -> bool:
    """Whether an option asks for anything; a weight of 0 does not."""
    return bool(value) and value != usual


def defaults_of(options: type[FeatureOptions]) -> dict[str, object]:
    """Its options, each with its default; None if it has none."""
    return {
        field.name: None if field.default is MISSING else field.default for field in fields(options)
    }


def require_weight(name: str, weight: object) -> None:
    """Check the weight of a part of a feature.

    Raises:
        SchemaError: it is neither None nor a number from 0 to below 1.
    """
    wanted = "a weight from 0 to below 1"
    require_kind(name, weight, (float, int, type(None)), wanted, refusal=SchemaError)
    if isinstance(weight, float | int) and not 0 <= weight < 1:
        raise SchemaError(f"{argument(name)}: the weight is from 0 to below 1")
