"""The base of the options of all kinds of feature maps."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import MISSING, dataclass, fields
from typing import Final

from ...common.arguments import argument, integer, number, set_plain
from ...common.display.representations import BriefRepr
from ...common.errors import SchemaError
from ...common.features.base import FeatureMap
from ...common.features.names import DEFAULT_FEATURES
from ...common.features.torchscript import PublicModule
from ...common.registry import Registry
from ...common.schema import Schema

_SEEDS: Final = 1 << 32
_SPELT: Final = {"seed": "--feature-seed"}
"""Options that have another name on the command line."""


@dataclass(frozen=True, repr=False, kw_only=True)
class FeatureOptions(BriefRepr):
    """The choice of a feature map; each kind of map has its own class.

    Guarantee:
        No option may be chosen by looking at the records: a release states the choice, and no
        epsilon covers it.

    Raises:
        SchemaError: this class was used itself, not that of a kind.
    """

    def __post_init__(self) -> None:
        # An abstract base class would raise a TypeError that names no class to use instead.
        if type(self) is FeatureOptions:
            kinds = sorted(own.__name__ for own in FEATURE_OPTIONS.entries().values())
            raise SchemaError(
                "FeatureOptions: each kind of feature map has a class of its own: "
                f"{', '.join(kinds)}; TangentOptions() is the default"
            )

    @property
    def kind(self) -> str:
        """Its name in the option `--features` of commands."""
        return next(kind for kind, own in FEATURE_OPTIONS.entries().items() if own is type(self))

    def encoding(self, schema: Schema) -> Schema:
        """The schema by which records are best encoded for the map: as it is, for most maps."""
        return schema

    @abstractmethod
    def draw(self, schema: Schema) -> FeatureMap:
        """Draw the map, without looking at any record.

        Args:
            schema: of the records.

        Raises:
            SchemaError: there is no such map for such records, or it needs a module.
        """

    def prepare(self, schema: Schema) -> tuple[FeatureMap, PublicModule | None]:
        """Draw the map, or make it from its module.

        Args:
            schema: of the records.

        Returns:
            The map, and the module that computes it, if any.

        Raises:
            SchemaError: there is no such map for such records, or the owner has not declared the
                module public.
            ModuleError: the module cannot be used.
        """
        return self.draw(schema), None

    def refuse_all(self, why: str) -> None:
        """Refuse all options but the seed, if they would have no effect.

        Args:
            why: the reason, for the error message.

        Raises:
            SchemaError: an option is set.
        """
        if self.kind != DEFAULT_FEATURES:
            raise SchemaError(f"{self._named}: {why}")
        self._refuse([field.name for field in fields(self) if field.name != "seed"], why)

    def _refuse(self, names: Iterable[str], why: str) -> None:
        """Refuse options that have no effect here."""
        usual = defaults_of(type(self))
        for name in names:
            value = getattr(self, name)
            if is_asked(value, usual[name]):
                raise SchemaError(f"{spelt(name, value)}: {why}")

    @property
    def _named(self) -> str:
        """The kind, as error messages name it."""
        return named(type(self), self.kind)


@dataclass(frozen=True, repr=False, kw_only=True)
class SeededOptions(FeatureOptions):
    """The choice of a feature map with random weights.

    Attributes:
        seed: the seed of the weights. Noise has no seed.

    Guarantee:
        That of `FeatureOptions`. No noise is drawn from `seed`.

    Raises:
        SchemaError: the seed is invalid.
    """

    seed: int = 0

    def __post_init__(self) -> None:
        set_plain(self, seed=integer("seed", self.seed, "a number", refusal=SchemaError))
        if not 0 <= self.seed < _SEEDS:
            seed = argument("seed", option=_SPELT["seed"])
            raise SchemaError(f"{seed}: a seed is from 0 to {_SEEDS - 1}")


FEATURE_OPTIONS: Final[Registry[str, type[FeatureOptions]]] = Registry(__package__ or "")
"""The options of each kind of feature maps, by its name."""


def named(options: type[FeatureOptions], kind: str) -> str:
    """A kind of features, spelt as the user chose it."""
    return argument(options.__name__, option=f"--features {kind}")


def spelt(name: str, value: object) -> str:
    """An option with its value, or with the first of several values."""
    value = value[0] if isinstance(value, list | tuple) else value
    return argument(name, value, option=_SPELT.get(name, ""))


def is_asked(value: object, usual: object) -> bool:
    """Whether an option has an effect; a weight of 0 has none."""
    return bool(value) and value != usual


def defaults_of(options: type[FeatureOptions]) -> dict[str, object]:
    """The defaults of its options; None for an option without one."""
    return {
        field.name: None if field.default is MISSING else field.default for field in fields(options)
    }


def weight_or_none(name: str, weight: object) -> float | None:
    """The weight of a part of the features as a plain float, or None.

    Raises:
        SchemaError: it is neither None nor a number from 0 to below 1.
    """
    if weight is None:
        return None
    found = number(name, weight, "a weight from 0 to below 1", refusal=SchemaError)
    if not 0 <= found < 1:
        raise SchemaError(f"{argument(name)}: the weight is from 0 to below 1")
    return found
