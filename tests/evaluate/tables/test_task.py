"""What is to be predicted: the label, or any column in its place."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dpntk.common.errors import DataError, SchemaError
from dpntk.common.schema.columns.kinds import Missing
from dpntk.common.schema.table import TableSchema
from dpntk.evaluate.tables.task import task_for, with_target
from tests.helpers.rows import AGE, JOB, LABEL, SCHEMA, table


def test_the_rarer_class_is_the_positive_one_unless_another_is_named() -> None:
    test = table([1, 2, 3], [0, 0, 0], [1, 1, 0])
    assert task_for(test, None, 1.0, 100).positive == 0
    assert task_for(test, "yes", 1.0, 100).positive == 1
    with pytest.raises(SchemaError, match=r"no class 'maybe': the label has no and yes"):
        task_for(test, "maybe", 1.0, 100)
    with pytest.raises(DataError, match=r"all test records are of one class"):
        task_for(table([1], [0], [1]), None, 1.0, 100)
    with pytest.raises(DataError, match=r"no test record of the other class is left"):
        task_for(test, None, 0.4, 100)
    no_label = table([1], [0], [0], TableSchema((AGE, JOB), None))
    with pytest.raises(SchemaError, match=r"a label with two classes, but there is no label"):
        task_for(no_label, None, 0.4, 100)


def test_any_column_of_categories_can_stand_in_for_the_label() -> None:
    schema = TableSchema((AGE, replace(JOB, missing=Missing.REFUSED), LABEL), "rich")
    assert with_target(schema, "job").classes == ("a", "b", "c")
    assert with_target(schema, "age").label is None
    with pytest.raises(
        SchemaError, match=r"target='pay': there is no such column; .* age, job, rich"
    ):
        with_target(schema, "pay")
    with pytest.raises(SchemaError, match="a label cannot be missing"):
        with_target(SCHEMA, "job")
    with pytest.raises(SchemaError, match="target 'age': there is no other column"):
        with_target(TableSchema((AGE,)), "age")
