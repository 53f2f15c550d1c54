"""The distance to a release in whitened coordinates, regularised by the release's noise.

Features of one class vary a great deal in a few directions and very little in the others. The plain
distance is dominated by the former, and gradient descent takes very long to match the latter, which
classifiers rely on. So the squared difference in each direction is divided by the variance of
generated features there plus a multiple of the noise variance: the more noise, the weaker the
whitening.
"""

from __future__ import annotations

from typing import Final

import torch
from torch import Tensor

from ....common.features.torchscript import PublicModule
from ....release.file.model import Release
from ...fit.descent import require_finite
from ...kernels.factors import Factors, factors_of
from ...kernels.registry import kernel_of

_SMOOTHING: Final = 2000.0
"""Multiple of the noise variance that is added to each variance. Chosen on MNIST at epsilon 1."""
_LEAST: Final = 1e-5
"""Least value of what is added, for features of length 1: below it, weights would differ too much
for the training to converge."""
_LEFT: Final = 200
_RIGHT: Final = 300
"""Principal directions kept of the left and right factor; the others hold hardly anything but
noise."""


class WhitenedBlock:
    """One block of coordinates: the released matrix there, in a basis of principal directions.

    Attributes:
        left: orthonormal directions of the left factor, (l, at most 200).
        right: orthonormal directions of the right factor, (r, at most 300).
        target: the released mean feature of each class in this basis, (c, 200, 300).
        weight: weight of each class and direction, above 0 and at most 1, (c, 200, 300).
    """

    def __init__(self, target: Tensor, factors: Factors, floor: Tensor) -> None:
        rows, columns = factors.left.shape[-1], factors.right.shape[-1]
        across = _lengths(factors.right), _lengths(factors.left)
        self.left = _principal(factors.left * across[0], _LEFT)
        self.right = (
            torch.eye(columns, device=target.device)
            if factors.whole
            else _principal(factors.right * across[1], _RIGHT)
        )
        matrix = target[:, factors.place].view(-1, rows, columns)
        self.target = self.left.T @ matrix @ self.right
        left, right = factors.left @ self.left, factors.right @ self.right
        size = left.shape[1]
        mean = left.mT @ right / size
        variance = (left.square().mT @ right.square() / size - mean.square()).mean(dim=0)
        floor = floor[:, None, None]
        self.weight = floor / (variance.clamp(min=0) + floor)
        self._pull = self.weight * self.target
        self._size = (self._pull * self.target).sum(dim=(1, 2))

    def distance(self, factors: Factors, classes: slice, *, in_pairs: bool) -> Tensor:
        """An unbiased estimate of the weighted distance of each given class, (k,)."""
        weight = self.weight[classes]
        left, right = factors.left @ self.left, factors.right @ self.right
        size = left.shape[1]
        total = left.mT @ right
        own = ((left.square() @ weight) * right.square()).sum(dim=(1, 2))
        if in_pairs:
            own = own + 2 * ((_within(left) @ weight) * _within(right)).sum(dim=(1, 2))
        others = size - (2 if in_pairs else 1)
        among = ((weight * total.square()).sum(dim=(1, 2)) - own) / (size * others)
        towards = (self._pull[classes] * total).sum(dim=(1, 2)) / size
        return self._size[classes] - 2 * towards + among


class WhitenedDistance:
    """mean over classes c of sum_j w_j (<e_j, mu_c> - E <e_j, phi(x | c)>)^2, unbiased.

    mu_c is the released mean feature of class c. The e_j are products of principal directions of
    the two factors of generated features (as in Martens and Grosse 2015, "Optimizing Neural
    Networks with Kronecker-factored Approximate Curvature"), and w_j = t / (v_j + t) with the
    variance v_j of generated features within a class along e_j, and t a multiple of the noise
    variance. As in `MeanEmbeddingDistance`, the estimate is unbiased because the pairs of a record
    with itself are left out, and with antithetic codes also its pair with the record of the
    opposite code.

    Args:
        release: of images.
        device: where records are.
        module: for "perceptual" features.
        in_pairs: see `ImageDistance`.

    Attributes:
        noise_variance: see `ImageDistance`.
        in_pairs: as above.
        blocks: the blocks of coordinates; none before the first `update_weights`.
        threads_may_share: whether several threads may compute distances at once; not with a module,
            whose code is foreign.

    Guarantee:
        Post-processing: reads the release alone. (docs/privacy/proofs.md, statement 10.)
    """

    def __init__(
        self,
        release: Release,
        device: torch.device,
        module: PublicModule | None = None,
        *,
        in_pairs: bool = True,
    ) -> None:
        shares = torch.as_tensor(release.class_weights, device=device)
        columns = torch.as_tensor(release.embedding, device=device).T / shares[:, None].float()
        self._target = columns.contiguous()
        self._kernel = kernel_of(release.feature_map, device, module=module)
        self.threads_may_share = module is None
        self.in_pairs = in_pairs
        self.noise_variance = ((release.noise_per_coordinate / shares) ** 2).float()
        self.blocks: tuple[WhitenedBlock, ...] = ()

    @torch.no_grad()
    def update_weights(self, records: Tensor) -> None:
        """Choose directions and weights from generated records.

        Args:
            records: (c, b, record size), values 0..1; 100 of each class are enough.

        Raises:
            GeneratorError: their features overflow.
        """
        factors = factors_of(self._kernel.features(records))
        for part in factors:
            require_finite([part.left, part.right], "features of generated records overflow")
        floor = (_SMOOTHING * self.noise_variance).clamp(min=_LEAST)
        self.blocks = tuple(WhitenedBlock(self._target, part, floor) for part in factors)

    @property
    def noise_floor(self) -> float:
        """Expected contribution of the release's noise to the distance."""
        total = torch.stack([block.weight.sum(dim=(1, 2)) for block in self.blocks]).sum(dim=0)
        return float((self.noise_variance * total).mean())

    def __call__(self, records: Tensor) -> Tensor:
        """The distance of a batch, in the directions chosen last.

        Args:
            records: (c, b, record size), values 0..1, b >= 2 of each class; in pairs, an even
                b >= 4.
        """
        return self.of_classes(records, slice(None)).mean()

    def of_classes(self, records: Tensor, classes: slice) -> Tensor:
        """The distances of some classes, (k,); the mean over all classes is the distance.

        Args:
            records: records of these classes, (k, b, record size), as above.
            classes: the slice of classes.
        """
        factors = factors_of(self._kernel.features(records))
        parts = [
            block.distance(part, classes, in_pairs=self.in_pairs)
            for block, part in zip(self.blocks, factors, strict=True)
        ]
        return torch.stack(parts).sum(dim=0)


def _within(vectors: Tensor) -> Tensor:
    """Products within each antithetic pair: (c, b, k) to (c, b / 2, k)."""
    one, other = vectors.chunk(2, dim=1)
    return one * other


def _lengths(vectors: Tensor) -> Tensor:
    lengths: Tensor = torch.linalg.vector_norm(vectors, dim=-1, keepdim=True)
    return lengths


def _principal(vectors: Tensor, most: int) -> Tensor:
    """The principal directions of vectors (c, b, k): orthonormal columns (k, at most `most`)."""
    # QR first: there may be thousands of coordinates, but only few vectors.
    span, within = torch.linalg.qr(vectors.flatten(0, 1).T)
    directions, _, _ = torch.linalg.svd(within, full_matrices=False)
    strongest: Tensor = span @ directions[:, :most]
    return strongest
