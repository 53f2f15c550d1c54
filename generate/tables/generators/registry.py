"""The generators of rows, and how a file names the one it holds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from ....common.errors import GeneratorError
from ....common.schema.table import TableSchema
from ...fit.recipe import PERCEPTRON
from ...output import generator_file
from .knots import TableGenerator, TableGeneratorSpec
from .perceptron import PerceptronGenerator, PerceptronSpec

RowGenerator = TableGenerator | PerceptronGenerator
_WHICH: Final = "generator"
_SPEC: Final = "spec"


def described(generator: RowGenerator | None) -> dict[str, Any]:
    """The name and spec needed to rebuild a generator, beside its weights and the schema.

    Empty if there is no generator.
    """
    if generator is None:
        return {}
    spec = {_SPEC: generator.spec.to_json()}
    if isinstance(generator, PerceptronGenerator):
        return {_WHICH: PERCEPTRON, **spec}
    return spec


def generator_from(
    description: Mapping[str, Any], schema: TableSchema
) -> Callable[[], RowGenerator] | None:
    """A function that makes the described generator with arbitrary weights; None if there is none.

    Raises:
        GeneratorError: there is no such generator.
    """
    which = description.get(_WHICH)
    if which is None and _SPEC not in description:
        return None
    if which is None:
        spec = generator_file.spec_from(TableGeneratorSpec, description[_SPEC])
        return lambda: TableGenerator(spec, schema)
    if which != PERCEPTRON:
        raise GeneratorError("its generator is not one that this dpntk knows")
    other = generator_file.spec_from(PerceptronSpec, description[_SPEC])
    return lambda: PerceptronGenerator(other, schema)
