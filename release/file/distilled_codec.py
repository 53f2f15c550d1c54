"""The release of a distilled set as a file: writing it, and validating what is read."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import h5py
import numpy as np
from numpy.typing import NDArray

from ...common.adjacency import Adjacency
from ...common.errors import BudgetError, FormatError, SchemaError
from ...common.schema import Schema, schema_from_json
from ...common.storage.canonical_json import canonical_json
from ...common.storage.container import NOT_PRIVATE_MAGIC, RELEASE_MAGIC, build
from ...common.storage.plain import parse_json
from ..mechanism.discrete_gaussian import LARGEST_SIGMA
from ..mechanism.gaussian import SMOOTHING
from ..mechanism.subsampled_gaussian import (
    LEAST_SAMPLING_PROB,
    MOST_STEPS,
    SampledGaussian,
    sampled_epsilon,
)
from ..signing.keys import SigningKey
from .distilled import (
    FARTHEST,
    KIND,
    LARGEST_BIAS,
    LARGEST_CLIP,
    LARGEST_RIDGE,
    UNITS_OF_CLIP_NORM,
    DistilledGuarantee,
    DistilledRelease,
)
from .format import FORMAT_VERSION, distilled_attributes
from .parser import Body
from .ranges import possible_promise, require_in_range
from .statement import distilled_statement
from .user_block import UserBlock
from .writer import fill_attributes, write_signed

_UNDERSTATED: Final = 1e-6
_OVERSTATED: Final = 1e-2


def serialise_distilled(release: DistilledRelease) -> memoryview:
    """The bytes of an unsigned release file. Equal releases give equal bytes."""
    guarantee = release.guarantee
    values = {
        **vars(release),
        **guarantee.figures(),
        "format_version": FORMAT_VERSION,
        "kind": KIND,
        "schema": canonical_json(release.schema.to_json()),
        "settings": canonical_json(release.settings),
    }

    differs = guarantee.total_adjacency is not guarantee.adjacency
    kinds = distilled_attributes(total_adjacency=differs)

    def fill(file: h5py.File) -> None:
        fill_attributes(file, kinds, values)
        file.create_dataset("points", data=release.points)
        file.create_dataset("labels", data=release.labels)

    return build(RELEASE_MAGIC if guarantee.private else NOT_PRIVATE_MAGIC, fill)


def save_distilled(made: DistilledRelease, path: Path, key: SigningKey | None) -> str:
    """Write a release file and return its digest: see `write_signed`."""
    return write_signed(serialise_distilled(made), path, key, private=made.guarantee.private)


def understand_distilled(body: Body, block: UserBlock) -> DistilledRelease:
    """Make a release from plain values, after validating them.

    Raises:
        FormatError: they do not make sense as a release.
    """
    values: dict[str, Any] = dict(body.attributes)
    try:
        schema = schema_from_json(parse_json(values["schema"]))
        settings = parse_json(values["settings"])
    except (SchemaError, KeyError, TypeError, ValueError) as error:
        raise FormatError(f"damaged: {str(error)[:200]}") from error
    if values["kind"] != KIND or not isinstance(settings, dict):
        raise FormatError("it is not what a distilled set looks like")
    if schema.spent:
        raise FormatError("its epsilon does not count what the schema's bounds spent")
    if schema.privacy_unit is not None:
        raise FormatError("its epsilon is of single records, and the schema's unit is another")
    guarantee = _guarantee_in(values)
    if guarantee.private != block.private:
        raise FormatError("its first line and its epsilon disagree about its being private")
    if "total_adjacency" in values and not _adds_up_to_replace_one(guarantee):
        raise FormatError("the adjacency of the total does not follow from that of this release")
    run = _require_consistent(guarantee)
    points, labels = body.arrays["points"], body.arrays["labels"]
    _require_points(points, labels, schema)
    if not (0 < values["ridge"] <= LARGEST_RIDGE and 0 < values["bias_variance"] <= LARGEST_BIAS):
        raise FormatError("the ridge or the kernel's bias is out of range")
    if values["centre"] > schema.levels:
        raise FormatError("the centre is none of a record's values")
    if run is not None:
        _require_spent(guarantee, run)  # this takes longest
    return DistilledRelease(
        points=points,
        labels=labels,
        bias_variance=values["bias_variance"],
        centre=values["centre"],
        ridge=values["ridge"],
        settings=settings,
        schema=schema,
        guarantee=guarantee,
        release_id=values["release_id"],
        created=values["created"],
        dpntk_version=values["dpntk_version"],
        # In our own words, whatever the file says, because people rely on it.
        statement=distilled_statement(guarantee, schema),
    )


def _guarantee_in(values: Mapping[str, Any]) -> DistilledGuarantee:
    """The guarantee stated in a file's attributes, not checked yet."""
    try:
        adjacency = Adjacency(values["adjacency"])
        total_adjacency = Adjacency(values.get("total_adjacency", adjacency))
    except ValueError as error:
        raise FormatError("its adjacency is neither add-remove nor replace-one") from error
    return DistilledGuarantee(
        epsilon=values["epsilon"],
        delta=values["delta"],
        adjacency=adjacency,
        noise_multiplier=values["noise_multiplier"],
        sigma=values["sigma"],
        grid=values["grid"],
        mechanism=values["mechanism"],
        accountant=values["accountant"],
        total_epsilon=values["total_epsilon"],
        total_adjacency=total_adjacency,
        total_releases=values["total_releases"],
        sampling_prob=values["rate"],
        steps=values["steps"],
        clip_norm=values["clip_norm"],
    )


