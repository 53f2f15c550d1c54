"""The pipeline of distillation, from records to a distilled set's release."""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from ...common.adjacency import Adjacency
from ...common.arguments import argument, number, path_from, require_flag, require_kind
from ...common.errors import BudgetError, DataError, OutputError, RunError
from ...common.ledger import default_delta, require_budget
from ...common.sources import Source, require_public_form
from ...common.storage.atomic import require_absent
from ...common.storage.canonical_json import canonical_json
from ...common.storage.container import RELEASE_BEGINS, RELEASE_COST
from ..file.distilled import (
    DISTILLED_MECHANISM,
    NO_ACCOUNTANT,
    NO_DISTILLED_MECHANISM,
    DistilledGuarantee,
    DistilledRelease,
    OpenedDistilled,
)
from ..file.distilled_codec import save_distilled
from ..file.format import require_readable
from ..file.model import Opened
from ..file.statement import distilled_statement
from ..mechanism.composition import Total
from ..mechanism.subsampled_gaussian import (
    SAMPLED_ACCOUNTANT,
    SampledGaussian,
    calibrate_sampled_gaussian,
    sampled_accountant_version,
    sampled_epsilon,
)
from ..signing.keys import SigningKey, usable
from ..signing.policy import owner_of
from .descent import labels_of, read_records, take_steps
from .gradients import require_memory
from .ledger import Spending, enter
from .mechanism import MOST_INPUTS, MOST_RECORDS, ONE, noise_sigma
from .optimiser import State
from .progress import RunFolder
from .settings import Settings


def distill(
    source: Source,
    output: Path | str,
    ledger: Path | str,
    *,
    epsilon: float,
    delta: float | None = None,
    adjacency: Adjacency = Adjacency.ADD_REMOVE,
    settings: Settings | None = None,
    key: SigningKey | None = None,
    not_private: bool = False,
    compose: Callable[[Total], bool] = lambda total: False,
    overwrite: bool = False,
    restart: bool = False,
) -> OpenedDistilled:
    """Find support points under differential privacy and write their release.

    Guarantee:
        The release satisfies (epsilon, delta) differential privacy under `adjacency`: it is a
        function of the settings, which are public, and of at most `settings.steps` noisy gradients
        (docs/privacy/proofs.md, statements 15 to 19). No release exists without its entry in the
        ledger, which is on the disk before the first noise is drawn. An interrupted run continues
        under the same entry. With `not_private` nothing is promised, and the release says so.

    Args:
        source: the records.
        output: where to write the release.
        ledger: the file that records what has been spent on these records; made if there is none.
        epsilon: the epsilon to spend; infinity means no noise and no clipping, and needs
            `not_private`.
        delta: the delta to spend; below one over the number of records. If None, that of
            `dpntk.common.ledger.default_delta`.
        adjacency: which data sets are indistinguishable.
        settings: how to find the points.
        key: the key that signs the release; this machine's own (`own_key`) if None.
        not_private: the owner's confirmation that a release without noise is wanted.
        compose: if the ledger has other entries, called to ask whether the joint guarantee is
            acceptable.
        overwrite: whether a file at `output` may be replaced.
        restart: discard the progress of an interrupted run; what it has spent stays spent.

    Returns:
        The release, as `open_any` would read it from `output`.

    Raises:
        DataError: the records cannot be read, are too many, or too long, or their files changed
            meanwhile.
        BudgetError: the numbers make no sense, or `compose` said no.
        RunError: existing progress belongs to another run, or this one was interrupted.
        OutputError: a file cannot be written.
    """
    settings = Settings() if settings is None else settings
    output = path_from("output", output, refusal=OutputError)
    ledger = path_from("ledger", ledger, refusal=OutputError)
    epsilon = number("epsilon", epsilon, "a number", refusal=BudgetError)
    if delta is not None:
        delta = number("delta", delta, "a number", refusal=BudgetError)
    _require_kinds(source, adjacency, settings)
    require_flag("not_private", not_private, refusal=BudgetError)
    require_word(epsilon, not_private=not_private)
    delta = default_delta(adjacency, len(source)) if delta is None else delta
    require_absent(output, overwrite=overwrite, cost=RELEASE_COST, begins=RELEASE_BEGINS)
    _require_usable(source)
    if not_private:
        require_budget(1.0, delta)
    else:
        _require_small(delta, len(source))
    require_memory(settings.per_class * len(source.schema.classes))
    key = usable(key)
    signed_by = owner_of(key.public)
    run = None if not_private else _calibrated(epsilon, delta, settings, adjacency)
    folder = RunFolder(output)
    with folder.held():
        plan = None if restart else folder.plan()
        wanted = _plan(source, epsilon, delta, adjacency, run, settings)
        if plan is None:
            release_id, created = secrets.token_hex(16), _now()
        else:
            _require_same(folder, plan, wanted)
            release_id, created = plan["release_id"], plan["created"]
        require_readable({"schema": canonical_json(source.schema.to_json())})
        # Nothing is spent, nor counted in what is published, on records that cannot be read.
        records = read_records(source, wanted["data"])
        entry = Spending(release_id, created, epsilon, delta, run, adjacency)
        total = enter(ledger, entry, compose)
        if plan is None:
            folder.write_plan({"wanted": wanted, "release_id": release_id, "created": created})
        try:
            state = take_steps(records, source.schema, entry, settings, folder)
        except KeyboardInterrupt as error:
            raise RunError(
                f"interrupted: {folder.path} keeps the steps so far; the same command goes on from "
                "there and spends nothing anew"
            ) from error
        made = _release(source, state, entry, settings, total)
        try:
            digest = save_distilled(made, output, key)
        except OutputError as error:
            raise OutputError(f"{error}; the same command writes it again at no cost") from error
        folder.remove()
    return Opened(made, digest, signed_by, output)


