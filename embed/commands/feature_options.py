"""The options of a feature map, shared by several commands."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import click

from ...common.cli.options import FiniteRange, all_of
from ...common.cli.sections import map_option
from ...common.display.console import notice
from ...common.features.names import FEATURES
from ...common.features.ntk.architectures import ARCHITECTURES
from ...common.features.ntk.layers import ACTIVATIONS
from ...common.features.ntk.presets import PRESETS
from ...common.features.ntk.scattering import FRONTS
from ..feature_options.defaults import (
    DEFAULT_ACTIVATION,
    DEFAULT_ARCH,
    DEFAULT_FREQUENCIES,
    DEFAULT_MARGINALS,
    DEFAULT_MOMENTS,
)

if TYPE_CHECKING:
    from ..feature_options.base import FeatureOptions

MakeOptions = Callable[..., "FeatureOptions"]
"""Makes the options of the chosen kind from those given and from the command's own."""
OF_THE_MAP: Final = (
    "features", "arch", "width", "activation", "front", "frequencies", "length_scale", "marginals",
    "pairs", "moments", "target", "pixels", "squares", "rectified", "preset",
)  # fmt: skip
"""The names of the parameters that `feature_options` adds."""
_WIDTHS: Final = ", ".join(
    f"{'_'.join(map(str, widths))} for {arch}" for arch, widths in ARCHITECTURES.items()
)


_OPTIONS: Final = all_of(
    map_option(
        "--features", type=click.Choice(FEATURES), default=FEATURES[0], show_default=True,
        help="Tangent features of a network (ntk), Hermite features (DP-HP), outputs of a "
        "pre-trained module of yours for images (perceptual, DP-MEPF), the pixels of images, or "
        "random Fourier features (rff, DP-MERF).",
    ),
    map_option(
        "--arch", type=click.Choice(list(ARCHITECTURES)),
        help="For ntk: network whose tangent kernel is used, with one or two hidden layers, fully "
        f"connected (fc) or convolutional (cnn) [default: {DEFAULT_ARCH}]",
    ),
    map_option(
        "--width", metavar="W[_W2]",
        help="For ntk: units or channels of its hidden layers, as in 3000_200 "
        f"[default: {_WIDTHS}; 200 for fc_1l on tables]",
    ),
    map_option(
        "--activation", type=click.Choice(ACTIVATIONS),
        help=f"For ntk: activation function of its hidden layers [default: {DEFAULT_ACTIVATION}]",
    ),
    map_option(
        "--front", type=click.Choice(FRONTS),
        help="For ntk: what the network sees of an image: its pixels alone, or the outputs of "
        "oriented filters beside them [default: scattering; pixels for cnn]",
    ),
    map_option(
        "--frequencies", type=click.IntRange(1, 1 << 20), metavar="N", default=DEFAULT_FREQUENCIES,
        show_default=True,
        help="For rff: number of random frequencies; there are twice as many features.",
    ),
    map_option(
        "--length-scale", type=FiniteRange(0, min_open=True), metavar="L",
        help="For rff: length scale of the Gaussian kernel, for values 0 to 1. Do not derive it "
        "from the records [default: square root of n / 7.5, for n pixels or numeric columns]",
    ),
    map_option(
        "--marginals", type=FiniteRange(0, 1, max_open=True), metavar="WEIGHT",
        help="For tables: weight of one-way marginals in each feature; 0 leaves them out "
        f"[default: the release chooses by its noise; {DEFAULT_MARGINALS} with --moments]",
    ),
    map_option(
        "--pairs", multiple=True, metavar="A,B",
        help="For tables: two columns, or three (A,B,C), whose joint distribution is released. May "
        "be given several times [default: ten pairs, which the release chooses by its own noisy "
        "figures]. 'none' stands for no pairs; 'all' for all pairs and 'triples' for all triples "
        "of columns with two values, which share the weight of --marginals.",
    ),
    map_option(
        "--moments", type=FiniteRange(0, 1, max_open=True), metavar="WEIGHT",
        help="For tables: weight of products of columns in each feature, which show how columns "
        "depend on each other; 0 leaves them out [default: the release chooses by its noise; "
        f"{DEFAULT_MOMENTS} with --marginals]",
    ),
    map_option(
        "--target", metavar="COLUMN",
        help="For tables: a numeric column to be predicted from the others: the release says more "
        "about how it depends on them, and a little less about the rest.",
    ),
    map_option(
        "--pixels", type=FiniteRange(0, 1, max_open=True), metavar="WEIGHT",
        help="For images: weight of the pixels themselves in each feature [default: with --front "
        "scattering the release chooses, and holds pixels alone where there is much noise; "
        "otherwise 0]",
    ),
    map_option(
        "--squares", type=FiniteRange(0, 1, max_open=True), metavar="WEIGHT",
        help="For perceptual: weight of the squares of the module's outputs in each feature "
        "[default: 0]",
    ),
    map_option(
        "--rectified", is_flag=True,
        help="For perceptual: set negative outputs of the module to 0, as a ReLU does; such "
        "features get less noise.",
    ),
    map_option(
        "--preset", type=click.Choice(list(PRESETS)),
        help="For ntk: the network that DP-NTK's authors tuned on that data set, for records of "
        "its shape, in place of --arch, --width and --front; for tables, without marginals. On the "
        "data set itself no guarantee covers the choice. See also 'dpntk generate --recipe paper'.",
    ),
)  # fmt: skip


def feature_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add --features, --arch and so on, and pass `MakeOptions` on as `features`."""

    @functools.wraps(command)
    def with_options(**given: Any) -> None:  # noqa: ANN401 - handed on
        from ..feature_options.kinds import options_for  # --help need not wait for torch

        said = {name: given.pop(name) for name in OF_THE_MAP}
        kind, preset = said.pop("features"), said["preset"]
        options_for(kind, **said)  # refuses nonsense early
        if preset:
            notice(f"--preset {preset}: tuned on that data set, for which no guarantee covers it")
        command(features=functools.partial(options_for, kind, **said), **given)

    return _OPTIONS(with_options)
