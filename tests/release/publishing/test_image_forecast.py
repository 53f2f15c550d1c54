"""What a plan says of the use of images: by simulation, of digits that are nobody's."""

from __future__ import annotations

import json

import numpy as np
import pytest

from dpntk.common.schema.classes import numbered
from dpntk.common.schema.image import ImageSchema
from dpntk.common.schema.origin import Origin
from dpntk.embed import FeatureOptions, FourierOptions, PixelOptions, TangentOptions
from dpntk.embed.exact.grid import DEFAULT_CAPACITY, Grid
from dpntk.release import PrivacyParameters
from dpntk.release.publishing.forecast import Forecasts
from dpntk.release.publishing.image_forecast import _similarity, forecast_of_images
from dpntk.release.publishing.plan import plan
from tests.conftest import Command

SIDE = 8


def of_images(
    records: int, *epsilons: float, classes: int = 10, options: FeatureOptions | None = None
) -> Forecasts | None:
    schema = ImageSchema(SIDE, numbered(classes), Origin.DECLARED, Origin.DECLARED)
    feature_map = (options or TangentOptions(width=5)).draw(schema)
    grid = Grid.for_capacity(schema.levels, DEFAULT_CAPACITY)
    plans = [
        plan(feature_map, grid, classes, records, PrivacyParameters(epsilon))
        for epsilon in epsilons
    ]
    return forecast_of_images(schema, plans)


def test_more_epsilon_and_more_records_show_more() -> None:
    accuracies = []
    for records in (1_000, 10_000):
        found = of_images(records, 0.03, 0.3, 3)
        assert found is not None
        assert found.correlation is None
        assert found.by_chance == 0.1
        assert found.without_noise is not None
        assert found.without_noise > 0.75
        accuracies.append([each.accuracy.mean for each in found.at if each.accuracy is not None])
        assert accuracies[-1] == sorted(accuracies[-1])
        assert [found.mostly_noise(each) for each in found.at] == [True, records == 1_000, False]
        assert all(each.accuracy is not None and each.accuracy.deviation > 0 for each in found.at)
    assert accuracies[0][:2] < accuracies[1][:2]
    assert accuracies[0][0] < 0.25


@pytest.mark.parametrize("classes", [4, 5])
def test_more_epsilon_shows_no_less_where_releases_are_of_another_map(classes: int) -> None:
    """A nearest mean of network features, by itself, tells less of digits than one of pixels."""
    found = of_images(2_000, 0.1, 0.3, 1, 3, 10, classes=classes)
    assert found is not None
    assert [each.of for each in found.at] == ["pixels"] * 3 + ["network features"] * 2
    accuracies = [each.accuracy.mean for each in found.at if each.accuracy is not None]
    assert accuracies == sorted(accuracies)
    assert accuracies[0] < accuracies[2] - 0.1
    assert found.without_noise is not None
    assert accuracies[-1] <= found.without_noise <= 1


def test_releases_of_pixels_are_read_by_these_alone() -> None:
    options = PixelOptions()
    of_pixels, of_both = (of_images(2_000, 10, classes=5, options=each) for each in (options, None))
    assert of_pixels is not None
    assert of_both is not None
    assert of_pixels.at[0].of == "pixels"
    assert of_pixels.at[0].accuracy is not None
    assert of_both.at[0].accuracy is not None
    assert of_pixels.at[0].accuracy.mean <= of_both.at[0].accuracy.mean


def test_noise_in_one_direction_has_length_one() -> None:
    """So that it is the plan's blur once it is multiplied by that."""
    parts = _similarity(SIDE, 1, 10, 5_000)
    assert parts.signal.shape == parts.noise.shape[:1] + parts.noise.shape[2:]
    assert np.square(parts.noise).mean(axis=(1, 2, 3)) == pytest.approx([1, 1], rel=0.3)
    # Features are of length 1, and so means are shorter.
    assert all(0.5 < of_part < 1 for of_part in parts.signal.mean(axis=(1, 2)))


@pytest.mark.parametrize(
    ("classes", "options"),
    [(1, TangentOptions(width=5)), (11, TangentOptions(width=5)), (3, FourierOptions())],
)
def test_what_digits_cannot_show_is_not_said(classes: int, options: FeatureOptions) -> None:
    assert of_images(1_000, 1.0, classes=classes, options=options) is None


def test_a_plan_of_images_says_it(dpntk: Command) -> None:
    options = ("plan", "--classes", 4, "--image-size", SIDE, "--records", 500, "--eps")
    noisy = " ".join(dpntk(*options, 0.1).stdout.split())
    assert "Mostly noise: with epsilon 0.1" in noisy
    assert "(1 would do)" in noisy
    assert "digits" in noisy
    assert "Mostly noise" not in dpntk(*options, 30).stdout
    told = json.loads(dpntk(*options, 0.1, "--json").stdout)["forecast"]
    assert [each["epsilon"] for each in told["at"]] == [0.01, 0.03, 0.1, 0.3, 1]
    assert told["at"][2]["mostly_noise"]
    assert told["at"][2]["of"] == "pixels"
    assert "release of" in noisy
    assert f"{told['at'][2]['accuracy']['mean']:.3f} ± " in noisy
    assert told["by_chance"] == 0.25
