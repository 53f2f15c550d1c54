"""Table 5 of the paper, row by row, and which of its rows a feature map is of."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dpntk.common.features.ntk.presets import PRESETS, presets_of, shape_of
from dpntk.common.schema.image import ImageSchema
from dpntk.common.schema.origin import Origin
from dpntk.embed import Column, HermiteOptions, TableSchema, TangentOptions

TABLE_5 = """
    mnist               2000   5   800       5000  fc_1l
    fashion-mnist       2000   5   800       5000  fc_1l
    celeba              20000  141 3000_200  1000  fc_2l
    cifar-10            40000  201 3000_200  1000  fc_2l
    cifar-10-no-noise   20000  31  800_1000  200   fc_2l
    adult               50     11  30_200    200   cnn_2l
    census              2000   21  30_20     200   cnn_2l
    cervical            500    11  800_1000  200   cnn_2l
    credit              500    11  1500      200   fc_1l
    epileptic           2000   101 50_20     200   cnn_2l
    isolet              1000   21  10_20     200   cnn_2l
    covtype             1000   101 100_20    200   cnn_2l
    intrusion           1000   21  30_1000   200   fc_2l
"""
DIGITS = ImageSchema(28, tuple("0123456789"), Origin.FORMAT, Origin.DECLARED)


def test_every_row_is_as_printed() -> None:
    printed = [line.split() for line in TABLE_5.split("\n") if line.strip()]
    ours = [
        [name, *map(str, (row.steps, row.code, row.width, row.batch)), row.printed]
        for name, row in PRESETS.items()
    ]
    assert ours == printed


def test_a_map_is_of_the_rows_with_its_network_and_its_shape() -> None:
    made = TangentOptions(preset="fashion-mnist").draw(DIGITS)
    assert presets_of(made, DIGITS) == ("mnist", "fashion-mnist")
    assert presets_of(made, replace(DIGITS, classes=("a", "b"))) == ()
    for other in (
        TangentOptions(width="800"),  # behind a front
        TangentOptions(width="801", front="pixels"),
        TangentOptions(width="800", front="pixels", activation="relu6"),
        TangentOptions(preset="mnist", pixels=0.5),
        HermiteOptions(),
    ):
        assert presets_of(other.draw(DIGITS), DIGITS) == ()
    by_hand = TangentOptions(arch="fc_1l_norm", width=800, front="pixels", seed=3)
    assert presets_of(by_hand.draw(DIGITS), DIGITS) == ("mnist", "fashion-mnist")
    without = TangentOptions(arch="fc_1l", width=800, front="pixels")  # no layer norm
    assert presets_of(without.draw(DIGITS), DIGITS) == ()


@pytest.mark.parametrize("name", ["adult", "credit", "isolet", "covtype"])
def test_tables_of_a_row_have_its_network_alone(name: str) -> None:
    shape = PRESETS[name].shape
    columns = [Column.integer(f"n{k}", 0, 3) for k in range(getattr(shape, "columns", 0))]
    labels = tuple("abcdefg"[: shape.classes])
    schema = TableSchema((*columns, Column.categorical("label", labels)), "label")
    assert shape_of(schema) == shape
    made = TangentOptions(preset=name).draw(schema)
    assert presets_of(made, schema) == (name,)
    with_marginals = TangentOptions(preset=name, marginals=0.4).draw(schema)
    assert presets_of(with_marginals, schema) == ()
