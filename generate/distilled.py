"""From the release of a distilled set to a folder of records: there is nothing to train."""

from __future__ import annotations

import io
import json
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ..common.files import folder_appearing_whole
from ..common.schema import ImageSchema
from ..release.distilled import VALUE_LEVELS, DistilledRelease
from ..release.reader import OpenedDistilled
from .export import IMAGES, PREVIEW, PROVENANCE, preview
from .table_export import CSV, PARQUET, write_csv
from .table_sampling import to_table

POINTS: Final = "points.npz"


def export_points(opened: OpenedDistilled, folder: Path) -> None:
    """Write the points of a distilled set.

    As records they are rounded and cut to what a record can be: `images.npz` and `preview.png`, or
    `table.csv` and `table.parquet`. `points.npz` holds them as they are, for kernel regression.

    Args:
        opened: the release.
        folder: where; an earlier such folder is replaced.

    Raises:
        OutputError: the folder cannot be written.
    """
    release = opened.release
    schema, labels = release.schema, release.labels
    values = np.clip(np.rint(release.points * VALUE_LEVELS + release.centre), 0, schema.levels)
    points = io.BytesIO()
    np.savez_compressed(points, x=release.points, y=labels)
    document = _origin(opened)
    with folder_appearing_whole(folder, marker=PROVENANCE) as temporary:
        (temporary / POINTS).write_bytes(points.getbuffer())
        if isinstance(schema, ImageSchema):
            images = values.astype(np.uint8).reshape(-1, schema.side, schema.side)
            document["classes"] = list(schema.classes)
            (temporary / IMAGES).write_bytes(_archive(images, labels))
            (temporary / PREVIEW).write_bytes(preview(images, labels, len(schema.classes)))
        else:
            from pyarrow import parquet

            document["schema"] = schema.to_json()
            table = to_table(schema, (values / schema.levels).astype(np.float32), labels)
            parquet.write_table(table, temporary / PARQUET)
            write_csv(table, schema, temporary / CSV)
        (temporary / PROVENANCE).write_text(json.dumps(document, indent=2) + "\n")


def _archive(images: NDArray[np.uint8], labels: NDArray[np.int64]) -> bytes:
    archive = io.BytesIO()
    np.savez_compressed(archive, x=images, y=labels)
    return archive.getvalue()


def _origin(opened: OpenedDistilled) -> dict[str, Any]:
    release: DistilledRelease = opened.release
    guarantee = release.guarantee
    return {
        "release": {
            "kind": "distilled",
            "id": release.release_id,
            "digest": opened.digest,
            "signer": opened.signed_by.name,
            "fingerprint": opened.signed_by.fingerprint,
            "created": release.created,
            "private": guarantee.private,
            "epsilon": guarantee.epsilon,
            "delta": guarantee.delta,
            "adjacency": guarantee.adjacency.value,
            "statement": release.statement,
        },
        "kernel": {
            "bias_variance": release.bias_variance,
            "centre": release.centre,
            "ridge": release.ridge,
            "levels": VALUE_LEVELS,
        },
        "settings": dict(release.settings),
        "versions": {"dpntk": version("dpntk")},
    }
