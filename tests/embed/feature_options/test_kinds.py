"""Every kind of feature maps has options of its own, and a command sorts those of all kinds."""

from __future__ import annotations

import pytest

from dpntk.common.errors import SchemaError
from dpntk.common.features.base import FEATURE_MAPS
from dpntk.common.features.names import FEATURES
from dpntk.embed import FeatureOptions, FourierOptions, TangentOptions
from dpntk.embed.feature_options.base import FEATURE_OPTIONS, SeededOptions
from dpntk.embed.feature_options.kinds import options_for
from tests.conftest import Command, refused

OF_ALL = {"width": None, "pairs": (), "frequencies": 5000, "squares": None, "rectified": False}
"""What a command hands over where nothing was said."""


@pytest.mark.parametrize("kind", FEATURES)
def test_each_kind_takes_its_own_of_the_options_of_all(kind: str) -> None:
    own = FEATURE_OPTIONS.entries()[kind]
    seed = {"seed": 3} if issubclass(own, SeededOptions) else {}
    made = options_for(kind, **OF_ALL, **seed)
    assert made.kind == kind
    assert made == own(**seed)


def test_there_are_no_others() -> None:
    assert {*FEATURE_OPTIONS.entries()} == {*FEATURES}
    assert {*FEATURE_MAPS.entries()} - {*FEATURES} == {"joint", "joint-image", "marginals"}
    with pytest.raises(SchemaError, match="'ntkk': known are ntk, "):
        options_for("ntkk")


def test_options_of_no_kind_name_those_of_each() -> None:
    with pytest.raises(SchemaError) as caught:
        FeatureOptions()  # type: ignore[abstract]
    assert all(own.__name__ in str(caught.value) for own in FEATURE_OPTIONS.entries().values())


def test_what_asks_for_nothing_goes_with_every_kind() -> None:
    assert options_for("rff", marginals=0.0, pixels=0, frequencies=9) == FourierOptions(
        frequencies=9
    )


def test_what_a_kind_does_not_have_is_refused_in_the_words_of_who_wrote_it() -> None:
    with pytest.raises(SchemaError) as caught:
        options_for("rff", **{**OF_ALL, "pairs": ("age,pay", "age,town")})
    assert str(caught.value) == "pairs='age,pay': it goes with TangentOptions, not rff"
    with pytest.raises(SchemaError, match="frequencies=9: it goes with FourierOptions, not ntk"):
        options_for("ntk", frequencies=9)
    with pytest.raises(SchemaError, match=r"arch='cnn_1l': found first"):
        TangentOptions(arch="cnn_1l", seed=4).refuse_all("found first")
    with pytest.raises(SchemaError, match="FourierOptions: found first"):
        FourierOptions().refuse_all("found first")
    TangentOptions(seed=4, marginals=0.0).refuse_all("found first")


@pytest.mark.parametrize("kind", ["pixels", "perceptual"])
def test_what_has_no_random_weights_takes_no_seed(kind: str, dpntk: Command) -> None:
    assert not hasattr(options_for(kind), "seed")
    assert options_for(kind, seed=0) == options_for(kind)  # the default of the command
    failed = dpntk("embed", "data", "--features", kind, "--feature-seed", 1)
    refused(failed, "--feature-seed 1: it goes with --features hermite or --features ntk or")
