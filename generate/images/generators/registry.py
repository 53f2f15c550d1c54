"""The generators of images, and how a file names the one it holds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from ....common.schema.image import ImageSchema
from ...fit.recipe import CONVOLUTIONAL, GALLERY, RESIDUAL
from ...output import generator_file
from .conditional import ConditionalGenerator, GeneratorSpec
from .gallery import Gallery, GallerySpec
from .networks.convolutional import ConvolutionalGenerator
from .networks.resnet import ResidualGenerator, ResidualSpec
from .networks.spec import NetworkSpec

WithoutStart = ConvolutionalGenerator | ResidualGenerator | Gallery
ImageGenerator = ConditionalGenerator | WithoutStart
_KINDS: Final[generator_file.Kinds] = {
    None: (ConditionalGenerator, GeneratorSpec),
    CONVOLUTIONAL: (ConvolutionalGenerator, NetworkSpec),
    RESIDUAL: (ResidualGenerator, ResidualSpec),
    GALLERY: (Gallery, GallerySpec),
}


def new_generator(which: str, schema: ImageSchema, code: int) -> WithoutStart:
    """A generator with random weights: "cnn", "resnet" or "gallery".

    Args:
        which: its name.
        schema: of the images to make.
        code: length of the latent code; a gallery ignores it.
    """
    form = schema.side, len(schema.classes), code, schema.channels
    if which == GALLERY:
        return Gallery(GallerySpec.of(schema))
    if which == RESIDUAL:
        return ResidualGenerator(ResidualSpec(*form))
    return ConvolutionalGenerator(NetworkSpec(*form))


def described(generator: ImageGenerator) -> dict[str, Any]:
    """What is needed beside the weights to rebuild a generator."""
    return generator_file.described(generator, _KINDS)


def generator_from(
    description: Mapping[str, Any],
) -> tuple[Callable[[], ImageGenerator], int]:
    """A function that makes the described generator with arbitrary weights, and its class count.

    Raises:
        GeneratorError: there is no such generator.
    """
    kind, spec = generator_file.kind_and_spec(description, _KINDS)
    return lambda: kind(spec), spec.classes
