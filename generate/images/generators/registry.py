"""The generators of images, and how a file names the one it holds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from ....common.errors import GeneratorError
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
_WHICH: Final = "generator"
_NAMED: Final[dict[str, tuple[Any, Any]]] = {
    CONVOLUTIONAL: (ConvolutionalGenerator, NetworkSpec),
    RESIDUAL: (ResidualGenerator, ResidualSpec),
    GALLERY: (Gallery, GallerySpec),
}
"""The generators that a file can name, with the classes that describe them."""


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
    """What is needed beside the weights to rebuild a generator; a template has no name in it."""
    spec = {"spec": generator.spec.to_json()}
    if isinstance(generator, ConditionalGenerator):
        return spec
    which = next(name for name, (kind, _) in _NAMED.items() if isinstance(generator, kind))
    return {_WHICH: which, **spec}


def generator_from(
    description: Mapping[str, Any],
) -> tuple[Callable[[], ImageGenerator], int]:
    """A function that makes the described generator with arbitrary weights, and its class count.

    Raises:
        GeneratorError: there is no such generator.
    """
    which, spec = description.get(_WHICH), description["spec"]
    if which is None:
        template = generator_file.spec_from(GeneratorSpec, spec)
        return lambda: ConditionalGenerator(template), template.classes
    if isinstance(which, str) and which in _NAMED:
        kind, form = _NAMED[which]
        network = generator_file.spec_from(form, spec)
        return lambda: kind(network), network.classes
    raise GeneratorError("its generator is not one that this dpntk knows")
