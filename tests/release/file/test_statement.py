"""The promise in words: every sentence that has to be there, and none besides."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from dpntk.common.adjacency import Adjacency
from dpntk.common.features.base import FeatureMap
from dpntk.common.features.perceptual import PerceptualFeatures
from dpntk.common.ledger import Entry
from dpntk.common.schema import Schema
from dpntk.common.schema.columns.column import Column
from dpntk.common.schema.columns.kinds import ColumnKind
from dpntk.common.schema.image import ImageSchema
from dpntk.common.schema.origin import Origin
from dpntk.common.schema.table import TableSchema
from dpntk.embed import Embedding
from dpntk.release.file.distilled import DistilledGuarantee
from dpntk.release.file.model import EmbeddingGuarantee
from dpntk.release.file.statement import distilled_statement, statement_of

FIRST = EmbeddingGuarantee(
    epsilon=1.0, delta=1e-5, adjacency=Adjacency.REPLACE_ONE, noise_multiplier=3.7, sigma=5.3,
    grid=2.0**-40, mechanism="m", accountant="a", total_epsilon=1.0, total_releases=1,
    sensitivity=1.4, count_weight=0.25, records=1000, epsilon_replace_one=None,
    total_adjacency=Adjacency.REPLACE_ONE,
)  # fmt: skip
ADDING = replace(
    FIRST, adjacency=Adjacency.ADD_REMOVE, total_adjacency=Adjacency.ADD_REMOVE,
    epsilon_replace_one=1.98765, total_epsilon=2.34567, total_releases=3,
)  # fmt: skip
IMAGES = ImageSchema(8, ("a", "b"), Origin.FORMAT, Origin.DECLARED)
SEEN = ImageSchema(8, ("a", "b"), Origin.FROM_DATA, Origin.FROM_DATA)
PRIVATE = TableSchema(
    (
        Column("age", ColumnKind.INTEGER, "int64", 0, 99, origin=Origin.PRIVATE),
        Column("ill", ColumnKind.BOOLEAN, "string", categories=("no", "yes")),
    ),
    "ill",
    spent=(Entry("0" * 32, "2024-01-01", 0.1, 1e-5, Adjacency.ADD_REMOVE, 4.0, 2.0),),
)
UNIT = (
    " The unit of privacy is one record: whoever contributed several is protected less. Everything "
    "computed from this file alone is covered by the same guarantee. Not covered, and treated as "
    "public: "
)
OPTIONS = ", and every choice of options made by looking at the records."
MODULE = PerceptualFeatures("a" * 64, (1, 8, 8), 255, np.zeros(3, np.float32))
STATEMENTS: list[tuple[EmbeddingGuarantee, Schema, bool, bool, str]] = [
    (
        FIRST, IMAGES, False, False,
        "This file satisfies (1, 1e-05) differential privacy for exchanging any one record for any "
        f"other; the number of records is public.{UNIT}the number of records, the image size, the "
        f"number and names of the classes{OPTIONS} The owner's ledger knows of no earlier release "
        "from these records. Every further one adds to the privacy loss.",
    ),
    (
        ADDING, SEEN, True, True,
        "This file satisfies (1, 1e-05) differential privacy for adding or taking away any one "
        "record; the number of records is noisy. For exchanging one record for another, epsilon "
        f"is 1.988.{UNIT}the image size, the number and names of the classes, that all classes "
        f"are equally frequent{OPTIONS} Looked up in the records: image size and number and names "
        "of the classes. The features are those of a pre-trained module; the data that it was "
        "trained on are not covered, and the owner has declared them public. This is release "
        "number 3 from these records; together they have epsilon 2.346 at delta 1e-05 "
        "(add-remove), if how many there are and what each may spend was fixed beforehand. Every "
        "further one adds to the privacy loss.",
    ),
    (
        ADDING, PRIVATE, False, False,
        "This file satisfies (2.346, 1e-05) differential privacy for adding or taking away any one "
        "record; the number of records is noisy: epsilon 1 for its matrix, and the rest for what "
        "was released before, the bounds of age among it, which were found in the records with "
        "differential privacy. For exchanging one record for another, epsilon of the matrix alone "
        f"is 1.988.{UNIT}the names, kinds, types, scales, steps, formats, bounds and categories of "
        f"the columns (but for the bounds of age), and which of them may lack values{OPTIONS} This "
        "is release number 3 from these records; together they have epsilon 2.346 at delta 1e-05 "
        "(add-remove), if how many there are and what each may spend was fixed beforehand. Every "
        "further one adds to the privacy loss.",
    ),
    (
        replace(ADDING, total_adjacency=Adjacency.REPLACE_ONE, total_epsilon=3.45678),
        PRIVATE, False, False,
        "This file satisfies (3.457, 1e-05) differential privacy for exchanging any one record for "
        "any other; the number of records is noisy: epsilon 1.988 for its matrix, and the rest for "
        "what was released before, the bounds of age among it, which were found in the records "
        "with differential privacy. For adding or taking away one record, epsilon of the matrix "
        f"is 1.{UNIT}the names, kinds, types, scales, steps, formats, bounds and categories of "
        f"the columns (but for the bounds of age), and which of them may lack values{OPTIONS} This "
        "is release number 3 from these records; together they have epsilon 3.457 at delta 1e-05 "
        "(replace-one), if how many there are and what each may spend was fixed beforehand. Every "
        "further one adds to the privacy loss.",
    ),
    (
        replace(FIRST, epsilon=math.inf), SEEN, True, True,
        "NOT PRIVATE: this was made without noise and is as sensitive as the records themselves. "
        "It holds exact sums, for research on data that are not sensitive; it must not be given "
        "to anybody who may not see the records.",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("guarantee", "schema", "trained", "equal", "statement"), STATEMENTS)
def test_a_release_says_what_it_promises_and_nothing_besides(
    embedding: Embedding,
    guarantee: EmbeddingGuarantee,
    schema: Schema,
    trained: bool,
    equal: bool,
    statement: str,
) -> None:
    feature_map: FeatureMap = MODULE if trained else embedding.feature_map
    assert statement_of(guarantee, schema, feature_map, equal_classes=equal) == statement


def test_a_distilled_set_without_noise_promises_nothing() -> None:
    guarantee = DistilledGuarantee(
        epsilon=math.inf, delta=1e-5, adjacency=Adjacency.ADD_REMOVE, noise_multiplier=0.0,
        sigma=0.0, grid=0.0, mechanism="m", accountant="a", total_epsilon=math.inf,
        total_adjacency=Adjacency.ADD_REMOVE, total_releases=1, sampling_prob=0.1, steps=10,
        clip_norm=math.inf,
    )  # fmt: skip
    assert distilled_statement(guarantee, SEEN) == (
        "NOT PRIVATE: this was made without noise and is as sensitive as the records themselves. "
        "Its points follow the records' exact gradients, for research on data that are not "
        "sensitive; it must not be given to anybody who may not see the records."
    )


def test_one_class_is_not_said_to_be_as_frequent_as_others(embedding: Embedding) -> None:
    alone = replace(IMAGES, classes=("a",))
    said = statement_of(FIRST, alone, embedding.feature_map, equal_classes=True)
    assert "equally frequent" not in said


@pytest.mark.parametrize(
    ("adjacency", "change", "outside"),
    [
        (
            Adjacency.ADD_REMOVE,
            "adding or taking away any one record; the number of records is not in it",
            "the image size",
        ),
        (
            Adjacency.REPLACE_ONE,
            "exchanging any one record for any other; the number of records is public",
            "the number of records, the image size",
        ),
    ],
)
def test_a_distilled_set_says_what_it_promises_and_nothing_besides(
    adjacency: Adjacency, change: str, outside: str
) -> None:
    guarantee = DistilledGuarantee(
        epsilon=1.23456789, delta=1e-5, adjacency=adjacency, noise_multiplier=2.0, sigma=1.0,
        grid=2.0**-40, mechanism="m", accountant="a", total_epsilon=1.23456789,
        total_adjacency=adjacency, total_releases=1,
        sampling_prob=0.1, steps=10, clip_norm=0.5,
    )  # fmt: skip
    assert distilled_statement(guarantee, SEEN) == (
        f"This file satisfies (1.23457, 1e-05) differential privacy for {change}.{UNIT}{outside}, "
        f"the number and names of the classes, the sampling rate{OPTIONS} Looked up in the "
        "records: image size and number and names of the classes. The owner's ledger knows of no "
        "earlier release from these records. Every further one adds to the privacy loss."
    )
