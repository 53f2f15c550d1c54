"""The generators of images that there are, and how a file says which one it holds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from ...common.errors import GeneratorError
from ...common.schema.image import ImageSchema
from ..fit.recipe import CONVOLUTIONAL, RESIDUAL
from ..output import generator_file
from .generator import ConditionalGenerator, GeneratorSpec
from .networks.convolutional import ConvolutionalGenerator
from .networks.resnet import ResidualGenerator, ResidualSpec
from .networks.spec import NetworkSpec

Network = ConvolutionalGenerator | ResidualGenerator
ImageGenerator = ConditionalGenerator | Network
_WHICH: Final = "generator"


def new_network(which: str, schema: ImageSchema, code: int) -> Network:
    """A network with random weights: of the names of generators "cnn" or "resnet".

    Args:
        which: its name.
        schema: of the images that it is to make.
        code: length of its latent code.
    """
    form = schema.side, len(schema.classes), code, schema.channels
    if which == RESIDUAL:
        return ResidualGenerator(ResidualSpec(*form))
    return ConvolutionalGenerator(NetworkSpec(*form))


def described(generator: ImageGenerator) -> dict[str, Any]:
    """What is needed beside its weights to rebuild a generator; a template's says no more."""
    spec = {"spec": generator.spec.to_json()}
    if isinstance(generator, ConditionalGenerator):
        return spec
    residual = isinstance(generator, ResidualGenerator)
    return {_WHICH: RESIDUAL if residual else CONVOLUTIONAL, **spec}


def generator_from(
    description: Mapping[str, Any],
) -> tuple[Callable[[], ImageGenerator], int]:
    """What makes the generator of a description with any weights, and how many classes it has.

    Raises:
        GeneratorError: there is no such generator.
    """
    which, spec = description.get(_WHICH), description["spec"]
    if which is None:
        template = generator_file.spec_from(GeneratorSpec, spec)
        return lambda: ConditionalGenerator(template), template.classes
    if which == CONVOLUTIONAL:
        convolutional = generator_file.spec_from(NetworkSpec, spec)
        return lambda: ConvolutionalGenerator(convolutional), convolutional.classes
    if which == RESIDUAL:
        residual = generator_file.spec_from(ResidualSpec, spec)
        return lambda: ResidualGenerator(residual), residual.classes
    raise GeneratorError("its generator is not one that this dpntk knows")
