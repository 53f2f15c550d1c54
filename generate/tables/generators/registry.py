"""The generators of rows, and how a file names the one it holds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from ....common.schema.table import TableSchema
from ...fit.recipe import PERCEPTRON
from ...output import generator_file
from .knots import TableGenerator, TableGeneratorSpec
from .perceptron import PerceptronGenerator, PerceptronSpec

RowGenerator = TableGenerator | PerceptronGenerator
_KINDS: Final[generator_file.Kinds] = {
    None: (TableGenerator, TableGeneratorSpec),
    PERCEPTRON: (PerceptronGenerator, PerceptronSpec),
}


def described(generator: RowGenerator | None) -> dict[str, Any]:
    """The name and spec needed to rebuild a generator, beside its weights and the schema.

    Empty if there is no generator.
    """
    return {} if generator is None else generator_file.described(generator, _KINDS)


def generator_from(
    description: Mapping[str, Any], schema: TableSchema
) -> Callable[[], RowGenerator] | None:
    """A function that makes the described generator with arbitrary weights; None if there is none.

    Raises:
        GeneratorError: there is no such generator.
    """
    if description.keys().isdisjoint(generator_file.OF_A_NETWORK):
        return None
    kind, spec = generator_file.kind_and_spec(description, _KINDS)
    return lambda: kind(spec, schema)