def _adds_up_to_replace_one(guarantee: DistilledGuarantee) -> bool:
    """Whether an add-remove release says that an earlier one was under replace-one."""
    adjacencies = guarantee.adjacency, guarantee.total_adjacency
    unlike = adjacencies == (Adjacency.ADD_REMOVE, Adjacency.REPLACE_ONE)
    return unlike and guarantee.total_releases > 1


def _require_points(points: NDArray[Any], labels: NDArray[Any], schema: Schema) -> None:
    """Refuse points (p, D) and labels (p,) that no distilled set of the schema can have."""
    classes = len(schema.classes)
    if points.ndim != 2 or points.shape[1] != schema.record_size or len(points) != len(labels):
        raise FormatError("the points are not as many as the labels, or not of the schema's size")
    if labels.min() < 0 or labels.max() >= classes or np.abs(points).max() > FARTHEST:
        raise FormatError("a label or a point is out of range")
    if len(set(np.bincount(labels, minlength=classes).tolist())) > 1:
        raise FormatError("there are not as many points in each class")


def _require_consistent(guarantee: DistilledGuarantee) -> SampledGaussian | None:
    """Refuse figures that are out of range or contradict each other; epsilon is not checked here.

    Returns:
        The run from which epsilon must follow; None if the file states that there is no noise.
    """
    g = guarantee
    if not g.private:
        _require_no_noise(g)
        return None
    if not g.noise_multiplier or not g.sigma:
        raise FormatError("noise and epsilon contradict each other")
    possible = {
        **possible_promise(g),
        "the clip norm": 0 < g.clip_norm <= LARGEST_CLIP,
        "sigma": g.sigma <= LARGEST_SIGMA * g.grid,
    }
    require_in_range(possible)
    try:
        run = SampledGaussian(g.sampling_prob, g.noise_multiplier, g.steps)
    except BudgetError as error:
        raise FormatError(str(error)) from error
    if g.grid * UNITS_OF_CLIP_NORM != g.clip_norm:
        raise FormatError("clip norm and grid contradict each other")
    units = g.sigma / g.grid
    needed = math.hypot(g.noise_multiplier * g.clip_norm, SMOOTHING * g.grid)
    if abs(units - round(units)) > units * 2.0**-51 or g.sigma < needed * (1 - 1e-12):
        raise FormatError("sigma is smaller than the noise multiplier and the clip norm demand")
    alone = g.total_releases == 1
    if g.total_epsilon < g.epsilon or (alone and g.total_epsilon != g.epsilon):
        raise FormatError("the total epsilon contradicts the epsilon of this release")
    return run


def _require_no_noise(guarantee: DistilledGuarantee) -> None:
    """Refuse figures of noise if nothing is promised, and any figures out of range."""
    g = guarantee
    require_in_range(
        {
            **possible_promise(g),
            "the sampling rate": LEAST_SAMPLING_PROB <= g.sampling_prob <= 1,
            "the number of steps": 1 <= g.steps <= MOST_STEPS,
        }
    )
    bounded = math.isfinite(g.clip_norm) or math.isfinite(g.total_epsilon)
    if g.noise_multiplier or g.sigma or g.grid or bounded:
        raise FormatError("noise and epsilon contradict each other")


def _require_spent(guarantee: DistilledGuarantee, run: SampledGaussian) -> None:
    """Recompute epsilon from the noise, and refuse a different one."""
    spent = sampled_epsilon([run], guarantee.delta, adjacency=guarantee.adjacency)
    if not spent * (1 - _UNDERSTATED) <= guarantee.epsilon <= spent * (1 + _OVERSTATED):
        raise FormatError("epsilon does not follow from rate, noise, steps and delta")
