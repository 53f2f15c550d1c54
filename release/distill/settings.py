"""The settings of a distillation. All are public, and none may come from the records."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any, Final

from ...common.arguments import (
    MOST_SEED,
    argument,
    integer,
    number,
    require_kind,
    set_plain,
    whole_number,
)
from ...common.errors import BudgetError
from ...common.schema.image import PIXEL_LEVELS
from ..file.distilled import LARGEST_BIAS, LARGEST_CLIP, LARGEST_RIDGE
from ..mechanism.subsampled_gaussian import MOST_STEPS
from .sampling import require_sampling_prob

_LEAST: Final = 1e-6
"""The least clip norm and the like. With far smaller ones squares of long shares would underflow
(docs/privacy/proofs.md, statement 16), as would the file's grid; a ridge would be lost in rounding,
and a kernel matrix of equal support points would have no Cholesky factor."""


@dataclass(frozen=True)
class Settings:
    """How support points are found.

    Attributes:
        per_class: support points in each class.
        sampling_prob: probability with which a record is in a step's batch.
        steps: the number of steps; one of thirty gives class means, the others gradients.
        clip_norm: the norm to which a record's longer shares in the sums are clipped; without
            noise, none are clipped. It is in units in which it need not follow the number of
            support points, the ridge, or the data (`gradients`).
        learning_rate: how far points move in the first step, in root mean square; it falls to a
            tenth along half a cosine.
        ridge: the regression's ridge, relative to the mean of the kernel's diagonal.
        bias_variance: the bias variance of the kernel's network.
        start: standard deviation of what is added to class means at the start.
        centre: the one of a record's values 0..255 that counts as 0.
        smoothing: for images: width in pixels of the Gaussian that smooths noisy gradients; 0 for
            none. Noise is equally strong at every spatial frequency, and images are not.
        averaging: the factor of the moving average over steps that becomes the result.
        seed: the seed of the start, which is public. Neither noise nor batches have a seed.
        origin: where the settings come from, in words.

    Raises:
        BudgetError: a number is out of its range.
    """

    per_class: int = 10
    sampling_prob: float = 1 / 30
    steps: int = 200
    clip_norm: float = 0.3
    learning_rate: float = 0.02
    ridge: float = 1e-3
    bias_variance: float = 0.01
    start: float = 0.05
    centre: int = 0
    smoothing: float = 1.5
    averaging: float = 0.98
    seed: int = 0
    origin: str = "default, as chosen on MNIST"

    def __post_init__(self) -> None:
        for field in fields(self):
            name, value = field.name, getattr(self, field.name)
            if isinstance(field.default, float):
                plain: object = number(name, value, "a number", refusal=BudgetError)
            elif isinstance(field.default, int):
                plain = integer(name, value, "a whole number", refusal=BudgetError)
            else:
                require_kind(name, value, str, "a text", refusal=BudgetError)
                plain = value
            set_plain(self, **{name: plain})
        require_sampling_prob(self.sampling_prob)
        for name, least, most in (
            ("per_class", 1, 10_000),
            ("steps", 1, MOST_STEPS),
            ("clip_norm", _LEAST, LARGEST_CLIP),
            ("learning_rate", _LEAST, 10),
            ("ridge", _LEAST, LARGEST_RIDGE),
            ("bias_variance", _LEAST, LARGEST_BIAS),
            ("start", _LEAST, 2),
            ("centre", 0, PIXEL_LEVELS),
            ("smoothing", 0, 16),
        ):
            value = getattr(self, name)
            if not least <= value <= most:
                named = argument(name, value, option="--lr" if name == "learning_rate" else "")
                raise BudgetError(f"{named}: it must be from {least:g} to {most:g}")
        if not 0 <= self.averaging < 1:
            named = argument("averaging", self.averaging)
            raise BudgetError(f"{named}: it must be from 0 to below 1")
        whole_number("seed", self.seed, most=MOST_SEED, refusal=BudgetError)

    def to_json(self, *, clipped: bool = True) -> dict[str, Any]:
        """A plain mapping, as releases hold it.

        Args:
            clipped: whether there is a clip norm; null stands for none.
        """
        values = asdict(self) | ({} if clipped else {"clip_norm": None})
        return {name_in_files(name): value for name, value in values.items()}


def name_in_files(field: str) -> str:
    """The name of a field of `Settings` in releases and on the command line."""
    return {"sampling_prob": "rate", "clip_norm": "clip"}.get(field, field)


_CHOSEN: Final = (
    "MNIST's training images (50,000 to learn from, the other 10,000 to score), which no guarantee "
    "covers"
)
WITHOUT_NOISE: Final[dict[str, Any]] = {"smoothing": 0.0, "steps": 600, "learning_rate": 0.03}
"""The settings that differ without noise. Smoothing would have nothing to remove, and steps cost no
privacy."""
PRESETS: Final[dict[str, dict[str, Any]]] = {
    f"{name}-{per_class}": {
        "per_class": per_class,
        "origin": f"{name}-{per_class}: chosen on {_CHOSEN}{elsewhere}",
    }
    for name, elsewhere in (("mnist", ""), ("fashion", ", not on FashionMNIST's"))
    for per_class in (1, 10, 50)
}
"""Settings by name, for the paper's data sets: the defaults. No guarantee covers that they were
tuned on records."""
