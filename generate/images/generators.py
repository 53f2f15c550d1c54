"""The generators of images that there are, and how a file says which one it holds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from ...common.errors import GeneratorError
from ..output import generator_file
from .convolutional import ConvolutionalGenerator, ConvolutionalSpec
from .generator import ConditionalGenerator, GeneratorSpec

ImageGenerator = ConditionalGenerator | ConvolutionalGenerator
_WHICH: Final = "generator"
_CONVOLUTIONAL: Final = "cnn"


def described(generator: ImageGenerator) -> dict[str, Any]:
    """What is needed beside its weights to rebuild a generator; a template's says no more."""
    spec = {"spec": generator.spec.to_json()}
    if isinstance(generator, ConvolutionalGenerator):
        return {_WHICH: _CONVOLUTIONAL, **spec}
    return spec


def generator_from(
    description: Mapping[str, Any],
) -> tuple[Callable[[], ImageGenerator], int]:
    """What makes the generator of a description with any weights, and how many classes it has.

    Raises:
        GeneratorError: there is no such generator.
    """
    which = description.get(_WHICH)
    if which is None:
        spec = generator_file.spec_from(GeneratorSpec, description["spec"])
        return lambda: ConditionalGenerator(spec), spec.classes
    if which != _CONVOLUTIONAL:
        raise GeneratorError("its generator is not one that this dpntk knows")
    other = generator_file.spec_from(ConvolutionalSpec, description["spec"])
    return lambda: ConvolutionalGenerator(other), other.classes
