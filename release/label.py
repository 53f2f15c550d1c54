"""The label of a release: for people, for programs, and for a public registry."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict
from enum import Enum
from typing import Any

import yaml
from rich.console import Group
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from ..common.adjacency import Adjacency
from ..common.console import printable
from ..common.perceptual import PerceptualFeatures
from ..common.schemas import Schema
from ..common.table_schema import TableSchema
from ..common.words import counted, promised, rounded_up
from .contents import Guarantee, Release
from .reader import OpenedDistilled, OpenedRelease


def as_panel(opened: OpenedRelease) -> Panel:
    """The label for people."""
    release, promise = opened.release, opened.release.guarantee
    rows = {
        "data": _data(release),
        "epsilon": _epsilon(release),
        "delta": promised(promise.delta),
        "adjacency": f"{promise.adjacency.value}: {promise.adjacency.meaning}",
        "in total": _total(promise),
        "noise": f"sigma {promise.sigma:.6g} on every sum, {release.noise_per_coordinate:.3g} on "
        f"every entry of the matrix; sensitivity {promise.sensitivity:.6g}",
        "mechanism": f"{promise.mechanism}; {promise.accountant}",
        "features": _features(release),
        "created": f"{release.created} by dpntk {release.dpntk_version}",
        "signer": str(opened.signed_by),
        "release id": release.release_id,
        "sha-256": opened.digest,
    }
    if promise.epsilon_replace_one is not None:
        alone = " for the matrix alone" if release.schema.spent else ""
        rows["exchange"] = (
            f"epsilon {rounded_up(promise.epsilon_replace_one)} under replace-one{alone}"
        )
    return labelled(rows, release.statement, private=promise.private)


def labelled(rows: Mapping[str, str], statement: str, *, private: bool) -> Panel:
    """A label of named rows and a statement."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in rows.items():
        table.add_row(name, Text(printable(value)))
    style = "green" if private else "bold red"
    text = Text("\n" + statement)
    return Panel(Group(table, text), title="privacy release", border_style=style)


def as_json(opened: OpenedRelease) -> str:
    """Everything but the matrix and the weights. Infinity is the text "inf"."""
    release = opened.release
    document = {
        "guarantee": _plain(asdict(release.guarantee)),
        "private": release.guarantee.private,
        "statement": release.statement,
        "schema": release.schema.to_json(),
        "feature_map": {**release.feature_map.spec(), "digest": release.feature_map.digest()},
        "embedding_shape": list(release.embedding.shape),
        "class_weights": dict(
            zip(release.schema.classes, release.class_weights.tolist(), strict=True)
        ),
        "release_id": release.release_id,
        "created": release.created,
        "dpntk_version": release.dpntk_version,
        "signed_by": asdict(opened.signed_by),
        "sha256": opened.digest,
    }
    return json.dumps(document, indent=2, allow_nan=False)


def as_registry_entry(opened: OpenedRelease) -> str:
    """An entry for OpenDP's registry of deployments; see `registry_entry`."""
    release, promise = opened.release, opened.release.guarantee
    not_protected = unprotected(release.schema, promise.adjacency)
    if isinstance(release.feature_map, PerceptualFeatures):
        not_protected += "; the data that the features' module was trained on"
    return registry_entry(
        opened,
        domain=_data(release),
        not_protected=not_protected,
        change=promise.adjacency.meaning,
        preprocessing=None,
        mechanisms=f"{promise.mechanism}, sigma {promise.sigma:.6g} at L2 sensitivity "
        f"{promise.sensitivity:.6g}; {promise.accountant}; {_features(release)}",
        composition=_total(promise),
        post_processing="A generator is trained on the released matrix alone.",
    )


