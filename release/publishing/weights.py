"""The weights of a table's single columns and of their products beside a network's features.

An embedding has all of these parts, and leaves their weights to the release unless its owner chose
them. The network's features tell classes apart best, but only where there is little noise. Single
columns withstand more noise than anything else.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Final

from ...common.features.joint import JointFeatures
from ...common.features.moments import MomentFeatures

_LEAST: Final = 0.4
"""Least weight of marginals where there are classes to tell apart, unless columns are few."""
_LEAST_WITHOUT_CLASSES: Final = 0.7
_LITTLE_NOISE: Final = 4e-4
"""Marginals have their least weight up to this noise on a cell's share in a class, times the
weight."""
_GROWTH: Final = 0.25
"""Power of this noise with which their weight grows beyond."""
_MANY_COLUMNS: Final = 25
"""With this many columns, marginals have half of the squared length at most. What the network's
features tell of single columns fades with the number of columns faster than what marginals tell."""
_OF_PRODUCTS: Final = 0.2
"""The products' part of the squared length that marginals leave, if there are classes."""
_OF_PRODUCTS_WITHOUT_CLASSES: Final = 0.5
_LARGE_NOISE: Final = 0.1
"""Noise on correlations, times the weight of products, at which they have half of this part."""
_LEAST_OF_PRODUCTS: Final = 0.1
"""Least weight of products: their noise has to fit 64 bits. Beside the marginals of as many columns
as a table may have (2,000), it leaves something to the network."""
_LARGEST_NETWORK_BLUR: Final = 0.03
"""Above this blur the network's features tell next to nothing."""
_LEAST_WITHOUT_NETWORK: Final = 0.9
"""Least weight of marginals then."""


def weighed_for(feature_map: JointFeatures, blur: float, classes: int) -> JointFeatures:
    """An embedding's map with the weights that a release gives its parts.

    With more noise marginals weigh more, and products less.

    Guarantee:
        A function of the blur and of what is public.

    Args:
        feature_map: of the embedding.
        blur: see `dpntk.release.publishing.lengths.blur_of`.
        classes: number of classes.
    """
    return _weighed(feature_map, blur, blur, classes)


def extreme_weights(feature_map: JointFeatures, classes: int) -> Iterator[JointFeatures]:
    """Maps among which each part weighs as much, and as little, as at any blur.

    Args:
        feature_map: of the embedding.
        classes: number of classes.
    """
    # One weight grows with the blur and the other one shrinks, and the rest is the network's.
    for of_marginals, of_products in itertools.product((0.0, math.inf), repeat=2):
        yield _weighed(feature_map, of_marginals, of_products, classes)


def _weighed(
    feature_map: JointFeatures, of_marginals: float, of_products: float, classes: int
) -> JointFeatures:
    """`weighed_for` two blurs, one for each weight."""
    if not feature_map.weights_undecided:
        return feature_map
    marginals = _of_marginals(len(feature_map.marginals.columns), of_marginals, classes)
    share = _share_of_products(feature_map.moments, of_products, classes)
    products = max(math.sqrt(share * (1 - marginals**2)), _LEAST_OF_PRODUCTS)
    return feature_map.weighing(marginals, products)


def _of_marginals(columns: int, blur: float, classes: int) -> float:
    """The weight of marginals."""
    most = math.sqrt(columns / (columns + _MANY_COLUMNS))
    if blur > _LARGEST_NETWORK_BLUR:
        return max(most, _LEAST_WITHOUT_NETWORK)
    if classes == 1:
        return max(most, _LEAST_WITHOUT_CLASSES)
    noise = blur * math.sqrt(columns)
    growth: float = (noise / _LITTLE_NOISE) ** _GROWTH
    return min(most, max(growth, 1.0) * _LEAST)


def _share_of_products(products: MomentFeatures | None, blur: float, classes: int) -> float:
    """The products' part of the squared length that marginals leave."""
    if products is None:
        return 0.0
    share = _OF_PRODUCTS if classes > 1 else _OF_PRODUCTS_WITHOUT_CLASSES
    # Each product appears twice, and classes show together what they have in common.
    noise = products.noise_on_correlations(blur / math.sqrt(2 * classes))
    return share / (1 + (noise / _LARGE_NOISE) ** 2)
