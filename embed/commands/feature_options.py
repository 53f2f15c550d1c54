"""Options of a feature map, which several commands share."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

import click

from ...common.cli.options import FiniteRange
from ...common.console import notice
from ...common.features.ntk.architectures import ARCHITECTURES
from ...common.features.ntk.layers import ACTIVATIONS
from ...common.features.ntk.presets import PRESETS
from ...common.features.ntk.scattering import FRONTS
from ...common.features.registry import FEATURES
from ..feature_options import (
    DEFAULT_ACTIVATION,
    DEFAULT_ARCH,
    DEFAULT_FREQUENCIES,
    DEFAULT_MARGINALS,
    DEFAULT_MOMENTS,
    FeatureOptions,
)

_OF_A_NETWORK: Final = ("arch", "width", "activation", "front")
OF_THE_MAP: Final = (
    "features", *_OF_A_NETWORK, "frequencies", "length_scale", "marginals", "pairs", "moments",
    "target", "pixels", "squares", "rectified", "preset",
)  # fmt: skip
"""Names of the parameters that `feature_options` adds."""
_WIDTHS: Final = ", ".join(
    f"{'_'.join(map(str, widths))} for {arch}" for arch, widths in ARCHITECTURES.items()
)


def feature_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add --features, --arch and so on, and hand their meaning over as `features`."""

    @click.option(
        "--features", type=click.Choice(FEATURES), default=FEATURES[0], show_default=True,
        help="Feature map: tangent features of a network, random Fourier features (DP-MERF), "
        "Hermite features (DP-HP), an image's pixels, or what a pre-trained module of yours says "
        "of an image (DP-MEPF).",
    )  # fmt: skip
    @click.option(
        "--arch", type=click.Choice(list(ARCHITECTURES)),
        help="Network whose tangent kernel is used: one or two hidden layers, linear or "
        f"convolutions [default: {DEFAULT_ARCH}]",
    )  # fmt: skip
    @click.option(
        "--width", metavar="W[_W2]",
        help="Units or channels of its hidden layers, as in 3000_200 "
        f"[default: {_WIDTHS}; 200 for fc_1l on tables]",
    )  # fmt: skip
    @click.option(
        "--activation", type=click.Choice(ACTIVATIONS),
        help=f"Its elementwise function [default: {DEFAULT_ACTIVATION}]",
    )  # fmt: skip
    @click.option(
        "--front", type=click.Choice(FRONTS),
        help="What stands before it: nothing, or oriented filters beside the pixels "
        "[default: scattering; pixels for cnn]",
    )  # fmt: skip
    @click.option(
        "--frequencies", type=click.IntRange(1, 1 << 20), default=DEFAULT_FREQUENCIES,
        show_default=True, help="For rff: how many; the dimension is twice that.",
    )  # fmt: skip
    @click.option(
        "--length-scale", type=FiniteRange(0, min_open=True), metavar="L",
        help="For rff: of its Gaussian kernel, for values 0 to 1. Do not look it up in the "
        "records [default: square root of a 7.5th of the pixels, or of the numeric columns]",
    )  # fmt: skip
    @click.option(
        "--marginals", type=FiniteRange(0, 1, max_open=True), metavar="WEIGHT",
        help="For tables: weight of one-way marginals in each feature; 0 leaves them out "
        f"[default: {DEFAULT_MARGINALS}]",
    )  # fmt: skip
    @click.option(
        "--pairs", multiple=True, metavar="A,B",
        help="For tables: two columns whose two-way marginal is taken as well, out of the same "
        "weight, or three (A,B,C); may be given several times. Or all, for all pairs; or triples, "
        "for those of columns with two values; or none [default: ten pairs that the release "
        "chooses by what it shows anyway]",
    )  # fmt: skip
    @click.option(
        "--moments", type=FiniteRange(0, 1, max_open=True), metavar="WEIGHT",
        help="For tables: weight of products of columns in each feature, which say how they go "
        f"together; 0 leaves them out [default: {DEFAULT_MOMENTS}]",
    )  # fmt: skip
    @click.option(
        "--target", metavar="COLUMN",
        help="For tables: a numeric column that others are to predict: of how it goes together "
        "with them the release says more, and of the others a little less.",
    )  # fmt: skip
    @click.option(
        "--pixels", type=FiniteRange(0, 1, max_open=True), metavar="WEIGHT",
        help="For images: weight of the pixels themselves in each feature [default: behind --front "
        "scattering a release chooses between the two, and with much noise is of pixels alone; "
        "else 0]",
    )  # fmt: skip
    @click.option(
        "--squares", type=FiniteRange(0, 1, max_open=True), metavar="WEIGHT",
        help="For perceptual: weight of the squares of what the module says in each feature "
        "[default: 0]",
    )  # fmt: skip
    @click.option(
        "--rectified", is_flag=True,
        help="For perceptual: what the module says below 0 counts as 0, as behind a ReLU; such "
        "features get less noise.",
    )  # fmt: skip
    @click.option(
        "--preset", type=click.Choice(list(PRESETS)),
        help="The network that DP-NTK's authors tuned on that data set, for records of its shape, "
        "instead of --arch, --width and --front; of tables without marginals. For these data no "
        "guarantee covers the choice. 'dpntk generate --recipe paper' goes on from there.",
    )  # fmt: skip
    @functools.wraps(command)
    def with_options(**given: Any) -> None:  # noqa: ANN401 - handed on
        said = {name: given.pop(name) for name in OF_THE_MAP}
        kind, preset = said.pop("features"), said["preset"]
        features = FeatureOptions(kind, **said)
        if preset:
            notice(f"--preset {preset}: tuned on that data set, for which no guarantee covers it")
        command(features=features, **given)

    return with_options
