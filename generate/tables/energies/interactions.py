"""Interactions of three columns that the mean feature alone shows.

Products and tables of pairs say nothing of a label that is the exclusive or of three columns. The
mean feature does, but in one direction among thousands, of which most are empty: a ridge that is
right for all of them (`Goal.ridge`) believes little of any. So each triple of columns is held
against what rows still lack (a matched filter; North 1963, "An analysis of the factors which
determine signal/noise discrimination in pulsed-carrier systems"). Let g be the product of three
standardised contrasts. Independent rows with weights 1 + c g have a mean product of c, and their
mean feature is farther by c D, with D = E g(x) phi(x) over independent rows. So c is estimated by
<D, missing> / |D|^2, and a triple is taken if this is farther from 0 than noise would bring any of
them. Then what it explains is subtracted, and the next one is looked for (orthogonal matching
pursuit; Pati, Rezaiifar and Krishnaprasad 1993).

With little noise, other dependence that rows lack leaves its traces in all triples. So a triple has
to stand out from these, too: noise counts as large as triples usually are (an empirical null;
Efron 2004, "Large-scale simultaneous hypothesis testing: the choice of a null hypothesis").
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final

import numpy as np
import torch
from torch import Tensor

from ....common.runtime.threads import Each
from ....common.schema.encoding import Block
from .contrasts import Contrast, Contrasts
from .goal import Goal
from .relu_features import ReluFeatures

_ROWS: Final = 60_000
"""Number of independent rows, or a few more, by which triples are compared: the fewer, the more
chance hides a triple."""
_MOST_VALUES: Final = 2**25
"""At most this many values of independent rows (128 MiB), or a few more."""
_ROWS_OF_A_DIRECTION: Final = 2_000
"""Number of independent rows that determine D."""
_ROWS_AT_A_GLANCE: Final = 500
_TRIPLES_AT_A_GLANCE: Final = 8
_MARGIN: Final = 2.0
"""If the longest D of a few triples, by so many rows, were so many times as long and yet would not
stand out from the noise, none is looked for."""
_MOST_TRIPLES: Final = 8
"""At most this many triples are taken in a class."""
_CANDIDATES: Final = 4
"""Number of triples whose D is determined before one is taken."""
_BY_CHANCE: Final = 0.01
"""Probability at most that noise alone makes any triple of a class stand out."""
_USUAL: Final = 32
"""Number of triples, drawn at random, that one has to stand out from."""
_MEDIAN: Final = NormalDist().inv_cdf(0.75)
"""The median distance of a standard normal number from 0."""
_BATCH: Final = 2_000
_EXACT: Final = 1e-12


@dataclass(frozen=True, eq=False)
class Interactions:
    """Triples of contrasts whose mean product is not what rows have.

    Attributes:
        contrasts: of the columns.
        triples: int64 (t, 3).
        wanted: the mean product of each, as estimated, (t,).
        variances: of these estimates, (t,).
    """

    contrasts: Contrasts
    triples: Tensor
    wanted: Tensor
    variances: Tensor


def find_interactions(
    goal: Goal, records: Tensor, random: np.random.Generator, each: Each = map
) -> Interactions | None:
    """Find the triples that the mean feature shows beyond doubt; None if there is none.

    Args:
        goal: targets of the rows.
        records: rows that match everything else, (n, record size), values 0..1.
        random: draws independent rows.
        each: distributes the work.
    """
    contrasts = Contrasts(goal.blocks, records)
    triples = contrasts.triples()
    if not len(triples):
        return None
    beyond = NormalDist().inv_cdf(1 - _BY_CHANCE / 2 / len(triples))
    glance = _shuffled(records, goal.blocks, random)[:_ROWS_AT_A_GLANCE]
    few = triples[random.permutation(len(triples))[:_TRIPLES_AT_A_GLANCE]]
    lengths = _directions(goal.tangents, contrasts, few, glance, random).norm(dim=1)
    # With c = 1, which is about as large as it can be.
    if _MARGIN * float(lengths.max()) < beyond * goal.noise:
        return None
    shuffles = math.ceil(min(_ROWS, _MOST_VALUES // records.shape[1]) / len(records))
    independent = torch.cat([_shuffled(records, goal.blocks, random) for _ in range(shuffles)])
    values, some = contrasts(independent), independent[:_ROWS_OF_A_DIRECTION]
    missing = left = goal.mean - goal.tangents.mean(records, each)
    chosen: list[Tensor] = []
    directions, of_any = missing.new_zeros(0, len(missing)), None
    estimates = missing.new_zeros(0)
    while len(chosen) < _MOST_TRIPLES:
        towards = goal.tangents.along(left, independent, each)
        seen = _mean_products(values, towards, triples).abs()
        best = triples[seen.topk(min(_CANDIDATES, len(seen))).indices]
        found = _directions(goal.tangents, contrasts, best, some, random)
        distances = _deviations(found, left, goal.noise)
        first = int(distances.argmax())
        if distances[first] < beyond:
            break
        if of_any is None:
            others = triples[random.permutation(len(triples))[:_USUAL]]
            of_any = _directions(goal.tangents, contrasts, others, some, random)
        if distances[first] < beyond * _deviations(of_any, left, goal.noise).median() / _MEDIAN:
            break
        chosen.append(best[first])
        directions = torch.cat([directions, found[first : first + 1]])
        estimates = torch.linalg.lstsq(directions.T, missing[:, None]).solution[:, 0]
        left = missing - estimates @ directions
    if not chosen:
        return None
    taken = torch.stack(chosen)
    return Interactions(
        contrasts,
        taken,
        contrasts.products(records, taken) + estimates,
        goal.noise**2 / directions.square().sum(dim=1),
    )


def _shuffled(records: Tensor, blocks: Sequence[Block], random: np.random.Generator) -> Tensor:
    """Rows with the same columns, each in random order."""
    found = records.clone()
    for block in blocks:
        order = torch.from_numpy(random.permutation(len(records)))
        found[:, block.place] = records[:, block.place].index_select(0, order)
    return found


def _mean_products(values: Tensor, towards: Tensor, triples: Tensor) -> Tensor:
    """The mean of three contrasts' product times a number, for each triple, (triples,).

    Args:
        values: of the contrasts, (n, m).
        towards: the number in each row, (n,).
        triples: int64 (triples, 3).
    """
    count = values.shape[1]
    total = torch.zeros(count, count, count)
    for some, numbers in zip(values.split(_BATCH), towards.split(_BATCH), strict=True):
        for first in range(count):
            weighted = some * (some[:, first] * numbers)[:, None]
            total[first] += weighted.T @ some
    one, two, three = triples.T
    return total[one, two, three] / len(values)


def _deviations(directions: Tensor, left: Tensor, noise: float) -> Tensor:
    """How many standard deviations of the noise the estimates are from 0, (t,).

    Args:
        directions: D of each triple, (t, d).
        left: what rows lack, (d,).
        noise: standard deviation of the noise on an entry of it.
    """
    size = (noise * directions.norm(dim=1)).clamp(min=_EXACT)
    found: Tensor = (directions @ left).abs() / size
    return found


def _directions(
    features: ReluFeatures,
    contrasts: Contrasts,
    triples: Tensor,
    records: Tensor,
    random: np.random.Generator,
) -> Tensor:
    """D of some triples, int64 (t, 3): (t, d); see `direction`."""
    chosen = [[contrasts[number] for number in triple] for triple in triples.tolist()]
    return torch.stack([direction(features, each, records, random) for each in chosen])


def direction(
    features: ReluFeatures,
    contrasts: Sequence[Contrast],
    records: Tensor,
    random: np.random.Generator,
) -> Tensor:
    """How the mean feature changes with the mean product of some contrasts, D, (d,).

    Rows get values from either side of each contrast in turn. What depends on fewer columns than
    these cancels row by row, so that few rows do.

    Args:
        features: phi.
        contrasts: of different columns.
        records: independent rows, (n, record size).
        random: draws values.
    """
    sides = [contrast.sides(records, random) for contrast in contrasts]
    size = math.prod(contrast.deviation for contrast in contrasts)
    found = torch.zeros(())
    for above in itertools.product((False, True), repeat=len(contrasts)):
        rows = records.clone()
        for contrast, values, side in zip(contrasts, sides, above, strict=True):
            rows[:, contrast.block.place] = values[side]
        sign = (-1) ** above.count(False)
        found = found + sign * size * features.mean(rows)
    return found
