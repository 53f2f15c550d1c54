"""Points that stand for a generator's records."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from dpntk.common.errors import GeneratorError
from dpntk.common.features.infinite_ntk import ReluKernel
from dpntk.common.features.kernel_ridge import KernelRidge, class_targets
from dpntk.generate.images.generators.conditional import ConditionalGenerator, GeneratorSpec
from dpntk.generate.images.inducing_points import (
    InducingPoints,
    PointSettings,
    find_points,
    loss_and_slope,
)
from tests.helpers.problems import BIAS, RIDGE, draw_problem, plain_gradients


@pytest.mark.parametrize(("points", "inputs", "classes"), [(9, 30, 3), (2, 8, 2), (40, 12, 10)])
def test_the_slope_is_the_mean_of_the_records_gradients(
    points: int, inputs: int, classes: int
) -> None:
    """Which automatic differentiation gives, record by record."""
    problem = draw_problem(17, points, inputs, classes)
    kernel = ReluKernel(inputs, BIAS)
    values, wanted = problem.values, problem.record_targets
    loss, slope = loss_and_slope(kernel, problem.points, problem.targets, values, wanted, RIDGE)
    assert (slope - plain_gradients(problem).mean(0)).abs().max() < 1e-9
    found = KernelRidge(kernel, problem.points, problem.targets, RIDGE).predict(values)
    assert loss == pytest.approx(0.5 * float((found - wanted).square().sum(1).mean()))


def drawn(classes: int = 3, seed: int = 0) -> ConditionalGenerator:
    """A generator of images that differ much within a class, and are told apart nevertheless."""
    torch.manual_seed(seed)
    generator = ConditionalGenerator(GeneratorSpec(side=8, classes=classes))
    with torch.no_grad():
        generator.template.add_(torch.randn_like(generator.template), alpha=0.2)
    return generator.eval()


@torch.no_grad()
def records(generator: ConditionalGenerator, each: int) -> tuple[Tensor, Tensor]:
    classes = torch.arange(generator.spec.classes)
    code = torch.randn(
        len(classes), each, generator.spec.code, generator=torch.Generator().manual_seed(99)
    )
    return generator(code, classes).flatten(0, 1).double(), classes.repeat_interleave(each)


def accuracy(points: InducingPoints, generator: ConditionalGenerator) -> float:
    """Of kernel regression from points, on fresh records."""
    values, labels = records(generator, 500)
    regression = KernelRidge(
        ReluKernel(64, points.settings.bias_variance),
        torch.from_numpy(points.values).double(),
        class_targets(torch.from_numpy(points.labels), generator.spec.classes),
        points.settings.ridge,
    )
    return float((regression.predict(values).argmax(1) == labels).double().mean())


def test_points_teach_more_than_as_many_records() -> None:
    generator = drawn()
    start = find_points(generator, PointSettings(2, steps=1, learning_rate=1e-9))
    points = find_points(generator, PointSettings(2, steps=100, batch=300))
    assert points.values.shape == (6, 64)
    assert points.labels.tolist() == [0, 0, 1, 1, 2, 2]
    assert accuracy(points, generator) > accuracy(start, generator) + 0.1
    assert accuracy(points, generator) > 0.9


def test_points_follow_from_generator_and_seed() -> None:
    generator = drawn()
    one, again, other = (
        find_points(generator, PointSettings(1, steps=3, batch=30, seed=seed)).values
        for seed in (0, 0, 1)
    )
    assert np.array_equal(one, again)
    assert not np.array_equal(one, other)


def test_points_as_images_are_rounded_and_cut() -> None:
    values = np.array([[-0.2, 0.5, 1.0, 1.3]], dtype=np.float32)
    images = InducingPoints(values, np.zeros(1, np.int64), PointSettings(1)).images(1)
    assert images.tolist() == [[[0, 128], [255, 255]]]


@pytest.mark.parametrize(
    ("classes", "per_class", "message"),
    [
        (1, 2, r"points: all records are of one class"),
        (10, 501, r"per_class=501: 5,010 in all classes; at most 5,000"),
    ],
)
def test_points_that_there_cannot_be(classes: int, per_class: int, message: str) -> None:
    with pytest.raises(GeneratorError, match=message):
        find_points(drawn(classes), PointSettings(per_class))
    with pytest.raises(GeneratorError, match=r"per_class=0: a whole number from 1"):
        PointSettings(0)
