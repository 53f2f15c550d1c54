"""Choices of generator and objective, and recipes, such as the paper's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Final, TypedDict

from ...common.arguments import argument, set_plain, whole
from ...common.errors import GeneratorError
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
            tables "weighted", dpntk's own.
        code: length of the latent code of "cnn", "resnet" and "mlp"; 0 for the others, which have
            their own.
        schedule: "cosine" if the learning rate falls to 0, "constant" if it does not change.
        recipe: name of the recipe that the choices come from; empty for none.
        presets: names of the presets that may have made the release's features, if the recipe's
            numbers come from them.

    Raises:
        GeneratorError: there is no such part, or a number is out of range.
    """

    generator: str = TEMPLATES
    objective: str = WHITENED
    code: int = 0
    schedule: str = COSINE
    recipe: str = ""
    presets: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        kind = self.kind
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
            code = whole(self.code, "code", GeneratorError, least=1, most=_MOST_CODE)
            set_plain(self, code=code)

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

    def choices(self, release: Release) -> dict[str, Any]:
        """The recipe's choices for a release: fields of `ComposedSettings`.

        Raises:
            GeneratorError: the release was not made by one of the paper's presets.
        """
        names = presets_of(release.feature_map, release.schema)
        if not names:
            raise GeneratorError(f"{argument('recipe', self.name)}: {_none_fits(release)}")
        row = PRESETS[names[0]]  # presets that share a network share the rest
        return {
            "recipe": self.name,
            "presets": names,
            "generator": self.generator[
                IN_COLOUR if _in_colour(release) else kind_of(release.schema)
            ],
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
    require_choices(choices, usual)
    given: dict[str, Any] = dict(choices)
    name = given.pop("recipe", None)
    recipe = None if name is None else RECIPES[name]
    return _composed(release, usual, recipe, given) or replace(usual, **given)


def require_choices(choices: Mapping[str, object], usual: TrainingSettings) -> None:
    """Refuse choices that fit no release with these default settings.

    Args:
        choices: any of `Choices`.
        usual: the default settings of some release.

    Raises:
        GeneratorError: there is no such choice, or a number is out of range.
    """
    for name in choices:
        if name not in Choices.__annotations__:
            known = ", ".join(Choices.__annotations__)
            raise GeneratorError(f"settings: there is no {name!r}: there are {known}")
    recipe = choices.get("recipe")
    if recipe is not None and recipe not in RECIPES:
        known = " or ".join(RECIPES)
        raise GeneratorError(f"{argument('recipe', recipe)}: it is {known}")
    numbers: dict[str, Any] = {
        field.name: choices[field.name] for field in fields(usual) if field.name in choices
    }
    replace(usual, **numbers)  # raises


def _composed(
    release: Release,
    usual: TrainingSettings,
    recipe: Recipe | None,
    given: Mapping[str, Any],
) -> ComposedSettings | None:
    """Compose settings from choices; None if no part is named and the defaults apply."""
    kind = kind_of(release.schema)
    parts = {"generator", "objective", "code", "schedule"} & given.keys()
    chosen = dict(given) if recipe is None else {**recipe.choices(release), **given}
    of_a_module = isinstance(release.feature_map, PerceptualFeatures)
    usual_one = GALLERY if of_a_module and _in_colour(release) else GENERATORS[kind][0]
    if recipe is None and not parts and usual_one != GALLERY:
        return None
    generator = chosen.setdefault("generator", usual_one)
    require_generator(generator, release.schema)
    running = of_a_module and generator == GALLERY
    chosen.setdefault("objective", RUNNING if running else OBJECTIVES[kind][0])
    if generator not in _OWN_CODE:
        chosen.setdefault("code", USUAL_CODE)
    elif "code" not in given:
        chosen.pop("code", None)
    numbers = {field.name: getattr(usual, field.name) for field in fields(TrainingSettings)}
    if generator == GALLERY:
        numbers |= OF_A_GALLERY | {"steps": gallery_steps(release)}
    return ComposedSettings(**{**numbers, **chosen})


def gallery_steps(release: Release) -> int:
    """The default number of steps for a gallery."""
    most, square = int(OF_A_GALLERY["steps"]), release.blur**2 * release.feature_map.dimension
    share: float = (_MUCH_NOISE / max(square, _MUCH_NOISE)) ** _SHORTER
    return max(1, round(most * share))


def kind_of(schema: Schema) -> str:
    """`IMAGES` or `TABLES`."""
    return IMAGES if isinstance(schema, ImageSchema) else TABLES


def _in_colour(release: Release) -> bool:
    return isinstance(release.schema, ImageSchema) and release.schema.channels > GREY


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


def _none_fits(release: Release) -> str:
    """Explain why a release fits none of the paper's presets, and what to do instead."""
    schema = release.schema
    made = f"the release has {release.feature_map.describe(schema)}"
    names = fitting(schema)
    if names:
        return f"{made}; what fits is embedded with {argument('preset')} {' or '.join(names)}"
    generator = argument("generator", GENERATORS[kind_of(release.schema)][1])
    own = f"{argument('code')}, {argument('steps')} and {argument('batch')} of your own"
    return (
        f"{made}, and the paper has no settings for {shape_of(schema)}: take {generator} "
        f"{argument('objective', PLAIN)}, and {own}"
    )