def _release(
    source: Source, state: State, entry: Spending, settings: Settings, total: Total
) -> DistilledRelease:
    run = entry.run
    grid = 0.0 if run is None else settings.clip_norm / ONE
    accountant = f"{SAMPLED_ACCOUNTANT}, {sampled_accountant_version()}"
    guarantee = DistilledGuarantee(
        epsilon=entry.epsilon,
        delta=entry.delta,
        adjacency=entry.adjacency,
        noise_multiplier=0.0 if run is None else run.noise_multiplier,
        sampling_prob=settings.sampling_prob,
        steps=settings.steps,
        clip_norm=math.inf if run is None else settings.clip_norm,
        grid=grid,
        sigma=0.0 if run is None else noise_sigma(run.noise_multiplier) * grid,
        mechanism=NO_DISTILLED_MECHANISM if run is None else DISTILLED_MECHANISM,
        accountant=NO_ACCOUNTANT if run is None else accountant,
        total_epsilon=total.epsilon,
        total_adjacency=total.adjacency,
        total_releases=total.releases,
    )
    return DistilledRelease(
        points=state.mean.astype(np.float32),
        labels=labels_of(settings.per_class, len(source.schema.classes)),
        bias_variance=settings.bias_variance,
        centre=settings.centre,
        ridge=settings.ridge,
        settings={
            **settings.to_json(clipped=run is not None),
            "steps_lost": state.begun - state.taken,
        },
        schema=source.schema,
        guarantee=guarantee,
        release_id=entry.release_id,
        created=entry.created,
        dpntk_version=version("dpntk"),
        statement=distilled_statement(guarantee, source.schema),
    )


