"""The label of an embedding's release."""

from __future__ import annotations

from ...common.adjacency import Adjacency
from ...common.display.text import promised, rounded_up
from ...common.features.base import weights_digest
from ...common.features.perceptual import PerceptualFeatures
from ..file.model import OpenedRelease, Release
from ..file.statement import change_between
from .base import Label, in_total, unprotected


def embedding_label(opened: OpenedRelease) -> Label:
    """Make the label of an embedding's release."""
    release, promise = opened.release, opened.release.guarantee
    total = in_total(promise.total_releases, promise.total_epsilon, promise.total_adjacency)
    unit = release.schema.privacy_unit
    change = change_between(promise.adjacency, unit)
    rows = {
        "data": _data(release),
        "epsilon": _epsilon(release),
        "delta": promised(promise.delta),
        "adjacency": f"{promise.adjacency.value}: {change}",
        **({} if unit is None else {"unit": f"{unit.whole}; {unit.bounded}"}),
        "in total": total,
        "noise": f"sigma {promise.sigma:.6g} on every sum, {release.noise_per_coordinate:.3g} on "
        f"every entry of the matrix; sensitivity {promise.sensitivity:.6g}",
        "mechanism": f"{promise.mechanism}; {promise.accountant}",
        "features": _features(release),
    }
    if release.indistinct:
        rows["low signal"] = f"hardly told from noise: {', '.join(release.indistinct)}"
    if promise.epsilon_replace_one is not None:
        alone = " for the matrix alone" if release.schema.spent else ""
        rows["exchange"] = (
            f"epsilon {rounded_up(promise.epsilon_replace_one)} under replace-one{alone}"
        )
    not_protected = unprotected(release.schema, promise.adjacency)
    if isinstance(release.feature_map, PerceptualFeatures):
        not_protected += "; the data that the features' module was trained on"
    return Label(
        opened,
        rows,
        entries={
            "feature_map": {
                **release.feature_map.spec(),
                "digest": weights_digest(release.feature_map),
            },
            "embedding_shape": list(release.embedding.shape),
            "indistinct": list(release.indistinct),
            "class_weights": dict(
                zip(release.schema.classes, release.class_weights.tolist(), strict=True)
            ),
        },
        domain=_data(release),
        not_protected=not_protected,
        change=change,
        unit="One record" if unit is None else f"All rows of one {unit.column}; {unit.bounded}",
        mechanisms=f"{promise.mechanism}, sigma {promise.sigma:.6g} at L2 sensitivity "
        f"{promise.sensitivity:.6g}; {promise.accountant}; {_features(release)}",
        composition=total,
        post_processing="A generator is trained on the released matrix alone.",
    )


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
    rows, columns = release.embedding.shape
    return f"{release.feature_map.describe(release.schema)}: a {rows:,} x {columns} matrix"