def registry_entry(
    opened: OpenedRelease | OpenedDistilled,
    *,
    domain: str,
    not_protected: str,
    change: str,
    preprocessing: str | None,
    mechanisms: str,
    composition: str,
    post_processing: str,
) -> str:
    """An entry for OpenDP's registry of deployments; the owner fills in what the file cannot know.

    The fields are those of the registry's records (github.com/opendp/deployments-registry-data).
    """
    release, promise = opened.release, opened.release.guarantee
    entry = {
        "deployment": {
            "basic": {
                "name": None,
                "data_curators": [{"data_curator_name": None, "data_curator_type": None}],
                "description": None,
                "intended_use": None,
                "data_product_type": "Synthetic data",
                "data_product_region": None,
                "data_product_sector": None,
                "publication_date": release.created[:10],
            },
            "dp_variant": {
                "variant_name": "Approximate DP",
                "data_domain": domain,
                "unprotected_quantities": not_protected,
            },
            "privacy_loss": {
                "privacy_unit": None,  # whether a record is a person, only the owner knows
                "privacy_unit_details": f"One record. Adjacent data sets differ by {change}.",
                "privacy_parameters": {
                    "epsilon": release.epsilon if promise.private else None,
                    "delta": promise.delta,
                },
                "privacy_parameters_details": release.statement,
            },
            "deployment_model": {
                "model_name": "Central",
                "release_type": "One release" if promise.total_releases == 1 else "Many releases",
                "data_source_type": "Static",
                "access_type": "Non-interactive",
            },
            "implementation": {
                "preprocessing_and_hyperparameter_tuning": preprocessing,
                "mechanisms": f"{mechanisms}; dpntk {release.dpntk_version}, release "
                f"{release.release_id}, SHA-256 {opened.digest}",
                "composition": composition,
                "post_processing": post_processing,
                "justification": None,
            },
            "administrative": {"evidence_sources": None, "status": "Draft"},
        }
    }
    text: str = yaml.safe_dump(entry, sort_keys=False, allow_unicode=False, width=96)
    return text


def unprotected(schema: Schema, adjacency: Adjacency) -> str:
    """What counts as public, in words."""
    known = list(schema.known)
    if adjacency is Adjacency.REPLACE_ONE:
        known.insert(0, "number of records")
    looked_up = schema.from_data
    return ", ".join(known) + (f"; looked up: {', '.join(looked_up)}" if looked_up else "")


def _epsilon(release: Release) -> str:
    promise = release.guarantee
    if not promise.private:
        return "none: NOT PRIVATE"
    if release.schema.spent:
        return f"{rounded_up(release.epsilon)}, of which the bounds of columns have a part"
    return promised(promise.epsilon)


def _data(release: Release) -> str:
    schema, promise = release.schema, release.guarantee
    about = "" if promise.adjacency is Adjacency.REPLACE_ONE else "about "
    return f"{about}{promise.records:,} {schema.summary}"


def _features(release: Release) -> str:
    spec, beside = release.feature_map.spec(), ""
    if spec["features"] == "joint":
        pairs = len(spec["marginals"].get("pairs", ()))
        several = f" ({counted(pairs, 'pair')} of columns among them)" if pairs else ""
        beside = f", and marginals of weight {spec['weight']:g}{several}"
        spec = spec["rff" if "rff" in spec else "tangent"]
    if spec["features"] == "ntk":
        kind = f"normalised tangent features of {spec['arch']}, width {spec['width']}"
        is_table = isinstance(release.schema, TableSchema)
        kind += f", on {'encoded rows' if is_table else spec['front']['kind']}"
    elif spec["features"] == "rff":
        kind = f"random Fourier features, {spec['frequencies']:,} frequencies"
    elif spec["features"] == "marginals":
        kind = f"marginals of {counted(len(spec['columns']), 'column')}"
    elif spec["features"] == "perceptual":
        kind = f"features of a pre-trained module (SHA-256 {spec['module']})"
    else:
        kind = f"Hermite features of order {spec['order']} and {spec['pair_order']} (pairs)"
    return f"{kind}{beside}: a {release.embedding.shape[0]:,} x {release.embedding.shape[1]} matrix"


def _total(promise: Guarantee) -> str:
    if promise.total_releases == 1:
        return "the first release from these records that the owner's ledger knows of"
    return (
        f"release number {promise.total_releases} from these records; together epsilon "
        f"{rounded_up(promise.total_epsilon)} ({promise.total_adjacency.value})"
    )


def _plain(values: dict[str, Any]) -> dict[str, Any]:
    def plain(value: object) -> object:
        if isinstance(value, Enum):
            return value.value
        return "inf" if isinstance(value, float) and math.isinf(value) else value

    return {name: plain(value) for name, value in values.items()}
