"""Options of perceptual features, computed by a public module (DP-MEPF)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from ...common.arguments import argument, require_flag, require_kind, set_plain
from ...common.errors import SchemaError
from ...common.features.base import FeatureMap
from ...common.features.torchscript import PublicModule, load_module
from ...common.schema import Schema
from ...common.schema.image import ImageSchema
from .base import FEATURE_OPTIONS, FeatureOptions, weight_or_none


@FEATURE_OPTIONS.add("perceptual")
@dataclass(frozen=True, repr=False, kw_only=True)
class PerceptualOptions(FeatureOptions):
    """For images: the outputs of a module that was trained on public images (DP-MEPF).

    Attributes:
        module: a TorchScript archive of a module that maps float32 images (b, channels, side,
            side), values 0..1, to a tensor (b, ...). It always runs on the CPU.
        module_is_public: the owner's statement that the module was trained on public data only. The
            guarantee does not cover its training data.
        squares: weight of the squares of the module's outputs beside the outputs
            (`dpntk.common.features.perceptual`); no squares if None or 0.
        rectified: whether negative outputs of the module are set to 0, which needs less noise.

    Guarantee:
        None of this may be chosen by looking at the records: a release states the choice, and no
        epsilon covers it.

    Raises:
        SchemaError: an option has the wrong type or is out of range.
    """

    module: Path | str | None = None
    module_is_public: bool = False
    squares: float | None = None
    rectified: bool = False

    def __post_init__(self) -> None:
        path = (str, Path, type(None))
        require_kind("module", self.module, path, "the path of a file", refusal=SchemaError)
        for name in ("module_is_public", "rectified"):
            require_flag(name, getattr(self, name), refusal=SchemaError)
        set_plain(self, squares=weight_or_none("squares", self.squares))

    def draw(self, schema: Schema) -> FeatureMap:
        """Refuse to draw the map: its weights come from a module.

        Raises:
            SchemaError: always.
        """
        raise SchemaError(f"{self._named}: a module's features are not drawn: embed first")

    def prepare(self, schema: Schema) -> tuple[FeatureMap, PublicModule]:
        """Read the module and make its map.

        Args:
            schema: of the records.

        Returns:
            The map, and the module that computes it.

        Raises:
            SchemaError: the records are not images, or the owner has not declared the module
                public.
            ModuleError: the module cannot be used.
        """
        if not isinstance(schema, ImageSchema):
            raise SchemaError(f"{self._named}: it is for images, not for tables")
        if self.module is None:
            module = argument("module", option="--module FILE")
            raise SchemaError(f"{self._named}: name the module's file with {module}")
        if not self.module_is_public:
            raise SchemaError(
                f"{argument('module', self.module)}: no epsilon covers the data that it was "
                f"trained on; add {argument('module_is_public', True)} if all of them are public"
            )
        shape = (schema.channels, schema.side, schema.side)
        opened = load_module(Path(self.module), shape, schema.levels)
        squares = float(self.squares or 0)
        return replace(opened.feature_map, squares=squares, rectified=self.rectified), opened
