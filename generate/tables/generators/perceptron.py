"""The fully connected generator of the paper, for encoded table rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor, nn

from ....common.errors import GeneratorError
from ....common.schema.encoding import Block, NumericEncoding, blocks_of
from ....common.schema.table import TableSchema
from ...fit.layers import conditioned, normalised_layer
from ...output.generator_file import Spec
from .knots import ranked

_LARGEST: Final = 10_000
_WIDTH: Final = 256


@dataclass(frozen=True)
class PerceptronSpec(Spec):
    """Everything needed to rebuild a generator, except its weights and the schema.

    Attributes:
        code: length of the latent code.
        hidden: number of hidden layers.
        width: width of each hidden layer.

    Raises:
        GeneratorError: a number is out of its range.
    """

    code: int
    hidden: int
    width: int = _WIDTH

    def __post_init__(self) -> None:
        if not (
            1 <= self.code <= _LARGEST and 1 <= self.width <= _LARGEST and self.hidden in (2, 3)
        ):
            raise GeneratorError("the generator's description is out of range")

    @classmethod
    def of(cls, schema: TableSchema, code: int) -> PerceptronSpec:
        """Two hidden layers for numbers alone, three where there are categories."""
        numbers = all(column.kind.numeric for column in schema.encoded)
        return cls(code, hidden=2 if numbers else 3)


class PerceptronGenerator(nn.Module):
    """Maps a latent code and one-hot class to an encoded row.

    Hidden layers with batch norm and ReLU are followed by a sigmoid (Yang et al., arXiv
    2303.01687). A number is the sigmoid of one output, and its soft bins follow as in the encoding.
    Each category is a sigmoid, and nothing is drawn: the largest one is written.
    """

    def __init__(self, spec: PerceptronSpec, schema: TableSchema) -> None:
        super().__init__()
        self.spec, self.schema = spec, schema
        self._blocks = blocks_of(schema)
        widths = [spec.code + len(schema.classes), *[spec.width] * spec.hidden]
        hidden = map(normalised_layer, widths, widths[1:])
        self._outputs = [_outputs(block) for block in self._blocks]
        self.network = nn.Sequential(*hidden, nn.Linear(spec.width, sum(self._outputs)))

    def forward(
        self, code: Tensor, classes: Tensor, random: torch.Generator | None = None
    ) -> Tensor:
        """See `TableGenerator.forward`; `random` is unused: nothing is drawn."""
        given = conditioned(code, classes, len(self.schema.classes))
        made = self.network(given.flatten(0, 1)).sigmoid().view(*code.shape[:2], -1)
        columns = zip(self._blocks, made.split(self._outputs, dim=-1), strict=True)
        return torch.cat([_column(block, values) for block, values in columns], dim=-1)


def _outputs(block: Block) -> int:
    """Number of network outputs for a column."""
    if isinstance(block.encoding, NumericEncoding):
        return 1 + block.missing_place
    return block.column.choices


def _column(block: Block, made: Tensor) -> Tensor:
    """A column's part of a record, from its `_outputs` values 0..1."""
    if not isinstance(block.encoding, NumericEncoding):
        return ranked(block.column, made)
    value, missing = made[..., :1], made[..., 1:]
    knots = torch.arange(block.encoding.knots, device=made.device, dtype=made.dtype)
    bins = (1 - (value * (len(knots) - 1) - knots).abs()).clamp(min=0)
    there = 1 - missing.sum(-1, keepdim=True)  # a missing number has zeros everywhere else
    return torch.cat([value * there, bins * there, missing], dim=-1)
