"""What `dpntk plan` does, once its command line is understood."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import click

from ...common.adjacency import Adjacency
from ...common.cli.default_paths import EMBEDDING
from ...common.display.console import TextTable, out, show, show_json
from ...common.display.text import counted, promised
from ...common.features.approx_bounds import approx_bounds_map, is_approx_bounds
from ...common.features.base import FeatureMap
from ...common.features.joint import JointFeatures
from ...common.features.joint_image import JointImageFeatures
from ...common.features.marginals.map import MarginalFeatures
from ...common.features.pixels import PixelFeatures
from ...common.ledger import Ledger
from ...common.schema import Schema
from ...common.schema.classes import numbered
from ...common.schema.drafts.toml import read_draft
from ...common.schema.image import COLOUR, GREY, ImageSchema
from ...common.schema.origin import Origin
from ...common.schema.privacy_unit import PrivacyUnit, declared_unit
from ...embed.commands.feature_options import OF_THE_MAP, MakeOptions
from ...embed.exact.grid import DEFAULT_CAPACITY, Grid
from ...embed.feature_options.base import FeatureOptions
from ...embed.sums.data_sets import spent_on_records_of
from ...embed.sums.file import Embedding, load_embedding
from ..file.model import INDISTINCT
from ..mechanism.composition import total_of
from ..publishing.parameters import ClassCounts, PrivacyParameters
from ..publishing.plan import Plan, plan
from ..publishing.private_bounds import rows_to_exceed_noise
from .ceiling import ceiling_figures, ceiling_remark, loss_figures
from .forecast import forecast_document, forecasts_around, show_forecast

_OF_THE_EMBEDDING: Final = (
    "classes", "image_size", "colour", "schema", "unit", "rows_per_unit", *OF_THE_MAP,
)  # fmt: skip


def run(
    context: click.Context,
    *,
    embedding: Path | None,
    records: int | None,
    classes: int | None,
    epsilon: float,
    delta: float | None,
    adjacency: Adjacency,
    class_counts: str,
    count_weight: float,
    features: MakeOptions,
    image_size: int | None,
    colour: bool,
    schema: Path | None,
    unit: str | None,
    rows_per_unit: int | None,
    as_json: bool,
) -> None:
    """Plan a release; arguments are the command's options."""
    if embedding is None and classes is None and schema is None and Path(EMBEDDING).exists():
        embedding = Path(EMBEDDING)
    parameters = PrivacyParameters(
        epsilon, delta, adjacency, ClassCounts(class_counts), count_weight
    )
    ledger = None
    if embedding is not None:
        _refuse_feature_options(context)
        loaded = load_embedding(embedding)
        ledger = spent_on_records_of(loaded)
        number = _public_number(loaded, parameters, records)
        known, feature_map, grid = loaded.schema, loaded.feature_map, loaded.grid
    else:
        protected = declared_unit(unit, rows_per_unit)
        known, feature_map = _known(
            schema, classes, image_size, protected, features(), colour=colour
        )
        if records is None:
            raise click.UsageError("give an EMBEDDING, or --records and --classes (or --schema)")
        number = records
        grid = Grid.for_capacity(known.levels, max(records, DEFAULT_CAPACITY))
    if for_bounds := is_approx_bounds(known, feature_map):
        parameters = replace(parameters, class_counts=ClassCounts.UNIFORM)  # as `dpntk bounds` does
    planned = plan(feature_map, grid, len(known.classes), number, parameters, known.privacy_unit)
    expected = forecasts_around(planned, known, feature_map, grid)
    if as_json:
        spent = None if ledger is None else _budget(ledger, planned)
        told = forecast_document(expected)
        show_json({**_document(planned, known), "budget": spent, "forecast": told})
        return
    _show(planned, known)
    if for_bounds:
        out.print(_where_bounds_are_found(planned, feature_map))
    else:
        _say_what_noise_hides(planned)
    if expected is not None:
        show_forecast(expected, epsilon)
    if ledger is not None:
        _show_budget(ledger, planned)


def _known(
    path: Path | None,
    classes: int | None,
    image_size: int | None,
    unit: PrivacyUnit | None,
    features: FeatureOptions,
    *,
    colour: bool,
) -> tuple[Schema, FeatureMap]:
    """What is publicly known of the records, and the feature map that would embed them.

    A draft will do, because nothing of it is released. If the schema has bounds still to be found,
    the map is the one that finds them.
    """
    if path is None:
        if unit is not None:
            raise click.UsageError("--unit is for tables: say with --schema what is known of one")
        if classes is None:
            raise click.UsageError("give an EMBEDDING, or --records and --classes (or --schema)")
        channels = COLOUR if colour else GREY
        images = ImageSchema(
            image_size or 28, numbered(classes), Origin.DECLARED, Origin.DECLARED, channels
        )
        return images, features.draw(images)
    of_images = {"--classes": classes, "--image-size": image_size, "--colour": colour or None}
    for option, value in of_images.items():
        if value is not None:
            raise click.UsageError(f"{option} is for images: the schema says what a table is")
    draft = read_draft(path)
    draft = draft if unit is None else draft.with_privacy_unit(unit)
    if draft.private:
        features.refuse_all('the schema has bounds = "private": these are found first, without it')
        magnitudes = draft.approx_bounds_schema(str(path), accept_from_data=True)
        return magnitudes, approx_bounds_map(magnitudes)
    table = draft.settled(str(path), accept_from_data=True)
    encoded = features.encoding(table)
    return encoded, features.draw(encoded)


def _refuse_feature_options(context: click.Context) -> None:
    for parameter in context.command.params:
        if parameter.name not in _OF_THE_EMBEDDING:
            continue
        if context.get_parameter_source(parameter.name) is click.core.ParameterSource.COMMANDLINE:
            raise click.UsageError(f"{parameter.opts[0]} is the embedding's own: leave it out")


