"""The privacy statement of a release in words, as NIST SP 800-226 asks for.

A statement is a list of sentences, each included or not: the unit of privacy, the adjacency, and
what is not covered.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ...common.adjacency import Adjacency
from ...common.display.text import promised, rounded_up
from ...common.features.base import FeatureMap
from ...common.features.perceptual import PerceptualFeatures
from ...common.schema import Schema
from ...common.schema.privacy_unit import PrivacyUnit
from ...common.schema.table import TableSchema
from .distilled import DistilledGuarantee
from .model import EmbeddingGuarantee, Guarantee

NOT_PRIVATE: Final = (
    "NOT PRIVATE: this was made without noise and is as sensitive as the records themselves"
)
"""The warning that every reader of a release without noise has to give."""
_ONE_RECORD: Final = (
    "The unit of privacy is one record: whoever contributed several is protected less."
)
_AND_WHAT_FOLLOWS: Final = (
    "Everything computed from this file alone is covered by the same guarantee."
)
_TRAINED: Final = (
    "The features are those of a pre-trained module; the data that it was trained on are not "
    "covered, and the owner has declared them public."
)


def equal_by_declaration(guarantee: EmbeddingGuarantee, class_weights: NDArray[np.float64]) -> bool:
    """Whether a release's class weights were declared to be equal, as far as its file shows.

    Under replace-one, class counts have a weight unless they were declared. Under add-remove they
    always have one, so equal shares count as declared: noisy shares that are equal by chance are
    then said to be public, which promises less than is kept.

    Args:
        guarantee: the release's guarantee.
        class_weights: float64 (c,).
    """
    if guarantee.adjacency is Adjacency.REPLACE_ONE:
        return not guarantee.count_weight
    return bool((class_weights == 1 / len(class_weights)).all())


def statement_of(
    guarantee: EmbeddingGuarantee,
    schema: Schema,
    feature_map: FeatureMap,
    *,
    equal_classes: bool,
) -> str:
    """The statement of an embedding's release.

    Args:
        guarantee: its guarantee.
        schema: what is taken as publicly known of the records.
        feature_map: phi; if it uses a module, the statement mentions the module's training data.
        equal_classes: whether the classes were declared equally frequent.
    """
    if not guarantee.private:
        return (
            f"{NOT_PRIVATE}. It holds exact sums, for research on data that are not sensitive; it "
            "must not be given to anybody who may not see the records."
        )
    outside = _known(schema, guarantee.adjacency)
    if equal_classes and len(schema.classes) > 1:
        outside.append("that all classes are equally frequent")
    return " ".join(
        (
            *_promise(guarantee, schema),
            _unit(schema.privacy_unit),
            _AND_WHAT_FOLLOWS,
            _not_covered(outside),
            *_looked_up(schema),
            *([_TRAINED] if isinstance(feature_map, PerceptualFeatures) else ()),
            *_spent(guarantee),
        )
    )


def distilled_statement(guarantee: DistilledGuarantee, schema: Schema) -> str:
    """The statement of a distilled set's release.

    Args:
        guarantee: its guarantee.
        schema: what is taken as publicly known of the records.
    """
    if not guarantee.private:
        return (
            f"{NOT_PRIVATE}. Its points follow the records' exact gradients, for research on data "
            "that are not sensitive; it must not be given to anybody who may not see the records."
        )
    adjacency = guarantee.adjacency
    return " ".join(
        (
            _satisfies(promised(guarantee.epsilon), guarantee.delta, change_in_words(adjacency))
            + ".",
            _ONE_RECORD,
            _AND_WHAT_FOLLOWS,
            _not_covered([*_known(schema, adjacency), "the sampling rate"]),
            *_looked_up(schema),
            *_spent(guarantee),
        )
    )


def change_between(adjacency: Adjacency, unit: PrivacyUnit | None) -> str:
    """How neighbouring data sets differ, for an embedding's release.

    Args:
        adjacency: the release's adjacency.
        unit: the unit whose records are protected together; None if each is protected by itself.
    """
    if unit is None:
        return adjacency.meaning
    return f"adding or taking away {unit.whole}; the number of rows is noisy"


def change_in_words(adjacency: Adjacency) -> str:
    """How neighbouring data sets differ, for a distilled set's release, and whether n is public."""
    if adjacency is Adjacency.REPLACE_ONE:
        return adjacency.meaning
    return "adding or taking away any one record; the number of records is not in it"


