"""The label of the release of a distilled set: for people and for programs."""

from __future__ import annotations

import json
from dataclasses import asdict

from rich.panel import Panel

from ..common.words import promised, rounded_up
from .distilled import DistilledGuarantee, DistilledRelease, change_in_words
from .label import labelled, registry_entry, unprotected
from .reader import OpenedDistilled


def distilled_panel(opened: OpenedDistilled) -> Panel:
    """The label for people."""
    release, promise = opened.release, opened.release.guarantee
    rows = {
        "kind": f"distilled: {len(release.points):,} points to learn from by kernel regression",
        "data": release.schema.summary,
        "epsilon": promised(promise.epsilon),
        "delta": promised(promise.delta),
        "adjacency": f"{promise.adjacency.value}: {change_in_words(promise.adjacency)}",
        "in total": _total(promise),
        "noise": f"sigma {promise.sigma:.6g} on every coordinate of a step's sum, "
        f"{promise.noise_multiplier:.6g} times the clip norm {promise.clip_norm:g}",
        "steps": f"{promise.steps:,}, each record in each with probability {promise.rate:.6g}",
        "mechanism": f"{promise.mechanism}; {promise.accountant}",
        "settings": _settings(release),
        "created": f"{release.created} by dpntk {release.dpntk_version}",
        "signer": str(opened.signed_by),
        "release id": release.release_id,
        "sha-256": opened.digest,
    }
    return labelled(rows, release.statement, private=True)


def distilled_json(opened: OpenedDistilled) -> str:
    """Everything but the points, as JSON."""
    release = opened.release
    document = {
        "kind": "distilled",
        "guarantee": {
            **asdict(release.guarantee),
            "adjacency": release.guarantee.adjacency.value,
        },
        "private": True,
        "statement": release.statement,
        "schema": release.schema.to_json(),
        "points_shape": list(release.points.shape),
        "kernel": {"bias_variance": release.bias_variance, "centre": release.centre},
        "ridge": release.ridge,
        "settings": dict(release.settings),
        "release_id": release.release_id,
        "created": release.created,
        "dpntk_version": release.dpntk_version,
        "signed_by": asdict(opened.signed_by),
        "sha256": opened.digest,
    }
    return json.dumps(document, indent=2, allow_nan=False)


def distilled_registry_entry(opened: OpenedDistilled) -> str:
    """An entry for OpenDP's registry of deployments; see `label.registry_entry`."""
    release, promise = opened.release, opened.release.guarantee
    return registry_entry(
        opened,
        domain=release.schema.summary,
        not_protected=f"{unprotected(release.schema, promise.adjacency)}, the sampling rate",
        change=change_in_words(promise.adjacency),
        preprocessing=_settings(release),
        mechanisms=f"{promise.mechanism}; {promise.steps:,} steps, each record in each with "
        f"probability {promise.rate:.6g}, sigma {promise.sigma:.6g} at L2 sensitivity "
        f"{promise.clip_norm:.6g}; {promise.accountant}",
        composition=_total(promise),
        post_processing="Points descend by Adam along the noisy gradients.",
    )


def _settings(release: DistilledRelease) -> str:
    return str(release.settings.get("origin", "unknown"))


def _total(promise: DistilledGuarantee) -> str:
    if promise.total_releases == 1:
        return "the first distillation of these records that the owner's ledger knows of"
    return (
        f"distillation number {promise.total_releases} of these records; together epsilon "
        f"{rounded_up(promise.total_epsilon)} ({promise.adjacency.value})"
    )
