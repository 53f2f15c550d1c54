"""The gallery: images that are trained themselves, and the running distance that trains them."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from dpntk.common.errors import GeneratorError
from dpntk.common.features.rff import RandomFourierFeatures
from dpntk.common.schema.image import ImageSchema
from dpntk.common.schema.origin import Origin
from dpntk.embed import Embedding
from dpntk.generate.fit.descent import untrained
from dpntk.generate.fit.recipe import gallery_steps
from dpntk.generate.fit.settings import TrainingSettings
from dpntk.generate.images.distances.running import RunningDistance
from dpntk.generate.images.generators.gallery import Gallery, GallerySpec
from dpntk.generate.images.generators.registry import described, generator_from
from dpntk.generate.images.training import minimise_distance
from dpntk.generate.kernels.base import FeatureMatrix
from dpntk.generate.kernels.registry import kernel_of
from dpntk.release import PrivacyParameters, Release
from dpntk.release.publishing.pipeline import unrecorded_release
from tests.conftest import CLASSES, SIDE

CPU = torch.device("cpu")
SPEC = GallerySpec(side=9, classes=3, images=4, channels=3)


@pytest.fixture
def gallery() -> Gallery:
    return untrained(lambda: Gallery(SPEC), 0)


def taken(gallery: Gallery, *code: float) -> Tensor:
    """One image of the second class, (channels, side, side)."""
    spec = gallery.spec
    image: Tensor = gallery(torch.tensor([[code]]), torch.tensor([1]))
    return image.view(spec.channels, spec.side, spec.side)


def test_a_code_says_which_image_and_how_it_lies(gallery: Gallery) -> None:
    still = taken(gallery, -3.0, 1.0, 0.0, 0.0)
    assert torch.equal(taken(gallery, -0.8, 1.0, 0.0, 0.0), still)  # the first quarter
    assert not torch.allclose(taken(gallery, 0.1, 1.0, 0.0, 0.0), still, atol=0.1)
    assert torch.equal(taken(gallery, -3.0, -1.0, 0.0, 0.0), still.flip(-1))
    up = taken(gallery, -3.0, 1.0, 9.0, 0.0)
    assert torch.equal(up[:, :-2], still[:, 2:])
    assert torch.equal(up[:, -2:], still[:, [-2, -3]])  # reflected
    right = taken(gallery, -3.0, 1.0, 0.0, -9.0)
    assert torch.equal(right[..., 2:], still[..., :-2])
    assert torch.equal(right[..., :2], still[..., [2, 1]])


def test_grey_images_are_not_mirrored() -> None:
    """They may be of letters."""
    gallery = untrained(lambda: Gallery(replace(SPEC, channels=1)), 0)
    still = taken(gallery, -3.0, 1.0, 0.0, 0.0)
    assert torch.equal(taken(gallery, -3.0, -1.0, 0.0, 0.0), still)


def test_it_begins_as_photographs_do() -> None:
    """Pixels vary alike, neighbours are alike, and brightness varies more than colour."""
    gallery = untrained(lambda: Gallery(GallerySpec(32, 2, 200, 3)), 0)
    code = torch.randn(2, 300, 4, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        images = gallery(code, torch.arange(2)).view(-1, 3, 32, 32)
    assert images.mean() == pytest.approx(0.47, abs=0.03)
    assert 0.12 < images.std() < 0.2
    centred = images - images.mean(dim=0)
    beside = (centred[..., 1:] * centred[..., :-1]).mean() / centred.square().mean()
    far = (centred[..., 16:] * centred[..., :-16]).mean() / centred.square().mean()
    assert beside > 0.95 > 0.85 > far
    colour = images - images.mean(dim=1, keepdim=True)
    assert 0.1 < colour.std() / images.std() < 0.5


def test_a_file_says_all_of_it(gallery: Gallery) -> None:
    make, classes = generator_from(json.loads(json.dumps(described(gallery))))
    assert classes == 3
    with torch.device("meta"):
        again = make()
    again.load_state_dict(gallery.state_dict(), assign=True)
    code = torch.randn(3, 5, 4, generator=torch.Generator().manual_seed(0))
    assert torch.equal(again(code, torch.arange(3)), gallery(code, torch.arange(3)))


def test_an_earlier_file_does_not_say_how_far_images_are_moved() -> None:
    """Its images are moved by up to two pixels, as they were when it was written."""
    described_then = {name: said for name, said in SPEC.to_json().items() if name != "shift"}
    make, _ = generator_from({"generator": "gallery", "spec": described_then})
    assert isinstance(found := make(), Gallery)
    assert found.spec.shift == 2


@pytest.mark.parametrize(("side", "shift"), [(32, 4), (64, 8), (28, 4), (8, 1)])
def test_images_are_moved_by_an_eighth_of_a_side(side: int, shift: int) -> None:
    schema = ImageSchema(side, ("a", "b"), Origin.FORMAT, Origin.DECLARED, channels=3)
    assert GallerySpec.of(schema).shift == shift


@pytest.mark.parametrize("which", ["atelier", ["gallery"], 3])
def test_a_file_of_another_generator_is_refused(which: object) -> None:
    with pytest.raises(GeneratorError, match="not one that this dpntk knows"):
        generator_from({"generator": which, "spec": SPEC.to_json()})


@pytest.mark.parametrize("wrong", [{"images": 0}, {"images": 40_000}, {"shift": 9}, {"shift": -1}])
def test_no_gallery_is_empty_or_endless_or_moved_out_of_sight(wrong: dict[str, int]) -> None:
    with pytest.raises(GeneratorError, match="out of range"):
        replace(SPEC, **wrong)


def values(release: Release, records: Tensor) -> Tensor:
    """The features of records, written out."""
    features = kernel_of(release.feature_map, CPU).features(records)
    assert isinstance(features, FeatureMatrix)
    return features.values


@pytest.fixture
def fourier(embedding: Embedding) -> Release:
    """Random Fourier features of images that are bright above, below, or nowhere."""
    feature_map = RandomFourierFeatures.draw(
        SIDE**2, frequencies=60, length_scale=3.0, levels=255, seed=0
    )
    made = unrecorded_release(embedding, PrivacyParameters(epsilon=50.0))
    made = replace(made, feature_map=feature_map)
    records = torch.zeros(CLASSES, 1, SIDE, SIDE)
    records[0, :, : SIDE // 2] = records[1, :, SIDE // 2 :] = 1
    mean = values(made, records.flatten(2))[:, 0]
    return replace(made, embedding=mean.numpy().T * made.class_weights.astype(np.float32))


def test_running_means_are_those_of_what_was_generated_lately(fourier: Release) -> None:
    """By the definition, class by class, of the mean over three steps."""
    objective = RunningDistance(fourier, CPU)
    batches = torch.rand(3, CLASSES, 4, SIDE**2, generator=torch.Generator().manual_seed(0))
    distances = [objective(batch.requires_grad_()) for batch in batches.unbind()]
    features = values(fourier, batches.movedim(0, 1).flatten(1, 2))
    target = torch.from_numpy(fourier.embedding / fourier.class_weights).T
    left = target - features.mean(dim=1)
    own = left - left.mean(dim=0)
    expected = left.mean(dim=0).square().sum() + 3 * own.square().sum(dim=1).mean()
    assert distances[-1].item() == pytest.approx(float(expected), rel=1e-4)
    assert all(distance.requires_grad for distance in distances)


def test_what_noise_adds_is_its_expectation(fourier: Release) -> None:
    """Without any difference, the distance is that of the noise alone."""
    random, count = np.random.default_rng(0), 2000
    objective = RunningDistance(fourier, CPU)
    each = objective.noise_variance.sqrt().numpy()[:, None]
    left = each * random.standard_normal((count, CLASSES, fourier.feature_map.dimension))
    common = left.mean(axis=1)
    own = left - common[:, None]
    drawn = np.square(common).sum(-1) + 3 * np.square(own).sum(-1).mean(-1)
    assert objective.noise_floor == pytest.approx(drawn.mean(), rel=0.02)


def test_with_more_noise_there_are_fewer_steps(fourier: Release) -> None:
    """As long as it is little, it does not matter how much; then the more, the fewer."""
    guarantee = fourier.guarantee

    def steps(square: float) -> int:
        """With so much noise on a class's mean feature, squared."""
        on_each = math.sqrt(square / fourier.feature_map.dimension) / CLASSES
        known = replace(guarantee, sigma=on_each * guarantee.records)
        return gallery_steps(replace(fourier, guarantee=known))

    assert steps(1e-9) == steps(0.0599) == 4000
    assert steps(0.12) == round(4000 / 2**0.6)
    assert steps(1.0) == round(4000 * 0.06**0.6)
    assert steps(1e12) == 1


def test_its_images_become_what_a_release_says(fourier: Release) -> None:
    spec = GallerySpec(SIDE, CLASSES, images=5)
    settings = TrainingSettings(steps=80, batch=12, learning_rate=0.3)
    training = minimise_distance(
        untrained(lambda: Gallery(spec), 0), RunningDistance(fourier, CPU), settings, CPU
    )
    assert training.losses[-1].loss < 0.3 * training.losses[0].loss
    code = torch.tensor([[[-3.0, 1.0, 0.0, 0.0]]]).expand(CLASSES, -1, -1)
    with torch.no_grad():
        images = training.generator(code, torch.arange(CLASSES)).view(CLASSES, SIDE, SIDE)
    above, below = images[:, : SIDE // 2].mean(dim=(1, 2)), images[:, SIDE // 2 :].mean(dim=(1, 2))
    assert above[0] - below[0] > 0.4 < below[1] - above[1]
    assert images[2].mean() < 0.3