def _calibrated(
    epsilon: float, delta: float, settings: Settings, adjacency: Adjacency
) -> SampledGaussian:
    sampling_prob, steps = settings.sampling_prob, settings.steps
    run = calibrate_sampled_gaussian(epsilon, delta, sampling_prob, steps, adjacency)
    spent = sampled_epsilon([run], delta, adjacency=adjacency)
    if spent < 0.99 * epsilon:
        raise BudgetError(
            f"{argument('epsilon', epsilon, option='--eps')} is more than {steps:,} steps at a "
            f"rate of {sampling_prob:.4g} spend with the least noise there is, {spent:.4g}: choose "
            f"that, or a higher {argument('sampling_prob')}"
        )
    return run


def _require_kinds(source: object, adjacency: object, settings: object) -> None:
    """Refuse arguments of the wrong type with a one-line error."""
    wanted = " or ".join(map(str, Adjacency))
    require_kind("adjacency", adjacency, Adjacency, wanted, refusal=BudgetError)
    require_kind("settings", settings, Settings, "Settings", refusal=BudgetError)
    if not hasattr(source, "batches"):
        raise DataError(f"source must be what open_source returns, not a {type(source).__name__}")


def require_word(epsilon: float, *, not_private: bool) -> None:
    """Require the owner's confirmation if there is no noise, and only then.

    Args:
        epsilon: the epsilon asked for.
        not_private: the confirmation.

    Raises:
        BudgetError: an infinite epsilon comes without the confirmation, or the reverse.
    """
    if not_private and epsilon != math.inf:
        infinite = argument("epsilon", math.inf, option="--eps")
        raise BudgetError(f"{argument('not_private')} means something with {infinite} only")
    if epsilon == math.inf and not not_private:
        raise BudgetError(
            "epsilon inf adds no noise, so the file would be as sensitive as the records: choose a "
            "number such as 1 ('dpntk distill --not-private' makes such a file)"
        )


def _require_usable(source: Source) -> None:
    require_public_form(source)
    if len(source) > MOST_RECORDS:
        raise DataError(f"{len(source):,} records: at most {MOST_RECORDS:,} are distilled")
    if (size := source.schema.record_size) > MOST_INPUTS:
        raise DataError(
            f"records have {size:,} values when encoded, at most {MOST_INPUTS:,} are distilled: "
            "leave columns with many categories out"
        )
    if len(source.schema.classes) < 2:
        raise DataError("all records are of one class: there is nothing to tell apart")
    if source.schema.spent:
        raise BudgetError(
            "the schema's bounds were found with differential privacy, and a distillation does not "
            "count what that spent: declare the bounds"
        )
    if source.schema.privacy_unit is not None:
        raise BudgetError(
            "a distillation protects single records, not all rows of one "
            f"{source.schema.privacy_unit.column}: keep one row of each and leave the unit out"
        )


def _require_small(delta: float, records: int) -> None:
    if delta >= 1 / records:
        raise BudgetError(
            f"{argument('delta', delta)} is not below one over the number of records: such a delta "
            "allows publishing somebody's record as it is"
        )


def _plan(
    source: Source,
    epsilon: float,
    delta: float,
    adjacency: Adjacency,
    run: SampledGaussian | None,
    settings: Settings,
) -> dict[str, Any]:
    """Everything that two runs must have in common for one to continue the other."""
    return {
        "data": source.fingerprint(),
        "schema": source.schema.to_json(),
        "epsilon": None if run is None else epsilon,  # JSON has no infinity
        "delta": delta,
        "adjacency": adjacency.value,
        "run": None if run is None else run.to_json(),
        "settings": settings.to_json(),
        "dpntk": version("dpntk"),
    }


def _require_same(folder: RunFolder, plan: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    before = plan.get("wanted")
    if before == wanted:
        return
    changed = [
        name for name in wanted if not isinstance(before, dict) or before.get(name) != wanted[name]
    ]
    raise RunError(
        f"{folder.path}: holds the progress of another run ({', '.join(changed)} changed): repeat "
        f"its command, or add {argument('restart', True)} to begin anew, which spends anew"
    )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
