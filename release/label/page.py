"""A printable page on a release, for those who answer for the privacy of the records."""

from __future__ import annotations

import math
from typing import Final

from scipy.special import ndtr, ndtri

from ...common.adjacency import Adjacency
from ...common.display.html import pages_of
from ...common.display.text import promised
from ...common.ledger import SMALLEST_EPSILON
from ..file.distilled import AnyOpened
from ..file.model import EmbeddingGuarantee
from ..mechanism.accountant import noise_multiplier
from .kinds import label_of

BEGINS: Final = b"<!DOCTYPE html>\n<!-- dpntk page"
"""The beginning of every such page."""
_FALSE_ALARMS: Final = 0.05


def page_of(opened: AnyOpened) -> bytes:
    """The page, in UTF-8.

    Guarantee:
        Like the label, the page is a function of the release file and of the list of trusted
        signers.

    Args:
        opened: the release.
    """
    release = opened.release
    promise = release.guarantee
    epsilon, delta = promise.total_epsilon, promise.delta
    adjacency = promise.total_adjacency
    if isinstance(promise, EmbeddingGuarantee):
        recognised = most_recognised_in_gaussian(_multiplier(epsilon, delta), _FALSE_ALARMS)
    else:
        recognised = most_recognised(epsilon, delta, _FALSE_ALARMS)
    page = pages_of("dpntk.release.label").get_template("page.html").render(
        label=label_of(opened),
        looked_up=release.schema.from_data,
        unit=release.schema.privacy_unit,
        private=promise.private,
        spent=math.isinf(epsilon),
        epsilon=promised(release.epsilon),
        delta=promised(delta),
        exchanged=adjacency is Adjacency.REPLACE_ONE,
        false_alarms=_percent_up(_FALSE_ALARMS),
        recognised=_percent_up(recognised),
    )  # fmt: skip
    return page.encode()


def most_recognised(epsilon: float, delta: float, false_alarms: float) -> float:
    """The largest probability of detecting a record that is present.

    The bound follows from (epsilon, delta) differential privacy and holds for any test (Kairouz,
    Oh, Viswanath 2015, "The composition theorem for differential privacy", theorem 2.1).

    Args:
        epsilon: epsilon of the guarantee; may be infinite.
        delta: delta of the guarantee.
        false_alarms: the probability that the test reports the record if it is absent.

    Returns:
        A probability.
    """
    at_most = 1 - math.exp(-epsilon) * (1 - delta - false_alarms)
    if epsilon < -math.log(false_alarms):
        at_most = min(at_most, math.exp(epsilon) * false_alarms + delta)
    return at_most


def most_recognised_in_gaussian(multiplier: float, false_alarms: float) -> float:
    """The same for releases with Gaussian noise, for which it is known exactly.

    It is much smaller than the bound from epsilon and delta alone (Dong, Roth, Su 2022, "Gaussian
    Differential Privacy", equation 6).

    Args:
        multiplier: standard deviation of the noise at sensitivity 1, for all releases together; 0
            without noise.
        false_alarms: as in `most_recognised`.
    """
    return float(ndtr(ndtri(false_alarms) + 1 / multiplier)) if multiplier else 1.0


def _multiplier(epsilon: float, delta: float) -> float:
    """The noise multiplier of all releases together; 0 if one of them has no noise.

    Below the smallest epsilon that can be resolved, the noise for that epsilon is used: it is
    smaller and so never overstates the protection.
    """
    if math.isinf(epsilon):
        return 0.0
    return noise_multiplier(max(epsilon, SMALLEST_EPSILON), delta)


def _percent_up(share: float) -> str:
    """A percentage with at most one decimal, rounded up."""
    return f"{math.ceil(round(1000 * share, 9)) / 10:g}"
