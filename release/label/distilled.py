"""The label of a distilled set's release."""

from __future__ import annotations

from ...common.display.text import promised
from ..file.distilled import KIND, OpenedDistilled
from ..file.statement import change_in_words
from .base import Label, in_total, unprotected


def distilled_label(opened: OpenedDistilled) -> Label:
    """Make the label of a distilled set's release."""
    release, promise = opened.release, opened.release.guarantee
    change = change_in_words(promise.adjacency)
    total = in_total(promise.total_releases, promise.total_epsilon, promise.total_adjacency)
    sampled = f"each record in each with probability {promise.sampling_prob:.6g}"
    noise = (
        f"sigma {promise.sigma:.6g} on every coordinate of a step's sum, "
        f"{promise.noise_multiplier:.6g} times the clip norm {promise.clip_norm:g}"
    )
    scale = f"sigma {promise.sigma:.6g} at L2 sensitivity {promise.clip_norm:.6g}"
    if not promise.private:
        noise, scale = "none, and no gradient is clipped", "no noise"
    settings = str(release.settings.get("origin", "unknown"))
    return Label(
        opened,
        rows={
            "kind": f"distilled: {len(release.points):,} points to learn from by kernel regression",
            "data": release.schema.summary,
            "epsilon": promised(promise.epsilon) if promise.private else "none: NOT PRIVATE",
            "delta": promised(promise.delta),
            "adjacency": f"{promise.adjacency.value}: {change}",
            "in total": total,
            "noise": noise,
            "steps": f"{promise.steps:,}, {sampled}",
            "mechanism": f"{promise.mechanism}; {promise.accountant}",
            "settings": settings,
        },
        entries={
            "kind": KIND,
            "points_shape": list(release.points.shape),
            "kernel": {"bias_variance": release.bias_variance, "centre": release.centre},
            "ridge": release.ridge,
            "settings": dict(release.settings),
        },
        domain=release.schema.summary,
        not_protected=f"{unprotected(release.schema, promise.adjacency)}, the sampling rate",
        change=change,
        mechanisms=f"{promise.mechanism}; {promise.steps:,} steps, {sampled}, {scale}; "
        f"{promise.accountant}",
        composition=total,
        post_processing="Points descend by Shampoo along the "
        f"{'noisy' if promise.private else 'exact'} gradients.",
        preprocessing=settings,
    )
