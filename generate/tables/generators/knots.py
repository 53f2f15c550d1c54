"""The class-conditional generator of encoded table rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor, nn

from ....common.errors import GeneratorError
from ....common.schema.columns.column import Column
from ....common.schema.columns.kinds import ColumnKind
from ....common.schema.encoding import Block, NumericEncoding, blocks_of
from ....common.schema.table import TableSchema
from ...fit.layers import conditioned
from ...output.generator_file import Spec

_LARGEST: Final = 10_000


@dataclass(frozen=True)
class TableGeneratorSpec(Spec):
    """Everything needed to rebuild a generator, except its weights and the schema.

    Attributes:
        code: length of the latent code.
        width: width of the two hidden layers.

    Raises:
        GeneratorError: a number is out of its range.
    """

    code: int = 32
    width: int = 256

    def __post_init__(self) -> None:
        if not (1 <= self.code <= _LARGEST and 1 <= self.width <= _LARGEST):
            raise GeneratorError("the generator's description is out of range")


@dataclass(frozen=True)
class _Outputs:
    """The network outputs that make a column.

    Attributes:
        block: the column and its place in a record.
        choices: logits of the categories; or of the knot next to a number, and of its being
            missing.
        offsets: for a numeric column, the offset of the value from each knot.
    """

    block: Block
    choices: slice
    offsets: slice


class TableGenerator(nn.Module):
    """Maps a latent code and class to an encoded row.

    A number lies near one of the knots of its soft bins: the knot is drawn like a category, a
    sigmoid gives the offset from it, and the bins follow as in the encoding. (One sigmoid for the
    whole range makes one hump, where most tables have spikes.) Categories are drawn from the
    softmax of their outputs. In training, the forward pass uses the draw and the gradient is that
    of a soft draw (Gumbel-softmax, straight-through: Jang, Gu and Poole 2017, arXiv 1611.01144,
    section 2.2); the draws themselves are the same as at export.
    """

    def __init__(self, spec: TableGeneratorSpec, schema: TableSchema) -> None:
        super().__init__()
        self.spec, self.schema = spec, schema
        self._outputs, count = _outputs_of(schema)
        classes = len(schema.classes)
        self.network = nn.Sequential(
            nn.Linear(spec.code + classes, spec.width),
            nn.LayerNorm(spec.width),
            nn.ReLU(),
            nn.Linear(spec.width, spec.width),
            nn.LayerNorm(spec.width),
            nn.ReLU(),
            nn.Linear(spec.width, count),
        )
        self.by_class = nn.Parameter(torch.zeros(classes, count))

    def forward(
        self, code: Tensor, classes: Tensor, random: torch.Generator | None = None
    ) -> Tensor:
        """Make the same number of rows of each of some classes.

        Args:
            code: (k, b, code), standard normal.
            classes: int64 (k,), the class of each group.
            random: draws the categories.

        Returns:
            (k, b, record size), values 0..1.
        """
        given = conditioned(code, classes, len(self.schema.classes))
        made = self.network(given) + self.by_class[classes][:, None, :]
        return torch.cat([_column(outputs, made, random) for outputs in self._outputs], dim=-1)


def _column(outputs: _Outputs, made: Tensor, random: torch.Generator | None) -> Tensor:
    """A column's part of a record, from the network's outputs."""
    block = outputs.block
    chosen = _drawn(made[..., outputs.choices], random)
    if not isinstance(block.encoding, NumericEncoding):
        return ranked(block.column, chosen)
    knots = block.encoding.knots
    chosen, missing = chosen[..., :knots], chosen[..., knots:]
    offset = 0.5 * made[..., outputs.offsets].tanh()
    # Nothing lies before the first knot or after the last one.
    up = nn.functional.pad(offset[..., :-1].relu(), (0, 1))
    down = nn.functional.pad((-offset[..., 1:]).relu(), (1, 0))
    places = torch.arange(knots, device=made.device, dtype=made.dtype) + up - down
    value = (chosen * places).sum(-1, keepdim=True) / (knots - 1)
    bins = chosen * (1 - up - down)
    bins = bins + nn.functional.pad((chosen * up)[..., :-1], (1, 0))
    bins = bins + nn.functional.pad((chosen * down)[..., 1:], (0, 1))
    return torch.cat([value, bins, missing], dim=-1)


def ranked(column: Column, chosen: Tensor) -> Tensor:
    """Encode one-hot categories, (..., categories); an ordinal column gets its rank in front."""
    if column.kind is not ColumnKind.ORDINAL:
        return chosen
    last = max(1, len(column.categories) - 1)
    ranks = torch.arange(chosen.shape[-1], device=chosen.device, dtype=chosen.dtype) / last
    ranks[len(column.categories) :] = 0
    return torch.cat([(chosen * ranks).sum(-1, keepdim=True), chosen], dim=-1)


def _drawn(logits: Tensor, random: torch.Generator | None) -> Tensor:
    """One category each, drawn from the softmax of the last dimension; one-hot."""
    if not logits.shape[-1]:
        return logits
    noise = torch.empty_like(logits).exponential_(generator=random).log()
    soft = (logits - noise).softmax(-1)
    hard = nn.functional.one_hot(soft.argmax(-1), logits.shape[-1]).to(soft)
    return hard + soft - soft.detach()


def _outputs_of(schema: TableSchema) -> tuple[tuple[_Outputs, ...], int]:
    """The outputs that make each column, and their total number."""
    found, start = [], 0
    for block in blocks_of(schema):
        choices, offsets = block.column.choices, 0
        if isinstance(block.encoding, NumericEncoding):
            choices, offsets = block.encoding.knots + block.missing_place, block.encoding.knots
        middle, stop = start + choices, start + choices + offsets
        found.append(_Outputs(block, slice(start, middle), slice(middle, stop)))
        start = stop
    return tuple(found), start
