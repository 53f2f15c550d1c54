"""From the release of a distilled set to a folder of records: there is nothing to train."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from ..common.schema.image import ImageSchema, pictures
from ..release.file.citation import citation_of
from ..release.file.distilled import VALUE_LEVELS, OpenedDistilled
from .images.export import images_described, write_images, write_points
from .output.folder import results
from .output.provenance import warn_unless_private
from .tables.export import write_rows
from .tables.sampling import to_table


def export_points(opened: OpenedDistilled, folder: Path, *, safe_csv: bool = False) -> None:
    """Write the points of a distilled set.

    As records they are rounded and clipped: `images.npz` and `preview.png`, or `table.csv` and
    `table.parquet`, whose rows keep the constraints of the schema. `points.npz` holds the exact
    points, for kernel regression.

    Args:
        opened: the release.
        folder: where; an earlier such folder is replaced.
        safe_csv: for a table: whether to keep out of `table.csv` whatever a spreadsheet would
            compute.

    Raises:
        OutputError: the folder cannot be written.
    """
    release = opened.release
    schema, labels = release.schema, release.labels
    values = np.clip(np.rint(release.points * VALUE_LEVELS + release.centre), 0, schema.levels)
    provenance = _provenance(opened)
    warn_unless_private(provenance, folder)
    with results(folder, provenance) as temporary:
        write_points(temporary, release.points, labels)
        if isinstance(schema, ImageSchema):
            pixels = schema.preparation.turned_back(values.astype(np.uint8))
            images = pictures(pixels, schema.channels)
            write_images(temporary, images, labels, schema.classes)
        else:
            table = to_table(schema, (values / schema.levels).astype(np.float32), labels)
            write_rows(temporary, table, schema, safe_csv=safe_csv)


def _provenance(opened: OpenedDistilled) -> dict[str, Any]:
    release, schema = opened.release, opened.release.schema
    if isinstance(schema, ImageSchema):
        known = images_described(schema.classes, schema.preparation)
    else:
        known = {"schema": schema.to_json()}
    return {
        "release": citation_of(opened),
        "kernel": {
            "bias_variance": release.bias_variance,
            "centre": release.centre,
            "ridge": release.ridge,
            "levels": VALUE_LEVELS,
        },
        "settings": dict(release.settings),
        "versions": {"dpntk": version("dpntk")},
        **known,
    }
