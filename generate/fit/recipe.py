"""Choices of generator and objective, and recipes, such as the paper's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Final, TypedDict

from ...common.arguments import argument, set_plain, whole_number
from ...common.errors import GeneratorError
from ...common.features.base import FeatureMap
from ...common.features.ntk.presets import LEARNING_RATE, PRESETS, fitting, presets_of, shape_of
from ...common.features.perceptual import PerceptualFeatures
from ...common.schema import Schema
from ...common.schema.image import GREY, ImageSchema
from ...release.file.model import Release
from .settings import TrainingSettings

IMAGES: Final = "images"
TABLES: Final = "tables"
IN_COLOUR: Final = "images in colour"
TEMPLATES, CONVOLUTIONAL, RESIDUAL, GALLERY = "template", "cnn", "resnet", "gallery"
KNOTS, PERCEPTRON = "knots", "mlp"
WHITENED, WEIGHTED, PLAIN, PEARL = "whitened", "weighted", "mmd", "pearl"
RUNNING: Final = "running"
GENERATORS: Final = {
    IMAGES: (TEMPLATES, CONVOLUTIONAL, RESIDUAL, GALLERY),
    TABLES: (KNOTS, PERCEPTRON),
}
OBJECTIVES: Final = {
    IMAGES: (WHITENED, PLAIN, PEARL, RUNNING),
    TABLES: (WEIGHTED, PLAIN, PEARL),
}
"""The choices for each kind of records; the first one is the default."""
COSINE, CONSTANT = "cosine", "constant"
SCHEDULES: Final = (COSINE, CONSTANT)
"""Schedules of the learning rate; the first one is the default."""
_OWN_CODE: Final = TEMPLATES, GALLERY, KNOTS
OF_A_GALLERY: Final = {"steps": 4000, "batch": 100, "learning_rate": 0.1}
"""Few images per step fit through a large network, and every image must appear in some steps."""
_MUCH_NOISE: Final = 0.06
"""If the squared noise on a class's mean feature exceeds this, a gallery is trained for fewer
steps: its many pixels would fit the noise."""
_SHORTER: Final = 0.6
"""The number of steps falls with this power of the squared noise."""
USUAL_CODE: Final = 10
_MOST_CODE: Final = 1000


@dataclass(frozen=True)
class ComposedSettings(TrainingSettings):
    """Settings of stage three that name the generator and the objective.

    Attributes:
        generator: for images "template", "cnn", "resnet" or "gallery", for tables "knots" or "mlp".
        objective: "mmd", the plain loss of the paper's equation 6; "pearl", that of random Fourier
            features with adversarially learnt weights; for images "whitened" or "running" and for
            tables "weighted", dpntk's own. If empty, "whitened" or "weighted".
        code: length of the latent code of "cnn", "resnet" and "mlp", 10 if it is 0; the others have
            their own, and it is 0.
        schedule: "cosine" if the learning rate falls to 0, "constant" if it does not change.
        recipe: name of the recipe that the choices come from; empty for none.
        presets: names of the presets that may have made the release's features, if the recipe's
            numbers come from them.

    Raises:
        GeneratorError: there is no such part, or a number is out of range.
    """

    generator: str = TEMPLATES
    objective: str = ""
    code: int = 0
    schedule: str = COSINE
    recipe: str = ""
    presets: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        kind = self.kind
        if not self.objective:
            set_plain(self, objective=OBJECTIVES[kind][0])
        if self.objective not in OBJECTIVES[kind]:
            known = " or ".join(OBJECTIVES[kind])
            raise GeneratorError(
                f"{argument('objective', self.objective)}: with "
                f"{argument('generator', self.generator)}, of {kind}, it is {known}"
            )
        if self.schedule not in SCHEDULES:
            known = " or ".join(SCHEDULES)
            raise GeneratorError(f"{argument('schedule', self.schedule)}: it is {known}")
        if self.generator in _OWN_CODE:
            if self.code:
                other = argument("generator", GENERATORS[kind][1])
                raise GeneratorError(f"{argument('code', self.code)}: it goes with {other}")
        else:
            code = whole_number("code", self.code, most=_MOST_CODE, refusal=GeneratorError)
            set_plain(self, code=code or USUAL_CODE)

    def rate(self, step: int) -> float:
        """See `TrainingSettings`."""
        return 1.0 if self.schedule == CONSTANT else super().rate(step)

    @property
    def kind(self) -> str:
        """The kind of records that the generator makes.

        Raises:
            GeneratorError: there is no such generator.
        """
        for kind, names in GENERATORS.items():
            if self.generator in names:
                return kind
        known = ", ".join(name for names in GENERATORS.values() for name in names)
        raise GeneratorError(f"{argument('generator', self.generator)}: known are {known}")


@dataclass(frozen=True)
class Recipe:
    """A bundle of choices, each of which can also be made individually.

    The code length and the numbers of steps and records come from the paper's table 5, by the
    network that made the release.

    Attributes:
        name: of the recipe.
        generator: by kind of records, with images in colour as a kind of their own.
        objective: for all kinds.
        learning_rate: initial learning rate.
        schedule: schedule of the learning rate.
    """

    name: str
    generator: Mapping[str, str]
    objective: str
    learning_rate: float
    schedule: str

    def choices(self, schema: Schema, feature_map: FeatureMap) -> dict[str, Any]:
        """The recipe's choices for a release: fields of `ComposedSettings`.

        Args:
            schema: of the release.
            feature_map: of the release.

        Raises:
            GeneratorError: the release was not made by one of the paper's presets.
        """
        names = presets_of(feature_map, schema)
        if not names:
            none = _none_fits(schema, feature_map)
            raise GeneratorError(f"{argument('recipe', self.name)}: {none}")
        row = PRESETS[names[0]]  # presets that share a network share the rest
        return {
            "recipe": self.name,
            "presets": names,
            "generator": self.generator[IN_COLOUR if _in_colour(schema) else kind_of(schema)],
            "objective": self.objective,
            "code": row.code,
            "steps": row.steps,
            "batch": row.batch,
            "learning_rate": self.learning_rate,
            "schedule": self.schedule,
        }


PAPER: Final = Recipe(
    "paper",
    {IMAGES: CONVOLUTIONAL, IN_COLOUR: RESIDUAL, TABLES: PERCEPTRON},
    PLAIN,
    LEARNING_RATE,
    CONSTANT,
)
"""Algorithm 1 of Yang et al., arXiv 2303.01687."""
RECIPES: Final = {recipe.name: recipe for recipe in (PAPER,)}


class Choices(TypedDict, total=False):
    """Single choices of stage three, as `dpntk generate` takes them; others keep their defaults.

    Defaults follow from the release: there are fewer steps where there is more noise, for example.
    `recipe` names a bundle of choices, over which the others take precedence. For the rest see
    `ComposedSettings`.
    """

    recipe: str
    generator: str
    objective: str
    code: int
    schedule: str
    steps: int
    batch: int
    seed: int
    learning_rate: float


def settings_from(
    choices: Mapping[str, object], usual: TrainingSettings, release: Release
) -> TrainingSettings:
    """The settings for a release from single choices.

    Args:
        choices: any of `Choices`.
        usual: the default settings for the release.
        release: to train on.

    Raises:
        GeneratorError: there is no such choice, or they do not fit each other or the release.
    """
    return settings_of(choices, usual, release.schema, release.feature_map, gallery_steps(release))


def settings_of(
    choices: Mapping[str, object],
    usual: TrainingSettings,
    schema: Schema,
    feature_map: FeatureMap,
    steps_of_gallery: float = OF_A_GALLERY["steps"],
) -> TrainingSettings:
    """The settings for a release that need not exist yet.

    Args:
        choices: any of `Choices`.
        usual: the default settings.
        schema: of the release.
        feature_map: of the release, or of the embedding that it is to be made of.
        steps_of_gallery: the default number of steps for a gallery.

    Raises:
        GeneratorError: there is no such choice, or they do not fit each other or such a release.
    """
    for name in choices:
        if name not in Choices.__annotations__:
            known = ", ".join(Choices.__annotations__)
            raise GeneratorError(f"settings: there is no {name!r}: there are {known}")
    given: dict[str, Any] = dict(choices)
    name = given.pop("recipe", None)
    if name is not None and name not in RECIPES:
        raise GeneratorError(f"{argument('recipe', name)}: it is {' or '.join(RECIPES)}")
    kind = kind_of(schema)
    parts = {"generator", "objective", "code", "schedule"} & given.keys()
    chosen = given if name is None else {**RECIPES[name].choices(schema, feature_map), **given}
    of_a_module = isinstance(feature_map, PerceptualFeatures)
    usual_one = GALLERY if of_a_module and _in_colour(schema) else GENERATORS[kind][0]
    if name is None and not parts and usual_one != GALLERY:
        return replace(usual, **given)
    generator = chosen.setdefault("generator", usual_one)
    require_generator(generator, schema)
    if of_a_module and generator == GALLERY:
        chosen.setdefault("objective", RUNNING)
    if generator in _OWN_CODE and "code" not in given:
        chosen.pop("code", None)
    numbers = {field.name: getattr(usual, field.name) for field in fields(TrainingSettings)}
    if generator == GALLERY:
        numbers |= OF_A_GALLERY | {"steps": steps_of_gallery}
    return ComposedSettings(**{**numbers, **chosen})


def gallery_steps(release: Release) -> int:
    """The default number of steps for a gallery."""
    most, square = int(OF_A_GALLERY["steps"]), release.blur**2 * release.feature_map.dimension
    share: float = (_MUCH_NOISE / max(square, _MUCH_NOISE)) ** _SHORTER
    return max(1, round(most * share))


def kind_of(schema: Schema) -> str:
    """`IMAGES` or `TABLES`."""
    return IMAGES if isinstance(schema, ImageSchema) else TABLES


def _in_colour(schema: Schema) -> bool:
    return isinstance(schema, ImageSchema) and schema.channels > GREY


def require_generator(name: str, schema: Schema) -> None:
    """Refuse a generator for another kind of records.

    Raises:
        GeneratorError: it is for another kind.
    """
    kind = kind_of(schema)
    if name not in GENERATORS[kind]:
        known = " or ".join(GENERATORS[kind])
        named = argument("generator", name)
        raise GeneratorError(f"{named}: the release is of {kind}, which take {known}")


def _none_fits(schema: Schema, feature_map: FeatureMap) -> str:
    """Explain why a release fits none of the paper's presets, and what to do instead."""
    made = f"the release has {feature_map.describe(schema)}"
    names = fitting(schema)
    if names:
        return f"{made}; what fits is embedded with {argument('preset')} {' or '.join(names)}"
    generator = argument("generator", GENERATORS[kind_of(schema)][1])
    own = f"{argument('code')}, {argument('steps')} and {argument('batch')} of your own"
    return (
        f"{made}, and the paper has no settings for {shape_of(schema)}: take {generator} "
        f"{argument('objective', PLAIN)}, and {own}"
    )
