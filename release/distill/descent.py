"""The descent of a distillation: a step draws a batch and adds noise to sums of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray

from ...common.display.console import notice, progress
from ...common.display.representations import RedactedRepr
from ...common.display.text import rounded_up
from ...common.errors import DataError
from ...common.features.infinite_ntk import ReluKernel
from ...common.features.kernel_ridge import class_targets
from ...common.schema import Schema
from ...common.schema.image import ImageSchema
from ...common.sources import Source, require_same_data
from ..mechanism.subsampled_gaussian import sampled_epsilon
from .class_means import ClassMeans
from .gradients import SupportLoss
from .ledger import Spending
from .mechanism import Step, exact_gradient, gradient_of, noisy_sums
from .optimiser import State, begin, descend, gives_means
from .progress import RunFolder
from .sampling import poisson_sample
from .settings import Settings

_BATCH: Final = 4096
_REMARKS: Final = 20
"""How many times during a run the epsilon spent so far is computed."""


@dataclass(frozen=True, eq=False, repr=False)
class LabelledRecords(RedactedRepr):
    """All records, in memory. SENSITIVE.

    Attributes:
        values: uint8 (n, D).
        labels: int64 (n,).
    """

    values: NDArray[np.uint8]
    labels: NDArray[np.int64]


def take_steps(
    records: LabelledRecords,
    schema: Schema,
    entry: Spending,
    settings: Settings,
    folder: RunFolder,
) -> State:
    """Take all remaining steps, and count each before it is taken.

    Args:
        records: the records.
        schema: of the records.
        entry: the run's entry in the ledger.
        settings: how to descend.
        folder: keeps the progress, and may hold that of an interrupted run.
    """
    run, steps = entry.run, settings.steps
    side = schema.side if isinstance(schema, ImageSchema) else None
    state = folder.resume(begin(settings, len(schema.classes), schema.record_size, side))
    if state.begun:
        notice(f"going on after step {state.begun:,} of {steps:,}")
    if state.begun == steps:
        return state
    kernel = ReluKernel(schema.record_size, settings.bias_variance)
    classes = len(schema.classes)
    targets = class_targets(torch.from_numpy(labels_of(settings.per_class, classes)), classes)
    record_targets = class_targets(torch.from_numpy(records.labels), classes)
    every = max(1, steps // _REMARKS)
    spent = _spent(entry, state.begun)
    with progress("distilling", steps, "steps") as advance:
        advance(state.begun, spent)
        while state.begun < steps:
            state = folder.begin_step(state)
            # Made from public points alone, before there is a batch on which it could depend.
            points = torch.from_numpy(state.points)
            if gives_means(state, settings):
                step: Step = ClassMeans(points, targets)
            else:
                step = SupportLoss(kernel, points, targets, settings.ridge)
            batch = poisson_sample(len(records.labels), settings.sampling_prob)
            values, wanted = records.values[batch], record_targets[torch.from_numpy(batch)]
            if run is None:
                gradient = exact_gradient(step, values, wanted, centre=settings.centre)
            else:
                sums = noisy_sums(
                    step,
                    values,
                    wanted,
                    centre=settings.centre,
                    clip_norm=settings.clip_norm,
                    noise_multiplier=run.noise_multiplier,
                )
                gradient = gradient_of(step, sums)
            state = descend(state, gradient, settings, side)
            folder.save(state)
            if state.begun % every == 0:
                spent = _spent(entry, state.begun)
            advance(1, spent)
    return state


def labels_of(per_class: int, classes: int) -> NDArray[np.int64]:
    """The classes of support points: balanced and fixed, whatever the records' classes are."""
    return np.tile(np.arange(classes), per_class)


def read_records(source: Source, fingerprint: str) -> LabelledRecords:
    """Read all records.

    Args:
        source: the records.
        fingerprint: the records' fingerprint when the run was planned.

    Raises:
        DataError: they cannot be read, there are not as many as the source says, or their
            fingerprint has changed.
    """
    values = np.empty((len(source), source.schema.record_size), dtype=np.uint8)
    labels = np.empty(len(source), dtype=np.int64)
    start = stop = 0
    with progress("reading", len(source), "records") as advance:
        for batch in source.batches(_BATCH):
            stop = start + len(batch.labels)
            if stop > len(source):
                break
            values[start:stop], labels[start:stop] = batch.records, batch.labels
            start = stop
            advance(len(batch.labels), "")
    if stop != len(source):  # rows that were not filled would hold other memory
        raise DataError("there are not as many records as the data say: save them anew")
    require_same_data(source, fingerprint)
    return LabelledRecords(values, labels)


def _spent(entry: Spending, steps: int) -> str:
    """The epsilon after some of a run's steps, in words."""
    if entry.run is None:
        return "NOT PRIVATE"
    if steps == 0:
        return "epsilon 0 so far"
    so_far = replace(entry.run, steps=steps)
    spent = sampled_epsilon([so_far], entry.delta, grid=1e-3, adjacency=entry.adjacency)
    return f"epsilon {rounded_up(spent)} so far"
