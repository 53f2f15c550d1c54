"""The Frechet distance between Gaussians fitted to features of synthetic and real images.

|| m - m' ||^2 + tr(C + C' - 2 (C C')^(1/2)) of means m and covariances C (Heusel et al. 2017, "GANs
Trained by a Two Time-Scale Update Rule Converge to a Local Nash Equilibrium"). The features are the
output of a module, or the downsampled image itself. Fewer images have a larger distance, because
their covariances are less certain, so only distances of equally many images are comparable.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ...common.display.representations import RedactedRepr
from ...common.errors import DataError, ModuleError
from ...common.features.torchscript import load_module
from .records import LabelledImages

_BATCH: Final = 100
_MOST_FEATURES: Final = 4096
_SMALL: Final = 16
"""Side that images are averaged down to if there is no module."""

Features = Callable[[Tensor], Tensor]
"""Maps images float32 (b, channels * side * side), 0..1, to features (b, d)."""


@dataclass(frozen=True)
class FeatureMetric:
    """The features that the distance is measured in.

    Attributes:
        name: in words.
        features: computes the features of images.
        module: SHA-256 of the module's file; None if there is none.
    """

    name: str
    features: Features
    module: str | None = None

    def features_of(self, images: LabelledImages) -> NDArray[np.float64]:
        """The features of images, float64 (n, d).

        Raises:
            DataError: there are too few images, or a feature is not finite.
        """
        if len(images) < 2:
            raise DataError("a distance is measured between two images or more on either side")
        with torch.no_grad():
            parts = [
                self.features(torch.from_numpy(images.images(part)))
                for part in np.array_split(np.arange(len(images)), -(-len(images) // _BATCH))
            ]
        features: NDArray[np.float64] = torch.cat(parts).double().numpy()
        if not np.isfinite(features).all():
            raise DataError(f"the {self.name} are not finite for every image")
        return features

    @classmethod
    def of_module(cls, path: Path, shape: tuple[int, int, int]) -> FeatureMetric:
        """The features of a module.

        Args:
            path: a TorchScript archive, as `--features perceptual` takes it.
            shape: of an image: (channels, side, side).

        Raises:
            ModuleError: it cannot be used, or has too many features.
        """
        module = load_module(path, shape)
        size = module.feature_map.dimension
        if size > _MOST_FEATURES:
            raise ModuleError(
                f"{path}: it says {size:,} numbers of an image: a distance is measured in "
                f"{_MOST_FEATURES:,} at most: let it end in means over places"
            )
        return cls("features of the module", module, module.feature_map.module)

    @classmethod
    def of_pixels(cls, shape: tuple[int, int, int]) -> FeatureMetric:
        """The image itself, averaged down to 16 pixels a side.

        Args:
            shape: of an image: (channels, side, side).
        """
        side = min(_SMALL, shape[-1])

        def small(images: Tensor) -> Tensor:
            return torch.nn.functional.adaptive_avg_pool2d(images.view(-1, *shape), side).flatten(1)

        return cls("pixels", small)

    def to_json(self) -> dict[str, str]:
        """A description, as plain JSON."""
        return {"features": self.name} | ({} if self.module is None else {"module": self.module})


@dataclass(frozen=True, repr=False)
class Gaussian(RedactedRepr):
    """A Gaussian fitted to features.

    Attributes:
        mean: float64 (d,).
        covariance: float64 (d, d).
    """

    mean: NDArray[np.float64]
    covariance: NDArray[np.float64]

    @classmethod
    def of(cls, features: NDArray[np.float64]) -> Gaussian:
        """Fit one to features of images, float64 (n, d)."""
        return cls(features.mean(axis=0), np.atleast_2d(np.cov(features, rowvar=False)))

    def distance(self, other: Gaussian) -> float:
        """The squared Frechet distance, as commonly reported."""
        values, vectors = np.linalg.eigh(self.covariance)
        root = (vectors * np.sqrt(values.clip(min=0))) @ vectors.T
        # (C C')^(1/2) has the eigenvalues of (C^(1/2) C' C^(1/2))^(1/2), which is symmetric.
        mixed = np.linalg.eigvalsh(root @ other.covariance @ root)
        shift = np.square(self.mean - other.mean).sum()
        spread = np.trace(self.covariance) + np.trace(other.covariance)
        return float(max(0.0, shift + spread - 2 * np.sqrt(mixed.clip(min=0)).sum()))
