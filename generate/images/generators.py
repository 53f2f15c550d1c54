"""The generators of images that there are, and how a file says which one it holds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from ...common.errors import GeneratorError
from ..fit import recipe
from ..output import generator_file
from .convolutional import ConvolutionalGenerator, ConvolutionalSpec
from .generator import ConditionalGenerator, GeneratorSpec
from .resnet import ResidualGenerator, ResidualSpec

NetworkGenerator = ConvolutionalGenerator | ResidualGenerator
ImageGenerator = ConditionalGenerator | NetworkGenerator
_WHICH: Final = "generator"


def described(generator: ImageGenerator) -> dict[str, Any]:
    """What is needed beside its weights to rebuild a generator; a template's says no more."""
    spec = {"spec": generator.spec.to_json()}
    match generator:
        case ConvolutionalGenerator():
            return {_WHICH: recipe.CONVOLUTIONAL, **spec}
        case ResidualGenerator():
            return {_WHICH: recipe.RESIDUAL, **spec}
    return spec


def generator_from(
    description: Mapping[str, Any],
) -> tuple[Callable[[], ImageGenerator], int]:
    """What makes the generator of a description with any weights, and how many classes it has.

    Raises:
        GeneratorError: there is no such generator.
    """
    document = description["spec"]
    match description.get(_WHICH):
        case None:
            template = generator_file.spec_from(GeneratorSpec, document)
            return lambda: ConditionalGenerator(template), template.classes
        case recipe.CONVOLUTIONAL:
            small = generator_file.spec_from(ConvolutionalSpec, document)
            return lambda: ConvolutionalGenerator(small), small.classes
        case recipe.RESIDUAL:
            large = generator_file.spec_from(ResidualSpec, document)
            return lambda: ResidualGenerator(large), large.classes
    raise GeneratorError("its generator is not one that this dpntk knows")


def untrained(name: str, side: int, classes: int, code: int, channels: int) -> NetworkGenerator:
    """A network with random weights, by its name."""
    if name == recipe.RESIDUAL:
        return ResidualGenerator(ResidualSpec(side, classes, code, channels))
    return ConvolutionalGenerator(ConvolutionalSpec(side, classes, code, channels))
