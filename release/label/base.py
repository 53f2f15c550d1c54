"""The label of a release: for people, for programs, and for a public registry."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import yaml

from ...common.adjacency import Adjacency
from ...common.display.text import rounded_up
from ...common.display.untrusted import shown
from ...common.schema import Schema
from ..file.distilled import AnyOpened
from ..file.model import Figure


@dataclass(frozen=True, eq=False)
class Label:
    """The label of a release of either kind.

    Attributes:
        opened: the release.
        rows: the rows for people that only this kind has, by name, in order.
        entries: the same for programs, as plain JSON.
        domain: what the records are.
        not_protected: what counts as public.
        change: how adjacent data sets differ.
        unit: what is protected.
        mechanisms: the mechanisms, with their figures.
        composition: the joint guarantee of this and earlier releases.
        preprocessing: how settings were chosen, if that is known.
        post_processing: the steps that follow without reading records.
    """

    opened: AnyOpened
    rows: Mapping[str, str]
    entries: Mapping[str, Any]
    domain: str
    not_protected: str
    change: str
    mechanisms: str
    composition: str
    post_processing: str
    unit: str = "One record"
    preprocessing: str | None = None

    def as_rows(self) -> dict[str, str]:
        """The label for people, by name."""
        release = self.opened.release
        return {
            **self.rows,
            "created": f"{release.created} by dpntk {release.dpntk_version}",
            "signer": str(self.opened.signed_by),
            "release id": release.release_id,
            "sha-256": self.opened.digest,
            "statement": release.statement,
        }

    def as_json(self) -> str:
        """Everything but the arrays, as JSON. Infinity is the text "inf"."""
        release = self.opened.release
        document = {
            "guarantee": _plain(release.guarantee.figures()),
            "private": release.guarantee.private,
            "statement": release.statement,
            "schema": release.schema.to_json(),
            **self.entries,
            "release_id": release.release_id,
            "created": release.created,
            "dpntk_version": release.dpntk_version,
            "signed_by": asdict(self.opened.signed_by),
            "sha256": self.opened.digest,
        }
        return json.dumps(document, indent=2, allow_nan=False)

    def as_registry_entry(self) -> str:
        """An entry for OpenDP's registry of deployments; what the file cannot know stays open.

        The fields are those of the registry's records
        (github.com/opendp/deployments-registry-data).
        """
        release, promise = self.opened.release, self.opened.release.guarantee
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
                    "data_domain": self.domain,
                    "unprotected_quantities": self.not_protected,
                },
                "privacy_loss": {
                    "privacy_unit": None,  # only the owner knows whether a record is a person
                    "privacy_unit_details": f"{self.unit}. Adjacent data sets differ by "
                    f"{self.change}.",
                    "privacy_parameters": {
                        "epsilon": release.epsilon if promise.private else None,
                        "delta": promise.delta,
                    },
                    "privacy_parameters_details": release.statement,
                },
                "deployment_model": {
                    "model_name": "Central",
                    "release_type": "One release"
                    if promise.total_releases == 1
                    else "Many releases",
                    "data_source_type": "Static",
                    "access_type": "Non-interactive",
                },
                "implementation": {
                    "preprocessing_and_hyperparameter_tuning": self.preprocessing,
                    "mechanisms": f"{self.mechanisms}; dpntk {release.dpntk_version}, release "
                    f"{release.release_id}, SHA-256 {self.opened.digest}",
                    "composition": self.composition,
                    "post_processing": self.post_processing,
                    "justification": None,
                },
                "administrative": {"evidence_sources": None, "status": "Draft"},
            }
        }
        text: str = yaml.safe_dump(_one_line(entry), sort_keys=False, allow_unicode=False, width=96)
        return text


def in_total(releases: int, epsilon: float, adjacency: Adjacency) -> str:
    """The joint guarantee of a release and all earlier ones, in words."""
    if releases == 1:
        return "the first release from these records that the owner's ledger knows of"
    return (
        f"release number {releases} from these records; together epsilon {rounded_up(epsilon)} "
        f"({adjacency.value})"
    )


def unprotected(schema: Schema, adjacency: Adjacency) -> str:
    """Everything that counts as public, in words."""
    known = list(schema.known)
    if adjacency is Adjacency.REPLACE_ONE:
        known.insert(0, "number of records")
    looked_up = schema.from_data
    return ", ".join(known) + (f"; looked up: {', '.join(looked_up)}" if looked_up else "")


def _one_line(value: object) -> object:
    """Plain values with every text on one line: YAML would write line breaks as they are."""
    if isinstance(value, dict):
        return {name: _one_line(entry) for name, entry in value.items()}
    if isinstance(value, list):
        return [_one_line(entry) for entry in value]
    return shown(value) if isinstance(value, str) else value


def _plain(values: Mapping[str, Figure]) -> dict[str, Figure]:
    """Figures in the form for JSON, which has no infinity."""
    return {name: "inf" if value == math.inf else value for name, value in values.items()}