def _public_number(embedding: Embedding, parameters: PrivacyParameters, said: int | None) -> int:
    """The number of records, as far as it is public."""
    if said is not None:
        return said
    if parameters.adjacency is Adjacency.ADD_REMOVE:
        raise click.UsageError(
            "under add-remove the number of records is protected: say with --records what you "
            "would say of it in public"
        )
    return embedding.records


def _document(planned: Plan, schema: Schema) -> dict[str, Any]:
    """The figures of a plan, for programs."""
    parameters = planned.parameters
    return {
        "epsilon": parameters.epsilon,
        "delta": planned.delta,
        "adjacency": parameters.adjacency.value,
        "class_counts": parameters.class_counts.value,
        "records": planned.records,
        "classes": planned.classes,
        "features": _features(planned.feature_map, schema),
        "dimension": planned.dimension,
        "noise_multiplier": planned.noise_multiplier,
        "sensitivity": planned.sensitivity,
        "sigma": planned.sigma,
        "privacy_unit": None if planned.unit is None else planned.unit.to_json(),
        "noise_per_coordinate": planned.noise_per_coordinate,
        "noise_norm": planned.noise_norm,
        "signal_bound": planned.signal_bound,
        "loss_floor": planned.loss_floor,
        "blur": planned.blur,
    }


def _budget(ledger: Ledger, planned: Plan) -> dict[str, Any]:
    """The privacy loss so far, for programs."""
    total = total_of(ledger, planned.delta)
    return {"releases": total.releases, **loss_figures(total), **ceiling_figures(ledger)}


def _show(planned: Plan, schema: Schema) -> None:
    parameters = planned.parameters
    table = TextTable(
        f"epsilon {promised(parameters.epsilon)}, delta {promised(planned.delta)}, "
        f"{parameters.adjacency.value}, {planned.records:,} records, "
        f"{counted(planned.classes, 'class', 'classes')}",
        header=False,
    )
    table.add_column(wrap=False)
    table.add_column(right=True, wrap=False)
    table.add_column()
    rows = (
        (
            "released matrix",
            f"{planned.dimension:,} x {planned.classes}",
            _features(planned.feature_map, schema),
        ),
        ("noise multiplier", f"{planned.noise_multiplier:.4g}", "noise at sensitivity 1"),
        *_unit_row(planned.unit),
        ("sensitivity", f"{planned.sensitivity:.4g}", "of the sums, one record's feature being 1"),
        ("sigma", f"{planned.sigma:.4g}", "noise on every sum"),
        ("noise per coordinate", f"{planned.noise_per_coordinate:.3g}", "of the released matrix"),
        ("noise norm", f"{planned.noise_norm:.3g}", "of the whole matrix, expected"),
        ("bound on the signal", f"{planned.signal_bound:.3g}", "norm of the matrix without noise"),
        ("loss floor", f"{planned.loss_floor:.3g}", "what the noise adds to the training's loss"),
        ("blur", f"{planned.blur:.3g}", "noise of a class's mean feature in any one direction"),
    )
    for row in rows:
        table.add_row(*row)
    show(table)


def _say_what_noise_hides(planned: Plan) -> None:
    out.print(_where_noise_dominates(planned))
    if planned.indistinct:
        out.print(
            f"Low signal: with a blur above {INDISTINCT:g} classes can hardly be told from noise. "
            "More records, fewer classes or a larger epsilon would help."
        )


def _unit_row(unit: PrivacyUnit | None) -> list[tuple[str, str, str]]:
    """The privacy unit, if it is more than a record."""
    return [] if unit is None else [("unit", f"{unit.rows:,}", f"rows count of {unit.whole}")]


def _where_bounds_are_found(planned: Plan, feature_map: FeatureMap) -> str:
    assert isinstance(feature_map, MarginalFeatures)  # the map of magnitudes
    least = rows_to_exceed_noise(feature_map, planned.sigma)
    return (
        "Bounds: a magnitude, numbers to a factor of about 1.8, stands out from the noise from "
        f"{least:,.0f} rows on, and what is beyond those that do is clipped: a column of ten "
        f"magnitudes needs about {10 * round(least):,} rows. There are {planned.records:,}; with "
        "too few, declare the bounds, spend more, or find those of fewer columns."
    )


def _features(feature_map: FeatureMap, schema: Schema) -> str:
    if isinstance(feature_map, JointFeatures):
        beside = feature_map.beside_in(schema, planned=True)
        return f"{feature_map.main.spec()['features']} features, {beside}"
    if isinstance(feature_map, JointImageFeatures):
        return f"ntk features, {feature_map.beside}"
    if isinstance(feature_map, PixelFeatures):
        return "pixels themselves"
    return f"{feature_map.spec()['features']} features"


def _where_noise_dominates(planned: Plan) -> str:
    records = planned.records * planned.excess
    return (
        "The matrix as a whole has more noise than signal with epsilon below "
        f"{_about(planned.epsilon_where(1 / planned.excess))}, or with fewer than {records:,.0f} "
        "records, the rest being as it is. That alone says little: training averages over its "
        f"{planned.dimension:,} features and learns what is larger than the blur; with epsilon "
        f"below {_about(planned.epsilon_where(1 / planned.blur))} nothing is."
    )


def _about(number: float) -> str:
    return f"{number:,.0f}" if number >= 1000 else f"{number:.3g}"


def _show_budget(ledger: Ledger, planned: Plan) -> None:
    total = total_of(ledger, planned.delta)
    line = f"released so far: {total.releases}"
    if total.releases:
        line += f", together {total}; another one adds to it"
    out.print(line)
    if remark := ceiling_remark(ledger):
        out.print(remark)