def _promise(guarantee: EmbeddingGuarantee, schema: Schema) -> list[str]:
    """The guarantee, and that under replace-one if it differs."""
    g, unit = guarantee, schema.privacy_unit
    if isinstance(schema, TableSchema) and schema.spent:
        return _promise_with_bounds(g, schema)
    sentence = f"{_satisfies(promised(g.epsilon), g.delta, change_between(g.adjacency, unit))}."
    if g.epsilon_replace_one is None:
        return [sentence]
    exchanged = rounded_up(g.epsilon_replace_one)
    return [sentence, f"For exchanging {_exchange(unit)}, epsilon is {exchanged}."]


def _promise_with_bounds(guarantee: EmbeddingGuarantee, schema: TableSchema) -> list[str]:
    """The same if an earlier release found bounds, under the adjacency of the total."""
    g, unit = guarantee, schema.privacy_unit
    of_matrix, change = promised(g.epsilon), change_between(g.total_adjacency, unit)
    other = []
    if g.epsilon_replace_one is not None:
        exchanged = rounded_up(g.epsilon_replace_one)
        other = [f"For exchanging {_exchange(unit)}, epsilon of the matrix alone is {exchanged}."]
        if g.total_adjacency is Adjacency.REPLACE_ONE:  # the earlier release's adjacency
            other = [f"For adding or taking away one record, epsilon of the matrix is {of_matrix}."]
            of_matrix = exchanged
            change = "exchanging any one record for any other; the number of records is noisy"
    bounded = ", ".join(column.name for column in schema.private_bounds)
    sentence = (
        f"{_satisfies(rounded_up(g.total_epsilon), g.delta, change)}: epsilon {of_matrix} for its "
        f"matrix, and the rest for what was released before, the bounds of {bounded} among it, "
        "which were found in the records with differential privacy."
    )
    return [sentence, *other]


def _exchange(unit: PrivacyUnit | None) -> str:
    return "one record for another" if unit is None else f"{unit.whole} for those of another"


def _unit(unit: PrivacyUnit | None) -> str:
    """Who is protected, and who is protected less."""
    if unit is None:
        return _ONE_RECORD
    return (
        f"The unit of privacy is {unit.whole}: {unit.bounded}, and the noise hides all of these "
        "together. Whoever has rows under several of its values is protected less."
    )


def _satisfies(epsilon: str, delta: float, change: str) -> str:
    return f"This file satisfies ({epsilon}, {promised(delta)}) differential privacy for {change}"


def _known(schema: Schema, adjacency: Adjacency) -> list[str]:
    """What is taken as publicly known of the records."""
    known = [f"the {fact}" for fact in schema.known]
    return ["the number of records", *known] if adjacency is Adjacency.REPLACE_ONE else known


def _not_covered(outside: Sequence[str]) -> str:
    return (
        f"Not covered, and treated as public: {', '.join(outside)}, and every choice of options "
        "made by looking at the records."
    )


def _looked_up(schema: Schema) -> list[str]:
    """What was looked up in the records themselves."""
    if not schema.from_data:
        return []
    return [f"Looked up in the records: {' and '.join(schema.from_data)}."]


def _spent(guarantee: Guarantee) -> list[str]:
    """The joint epsilon of this and earlier releases (docs/privacy/proofs.md, statement 11)."""
    before = (
        "The owner's ledger knows of no earlier release from these records."
        if guarantee.total_releases == 1
        else f"This is release number {guarantee.total_releases} from these records; together they "
        f"have epsilon {rounded_up(guarantee.total_epsilon)} at delta {promised(guarantee.delta)} "
        f"({guarantee.total_adjacency.value}), if how many there are and what each may spend was "
        "fixed beforehand."
    )
    return [before, "Every further one adds to the privacy loss."]
