"""Stage two: add noise once and write the file that may be shared."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ...common.adjacency import Adjacency
from ...common.arguments import argument, path_from, require_kind
from ...common.errors import BudgetError, EmbeddingError, FormatError, OutputError
from ...common.features.approx_bounds import is_approx_bounds
from ...common.features.base import FeatureMap
from ...common.ledger import Entry
from ...common.storage.atomic import (
    followed,
    require_absent,
    require_room,
    write_failures,
)
from ...common.storage.canonical_json import canonical_json
from ...common.storage.container import RELEASE_BEGINS, RELEASE_COST
from ...common.storage.locks import locked
from ...embed.sums.data_sets import nobody_else_spends, note, spent_on_records_of
from ...embed.sums.file import Embedding, load_embedding, require_embedding, write_embedding
from ..file.format import require_readable
from ..file.model import EmbeddingGuarantee, Opened, OpenedRelease, Release
from ..file.statement import equal_by_declaration, statement_of
from ..file.validation import require_consistent
from ..file.writer import serialise, write_signed
from ..mechanism.accountant import ACCOUNTANT, accountant_version, epsilon_for
from ..mechanism.composition import Total, is_accepted, require_below_ceiling, total_of
from ..mechanism.gaussian import MECHANISM, NO_MECHANISM, NoiseScale
from ..signing.keys import SigningKey, usable
from ..signing.policy import owner_of
from .fewer_cells import with_fewer_cells
from .layout import extreme_layouts, layout_of_embedding
from .measurement import measure
from .parameters import ClassCounts, PrivacyParameters, entry_for, noise_for

_OVERHEAD: Final = 1 << 16
"""More bytes than a file takes beside its arrays and long texts."""


@dataclass(frozen=True, eq=False)
class Planned:
    """A release before its noise is drawn.

    Attributes:
        uniform: the noise on the embedding's sums, whatever its parts weigh.
        entry: the ledger's entry for it.
        total: of the ledger, including this entry.
    """

    uniform: NoiseScale
    entry: Entry
    total: Total


def release(
    embedding: Path | str,
    output: Path | str,
    parameters: PrivacyParameters,
    *,
    key: SigningKey | None = None,
    compose: Callable[[Total], bool] = lambda total: False,
    overwrite: bool = False,
) -> OpenedRelease:
    """Make a release of an embedding file, enter it into its ledger, and write the release file.

    Example::

        release("embedding.h5", "release.h5", PrivacyParameters(epsilon=1.0))

    Guarantee:
        The guarantee of `unrecorded_release`, and no release file exists without its entry. The
        entry is on the disk before the noise is drawn, so a crash can leave an entry too many,
        never one too few. Copies of the embedding file have ledgers of their own, which nothing can
        prevent.

    Args:
        embedding: the embedding's file; its ledger is rewritten.
        output: where to write the release.
        parameters: the promise of the release.
        key: signs the file; this machine's own (`own_key`) if None.
        compose: called with the total if there are earlier releases; returns whether it is
            acceptable.
        overwrite: whether a file at `output` may be replaced.

    Returns:
        The same as `open_release` reads from `output`.

    Raises:
        EmbeddingError: there is no complete embedding.
        BudgetError: the parameters do not suit the embedding, exceed the ceiling, or `compose` said
            no.
        SigningKeyError: the key cannot be used.
        OutputError: a file cannot be written, or somebody interrupted; the message says what counts
            as spent.
    """
    path = path_from("embedding", embedding, refusal=EmbeddingError)
    output = path_from("output", output, refusal=OutputError)
    require_kind(
        "parameters", parameters, PrivacyParameters, "PrivacyParameters", refusal=BudgetError
    )
    if not callable(compose):
        raise BudgetError("compose must be a function of the total, such as lambda total: True")
    require_embedding(path)
    path = followed(path)
    with locked(path):
        require_absent(output, overwrite=overwrite, cost=RELEASE_COST, begins=RELEASE_BEGINS)
        loaded = load_embedding(path)
        if is_approx_bounds(loaded.schema, loaded.feature_map):
            raise BudgetError(f"{path} is for 'dpntk bounds': it holds magnitudes alone")
        key = usable(key)
        signed_by = owner_of(key.public)
        require_room(output, _size(loaded))
        planned = enter_release(path, loaded, parameters, compose)
        try:
            made = _carry_out(loaded, parameters, planned)
            digest = write_release(made, output, key)
        except (KeyboardInterrupt, OutputError) as error:
            reason = str(error) or "interrupted"
            raise OutputError(
                f"{reason}; {path} counts the release as spent all the same"
            ) from error
    return Opened(made, digest, signed_by, output)


def _size(embedding: Embedding) -> int:
    """Size of a release in bytes, or a little more."""
    weights = embedding.feature_map.weights().values()
    numbers = embedding.sums.size * np.dtype(np.float32).itemsize + sum(w.nbytes for w in weights)
    schema, spec = embedding.schema.to_json(), embedding.feature_map.spec()
    # The statement repeats names of columns.
    texts = 2 * len(canonical_json(schema).encode()) + 2 * len(canonical_json(spec).encode())
    return numbers + texts + _OVERHEAD


def enter_release(
    path: Path,
    embedding: Embedding,
    parameters: PrivacyParameters,
    compose: Callable[[Total], bool],
) -> Planned:
    """Enter a release into the ledger of an embedding file, before anything is drawn for it.

    Args:
        path: the file, which the caller has locked; it is rewritten.
        embedding: its content.
        parameters: the promise of the release.
        compose: see `release`. Releases from other embeddings of the same data set count too, if
            the owner has declared one. Spending on the schema's bounds alone does not trigger the
            call.

    Raises:
        BudgetError: the parameters do not suit the embedding, exceed the ceiling, or `compose` said
            no.
    """
    with nobody_else_spends(embedding) as data_sets:
        spent = spent_on_records_of(embedding)
        planned = _planned(replace(embedding, ledger=spent), parameters)
        asked_for = set(spent.all_entries) - set(embedding.schema.spent)
        if asked_for and not is_accepted(compose, total := planned.total):
            elsewhere = asked_for.isdisjoint(embedding.ledger.all_entries)
            what = "another embedding of the same data set" if elsewhere else str(path)
            raise BudgetError(
                f"{what} was released before: with this release the total would be {total}; "
                f"add {argument('compose')} if that is acceptable"
            )
        ledger = embedding.ledger.with_entry(planned.entry)
        embedding = replace(embedding, ledger=ledger, data_sets=data_sets)
        with write_failures(path):
            size = path.stat().st_size
        # The file is written anew with its ledger, after the registry has counted the release.
        require_room(path, size + _OVERHEAD, elsewhere=False)
        note(embedding, path, data_sets)
        write_embedding(embedding, path)
    return planned


def _planned(embedding: Embedding, parameters: PrivacyParameters) -> Planned:
    """Plan a release that suits the embedding and the ceiling, and that readers can confirm.

    Raises:
        BudgetError: it does not, or they cannot.
    """
    scale = noise_for(embedding, parameters)
    entry = entry_for(embedding, parameters, scale)
    ledger = embedding.ledger.with_entry(entry)
    require_below_ceiling(ledger)
    total = total_of(ledger, entry.delta)
    planned = Planned(scale, entry, total)
    # Under add-remove the released number of records is not known yet: it will be noisy.
    promise = _guarantee(embedding, parameters, planned, embedding.records)
    schema = embedding.schema
    require_readable({"schema": canonical_json(schema.to_json())})
    try:
        for feature_map in _possible_maps(embedding, scale, parameters.adjacency):
            require_consistent(promise, feature_map, schema)
            statement = statement_of(promise, schema, feature_map, equal_classes=False)
            spec = canonical_json(feature_map.spec())
            require_readable({"feature map": spec, "statement": statement})
    except FormatError as error:
        raise BudgetError(
            f"{argument('epsilon', parameters.epsilon, option='--eps')} with "
            f"{argument('delta', entry.delta)}: no reader could confirm such a release, {error}: "
            "choose others"
        ) from error
    return planned


def _possible_maps(
    embedding: Embedding, scale: NoiseScale, adjacency: Adjacency
) -> Iterator[FeatureMap]:
    """The feature maps that a release may have, apart from the choice of pairs and cells.

    Guarantee:
        Under add-remove, whatever the number of records is, no part of a release is longer or
        shorter than in one of these.

    Raises:
        BudgetError: a part of one would need more noise than 64 bits hold.
    """
    if adjacency is Adjacency.REPLACE_ONE:
        fewer = with_fewer_cells(embedding, scale, embedding.records)
        yield layout_of_embedding(fewer, scale, embedding.records).feature_map
        return
    classes = len(embedding.schema.classes)
    for layout in extreme_layouts(embedding.feature_map, scale, classes):
        yield layout.feature_map


def unrecorded_release(embedding: Embedding, parameters: PrivacyParameters) -> Release:
    """Make a differentially private release of an embedding in memory, entering it nowhere.

    For tests and trials; use `release` for a release that is shared.

    Guarantee:
        The result satisfies (epsilon, delta) differential privacy under the adjacency of the
        parameters. The matrix and the class counts do so by the Gaussian mechanism
        (`gaussian.calibrate`); the class weights and, under add-remove, the number of records as
        functions of the noisy counts; everything else because it depends on nothing beyond what is
        public: the schema, the feature map and, under replace-one, the number of records. Every
        call spends the budget anew; `release` keeps account of it.

    Raises:
        BudgetError: the parameters do not suit this embedding, or exceed its ceiling.
    """
    return _carry_out(embedding, parameters, _planned(embedding, parameters))


def _carry_out(embedding: Embedding, parameters: PrivacyParameters, planned: Planned) -> Release:
    measured = measure(
        embedding, planned.uniform, parameters.adjacency, private=not parameters.not_private
    )
    noisy, records, entry = measured.noisy, measured.records, planned.entry
    feature_map, scale = measured.layout.feature_map, measured.layout.scale
    classes, unit = len(embedding.schema.classes), embedding.grid.unit
    counts = np.ones(classes) if noisy.counts is None else noisy.counts / scale.count_weight
    declared = parameters.class_counts is ClassCounts.UNIFORM
    factors = np.ones(1) if scale.factors is None else scale.factors
    weights = np.full(classes, 1 / classes) if declared else _shares(counts, records)
    guarantee = _guarantee(embedding, parameters, planned, records)
    equal = equal_by_declaration(guarantee, weights)
    return Release(
        embedding=(noisy.sums * (factors[:, None] * (unit / records))).astype(np.float32),
        class_weights=weights,
        feature_map=feature_map,
        schema=embedding.schema,
        guarantee=guarantee,
        release_id=entry.release_id,
        created=entry.created,
        dpntk_version=version("dpntk"),
        statement=statement_of(guarantee, embedding.schema, feature_map, equal_classes=equal),
    )


def _guarantee(
    embedding: Embedding, parameters: PrivacyParameters, planned: Planned, records: int
) -> EmbeddingGuarantee:
    """The figures of a release; only the number of records may depend on the noise."""
    unit, scale = embedding.grid.unit, planned.uniform
    entry, total = planned.entry, planned.total
    return EmbeddingGuarantee(
        epsilon=parameters.epsilon,
        delta=entry.delta,
        adjacency=parameters.adjacency,
        noise_multiplier=scale.noise_multiplier,
        sensitivity=scale.sensitivity * unit,
        sigma=scale.sigma * unit,
        grid=unit,
        count_weight=parameters.released_weight,
        records=records,
        mechanism=NO_MECHANISM if parameters.not_private else MECHANISM,
        accountant=f"{ACCOUNTANT}, {accountant_version()}",
        epsilon_replace_one=(
            None
            if parameters.adjacency is Adjacency.REPLACE_ONE
            else epsilon_for(entry.noise_multiplier_replace_one, entry.delta)
        ),
        total_epsilon=total.epsilon,
        total_adjacency=total.adjacency,
        total_releases=total.releases,
    )


def write_release(made: Release, path: Path, key: SigningKey | None) -> str:
    """Write a release file, and return its digest: see `write_signed`."""
    return write_signed(serialise(made), path, key, private=made.guarantee.private)


def _shares(noisy_counts: NDArray[np.float64], records: int) -> NDArray[np.float64]:
    """Turn noisy counts into positive shares; a class counts as at least one record.

    Post-processing of the noisy counts and of the released number of records.
    """
    counts = np.clip(noisy_counts, 1.0, float(records))
    shares: NDArray[np.float64] = counts / counts.sum()
    return shares
