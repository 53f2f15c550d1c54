"""From synthetic and real records of any kind to figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from types import NoneType
from typing import Any, Generic, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from ..common.arguments import MOST_SEED, Location, argument, path_from, require_kind, whole_number
from ..common.display.console import notice, warning
from ..common.display.representations import RedactedRepr
from ..common.errors import DataError, ModuleError, SchemaError
from ..common.schema.drafts.toml import A_SCHEMA
from ..common.schema.table import TableSchema
from ..common.sources.tables.frames import Frame
from ..release.file.citation import is_private
from ..release.file.statement import NOT_PRIVATE
from ..release.signing.policy import TRUSTED, Acceptance
from .given import Arrays, Records, are_arrays, images_in, name_of, records_given, table_in
from .images.classifiers import CLASSIFIERS, IN_COLOUR, LINEAR_DESCRIPTION
from .images.distilled import classifiers_of
from .images.frechet import FeatureMetric
from .images.records import LabelFiles, LabelledImages, read_real, read_synthetic
from .images.report import ImageEvaluation
from .images.utility import LINEAR, measure
from .provenance import confirmed, heading_of
from .report import REAL, Evaluation
from .tables.attacks import Attackers
from .tables.baselines import INDEPENDENT, independent_columns
from .tables.options import TableOptions
from .tables.points import regression_rows
from .tables.report import TableEvaluation
from .tables.table import (
    Table,
    is_table,
    read_real_table,
    read_synthetic_table,
)
from .tables.task import task_for, with_target
from .tables.utility import evaluate_tables

AnyRecords = TypeVar("AnyRecords", LabelledImages, Table)
Place = TypeVar("Place", Path | Arrays, Path | Frame)
"""Where images are, or tables."""


@dataclass(frozen=True, eq=False, repr=False)
class _Request(RedactedRepr, Generic[Place]):
    """What is asked for alike of images and of tables.

    Attributes:
        synthetic: the records to evaluate; several tables, or one set of images.
        test: real records to test on.
        baseline: real records to train on, for comparison, if any.
        release: where the synthetic ones claim to come from, if that is to be checked.
        acceptance: whose releases to open.
        seed: of the classifiers.
    """

    synthetic: Sequence[Place]
    test: Place
    baseline: Place | None
    release: Path | None
    acceptance: Acceptance
    seed: int


def evaluate(
    synthetic: Frame | Arrays | Location | Sequence[Frame | Location],
    *,
    test: Frame | Arrays | Location,
    baseline: Frame | Arrays | Location | None = None,
    tables: TableOptions | None = None,
    release: Location | None = None,
    acceptance: Acceptance = TRUSTED,
    seed: int = 0,
    metric_module: Location | None = None,
    test_labels: Location | None = None,
    baseline_labels: Location | None = None,
    label_columns: tuple[str, str] | None = None,
) -> Evaluation:
    """Train classifiers on synthetic records and test them on real ones.

    Tables are also compared with the test records column by column. For distilled sets, kernel
    regression with their own kernel is measured, too. Records may be in memory: tables as
    DataFrames of pandas or Polars or as Arrow tables, where synthetic ones need `tables.schema`;
    images as pairs of arrays, as `dpntk.embed.embed` takes them.

    Example::

        evaluation = evaluate("synthetic", test="test.csv", baseline="train.csv")
        print(evaluation)
        evaluation = evaluate("synthetic-digits", test=(images, labels))

    Args:
        synthetic: a folder that `dpntk generate` wrote, or a file of such records. Several tables
            of one kind give means and standard deviations.
        test: real records that were not embedded; their test part, if they have one.
        baseline: real records to train on, for comparison; their train part, if they have one.
        tables: for tables: the schema, and what is measured.
        release: the release that the records claim to come from; their claims are checked.
        acceptance: whose releases to open; by default those of trusted signers.
        seed: seed of the classifiers.
        metric_module: for images: a TorchScript archive, as for `PerceptualOptions`. Frechet
            distance to the test records, precision and recall are measured in its features, and a
            linear classifier is trained on them. Without a module, images without labels are
            compared in pixels.
        test_labels: for images in a folder: the CSV file with the labels of `test`.
        baseline_labels: the CSV file with the labels of `baseline`.
        label_columns: names of the columns of files and labels in both; detected if None.

    Returns:
        The figures, computed from real records without noise.

    Raises:
        DataError: records cannot be read, or nothing can be learnt from them.
        SchemaError: records do not match each other, or options do not apply to them.
        ModuleError: the module cannot be used.
        ReleaseError: the release cannot be accepted.
    """
    folders = [records_given("synthetic", one) for one in _each(synthetic)]
    if not folders:
        raise DataError("synthetic: there are no records to evaluate")
    held_out = records_given("test", test)
    real = None if baseline is None else records_given("baseline", baseline)
    source = None if release is None else path_from("release", release, refusal=DataError)
    module = None
    if metric_module is not None:
        module = path_from("metric_module", metric_module, refusal=ModuleError)
    seed = whole_number("seed", seed, most=MOST_SEED, refusal=DataError)
    options = (TableOptions, NoneType)
    require_kind("tables", tables, options, "TableOptions", refusal=SchemaError)
    if not are_tables(folders, tables):
        folder, *more = map(images_in, folders)
        of_test, of_baseline = images_in(held_out), None if real is None else images_in(real)
        if tables is not None:
            raise SchemaError(f"{name_of(folder)}: of images, for which there are no table options")
        if more:
            raise DataError("several folders are for tables: evaluate images one by one")
        labels = LabelFiles.of(test_labels, baseline_labels, label_columns)
        images = _Request((folder,), of_test, of_baseline, source, acceptance, seed)
        return _of_images(images, module, labels)
    if any(given is not None for given in (test_labels, baseline_labels, label_columns)):
        raise SchemaError("labels in a CSV file are for images: a table has a column of them")
    if module is not None:
        raise ModuleError(f"{argument('metric_module', module)}: it is for images")
    request = _Request(
        list(map(table_in, folders)),
        table_in(held_out),
        None if real is None else table_in(real),
        source,
        acceptance,
        seed,
    )
    return _of_tables(request, tables or TableOptions())


def _each(
    synthetic: Frame | Arrays | Location | Sequence[Frame | Location],
) -> Sequence[Frame | Arrays | Location]:
    if are_arrays(synthetic):
        return [synthetic]
    if isinstance(synthetic, str) or not isinstance(synthetic, Sequence):
        return [synthetic]
    return cast(Sequence[Frame | Location], synthetic)


def are_tables(folders: Sequence[Records], tables: TableOptions | None) -> bool:
    """Whether synthetic records are tables: they look like it, or a schema is given."""
    return (tables is not None and tables.schema is not None) or is_table(folders[0])


def _of_tables(request: _Request[Path | Frame], options: TableOptions) -> TableEvaluation:
    seed = request.seed
    tables = _synthetic_tables(request, options)
    training_sets: dict[str, list[Table]] = {}
    for table in tables:
        training_sets.setdefault(heading_of(table.provenance), []).append(table)
    kinds = len(training_sets)
    known = tables[0].schema
    held_out = read_real_table(request.test, "test", known)
    task = task_for(
        held_out,
        options.positive,
        options.keep_negatives,
        options.train_records,
        options.target,
    )
    task = replace(task, published=options.published)
    if not task.measures:
        names = f"{argument('target')} names a column to predict"
        notice(f"without a label nothing is predicted: {names}")
    if request.baseline is not None:
        real = read_real_table(request.baseline, "train", known)
        _note_if_one(real.columns, held_out.columns)
        training_sets[REAL] = [real]
    attackers = None
    if options.members is not None:
        members = table_in(records_given("members", options.members))
        attackers = Attackers.with_rows(read_real_table(members, "train", known), held_out, seed)
    # Made from the real rows if there are any: shows what one-way marginals alone are worth.
    name, (*_, last) = list(training_sets.items())[-1]
    training_sets[f"{INDEPENDENT} {name}"] = [independent_columns(last, seed)]
    # This is quick and comes first: damaged points are found before any long training.
    own_label = options.target is None  # distilled points are made for it
    by_kernel = (
        regression_rows(request.synthetic, tables, held_out, task, seed) if own_label else []
    )
    rows = evaluate_tables(training_sets, held_out, task, seed, attackers)
    rows[kinds:kinds] = by_kernel
    provenance = tuple(table.provenance for table in tables)
    return TableEvaluation(tuple(rows), len(held_out), task, seed, provenance)


def _note_if_one(baseline: Mapping[str, NDArray[Any]], test: Mapping[str, NDArray[Any]]) -> None:
    """Say so if real records are tested on themselves, which nothing synthetic can compare with."""
    if all(np.array_equal(values, test[name], equal_nan=True) for name, values in baseline.items()):
        notice(
            f"{argument('baseline')} and {argument('test')} hold the same records: what is trained "
            "on real ones is tested on them as well, so it scores higher than it could elsewhere"
        )


def _synthetic_tables(request: _Request[Path | Frame], options: TableOptions) -> list[Table]:
    """Read tables under one schema, in which the target is the label if possible."""
    schema = options.schema
    either = (TableSchema, str, PathLike, NoneType)
    require_kind("schema", schema, either, A_SCHEMA, refusal=SchemaError)
    if not isinstance(schema, TableSchema | None):
        schema = path_from("schema", schema, refusal=SchemaError)
    tables = [
        _with_known_origin(path, read_synthetic_table(path, schema), request)
        for path in request.synthetic
    ]
    if options.target is not None:
        tables = [replace(one, schema=with_target(one.schema, options.target)) for one in tables]
    first = request.synthetic[0]
    for path, table in zip(request.synthetic, tables, strict=True):
        if table.schema != tables[0].schema:
            raise SchemaError(f"{name_of(path)}: its schema is not that of {name_of(first)}")
    return tables


def _of_images(
    request: _Request[Path | Arrays], module: Path | None, labels: LabelFiles
) -> ImageEvaluation:
    (folder,) = request.synthetic
    records = _with_known_origin(folder, read_synthetic(folder), request)
    held_out = read_real(request.test, "test", records, labels.test, labels.columns)
    training_sets = {heading_of(records.provenance): records}
    if request.baseline is not None:
        real = read_real(request.baseline, "train", records, labels.baseline, labels.columns)
        _note_if_one({"pixels": real.pixels}, {"pixels": held_out.pixels})
        training_sets[REAL] = real
    metric = None
    if module is not None:
        metric = FeatureMetric.of_module(module, records.shape)
    elif records.classes == 1:
        metric = FeatureMetric.of_pixels(records.shape)
    if records.classes == 1:
        notice("all records are of one class, so there is nothing to classify")
    further = classifiers_of(folder, records)
    rows = measure(training_sets, held_out, request.seed, further, metric)
    known = {**CLASSIFIERS, **IN_COLOUR, **further}
    said = {
        name: LINEAR_DESCRIPTION if name == LINEAR else known[name].description
        for name in rows[0].accuracy
    }
    by_chance = None
    if records.classes > 1:
        by_chance = float(np.bincount(held_out.labels).max() / len(held_out))
    return ImageEvaluation(
        tuple(rows), len(held_out), request.seed, said, records.provenance, metric, by_chance
    )


def _with_known_origin(path: Records, records: AnyRecords, request: _Request[Place]) -> AnyRecords:
    """Put the release's own figures into the provenance of records, if a release is given."""
    if request.release is not None:
        known = confirmed(
            request.release, request.acceptance, records.provenance, records.class_names
        )
        records = replace(records, provenance=known)
    if is_private(records.provenance) is False:
        warning(f"{name_of(path)} is {NOT_PRIVATE}")
    return records
