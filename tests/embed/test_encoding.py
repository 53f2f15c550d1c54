"""Ordered categories are measured among the numbers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dpntk import Synthesizer
from dpntk.common.features.joint import parts_of
from dpntk.common.schema.privacy_unit import PrivacyUnit
from dpntk.common.schema.table import TableSchema
from dpntk.common.sources import encoded_by
from dpntk.embed import Column, SourceOptions, TangentOptions, embed, open_source
from dpntk.embed.feature_options.base import FeatureOptions
from dpntk.embed.feature_options.fourier import FourierOptions
from dpntk.embed.sums.file import Embedding
from dpntk.generate import TableSettings

ROWS = 4_000
SCHEMA = TableSchema(
    (
        Column.integer("age", 18, 95),
        Column.categorical("pain", ["none", "some", "strong"], ordered=True),
        Column.boolean("smokes", ["no", "yes"], missing=True),
        Column.categorical("town", ["A", "B", "C"]),
    )
)


def patients() -> pd.DataFrame:
    """Rows of which age, pain and smoking go together."""
    random = np.random.default_rng(3)
    ill = random.normal(size=ROWS)
    pain = np.digitize(ill + random.normal(size=ROWS) / 2, [-0.5, 0.7])
    smokes = np.where(ill + random.normal(size=ROWS) > 0.4, "yes", "no").astype(object)
    smokes[random.random(ROWS) < 0.05] = None
    return pd.DataFrame(
        {
            "age": np.clip(55 + 12 * ill + 5 * random.normal(size=ROWS), 18, 95).astype(int),
            "pain": np.array(["none", "some", "strong"])[pain],
            "smokes": smokes,
            "town": random.choice(list("ABC"), size=ROWS),
        }
    )


def embedded(features: FeatureOptions | None, schema: TableSchema = SCHEMA) -> Embedding:
    return embed(patients(), features, SourceOptions(schema=schema))


def test_all_pairs_of_numbers_include_ordered_categories() -> None:
    marginals = parts_of(embedded(None).feature_map).marginals
    assert marginals is not None
    pairs = marginals.names_of_groups(SCHEMA.with_ranks())
    numbers = [pairs[number] for number in marginals.pairs_of_numbers]
    assert numbers == [("age", "pain"), ("age", "smokes"), ("pain", "smokes")]
    # Whoever names a pair still gets these.
    named = parts_of(embedded(TangentOptions(pairs=["town,age"])).feature_map).marginals
    assert named is not None
    assert named.names_of_groups(SCHEMA.with_ranks()) == [*numbers[:2], ("age", "town"), numbers[2]]


@pytest.mark.parametrize(
    ("features", "schema"),
    [
        (None, replace(SCHEMA, columns=SCHEMA.columns[1:], label="town", left_out=("age",))),
        (TangentOptions(pairs=["all"]), SCHEMA),
        (TangentOptions(marginals=0), SCHEMA),
        (TangentOptions(moments=0), SCHEMA),
        (FourierOptions(frequencies=10), SCHEMA),
    ],
)
def test_where_a_release_measures_no_pairs_of_numbers_categories_stay_categories(
    features: FeatureOptions | None, schema: TableSchema
) -> None:
    assert embedded(features, schema).schema == schema


def test_files_rows_in_memory_and_several_rows_of_a_person_are_encoded_alike(
    tmp_path: Path,
) -> None:
    patients().to_csv(tmp_path / "patients.csv", index=False)
    source = open_source(tmp_path / "patients.csv", SourceOptions(schema=SCHEMA))
    from_file, in_memory = embed(source), embedded(None)
    assert from_file.schema == in_memory.schema == SCHEMA.with_ranks()
    assert np.array_equal(from_file.sums, in_memory.sums)
    # A pass that goes on with other features is told that these have changed, not the data.
    assert encoded_by(source, in_memory.schema).fingerprint() == source.fingerprint()
    per_person = replace(SCHEMA, left_out=("person",), privacy_unit=PrivacyUnit("person", 1))
    persons = patients().assign(person=np.arange(ROWS))
    of_persons = embed(persons, source=SourceOptions(schema=per_person), capacity=1 << 13)
    assert of_persons.schema == per_person.with_ranks()


def test_what_goes_together_comes_back_as_categories(tmp_path: Path) -> None:
    model = Synthesizer(
        epsilon=1.0, schema=SCHEMA, folder=tmp_path / "model", settings=TableSettings(seed=0)
    )
    made = model.fit(patients()).sample(ROWS)
    assert made.pain.isin(["none", "some", "strong"]).all()
    assert made.smokes.isna().mean() == pytest.approx(0.05, abs=0.03)
    ranks = [
        rows.assign(
            pain=rows.pain.map({"none": 0, "some": 1, "strong": 2}),
            smokes=rows.smokes.map({"no": 0, "yes": 1}),
        )[["age", "pain", "smokes"]].corr("spearman")
        for rows in (patients(), made)
    ]
    assert (ranks[0] - ranks[1]).abs().to_numpy().max() < 0.12
