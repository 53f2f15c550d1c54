"""The report on a release and its synthetic records."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from ...common.errors import DataError, ReleaseError, SchemaError
from ...release.file.reader import open_any
from ...release.file.statement import NOT_PRIVATE
from ...release.label.kinds import label_of
from ...release.signing.policy import Acceptance
from ..images.records import read_real, read_synthetic
from ..provenance import confirmed_by
from ..tables.table import is_table, read_real_table, read_synthetic_table
from .figures import read_figures
from .images import view_images
from .page import rendered
from .tables import view_tables

_TRUSTED: Final = Acceptance()


def report(
    release: Path,
    synthetic: Path,
    *,
    test: Path | None = None,
    evaluation: Path | None = None,
    public: bool = False,
    acceptance: Acceptance = _TRUSTED,
) -> bytes:
    """All that there is to see of synthetic records, as one HTML file.

    Guarantee: a public report is computed from the release and from synthetic records that say
    that they come from it, and from nothing else: nothing else may be given. So it is
    post-processing of the release. Any other report is for the owner alone.

    Args:
        release: the release.
        synthetic: the folder that `dpntk generate` wrote.
        test: real records to compare with; their test part, where they have one.
        evaluation: the `evaluation.json` of the synthetic records.
        public: whether anybody may see the report.
        acceptance: whose releases to open; those of trusted signers if not given.

    Raises:
        DataError: records or figures cannot be read, do not say that they come from the release,
            or are real where the report is to be public.
        SchemaError: records do not fit one another.
        ReleaseError: the release cannot be accepted, or is not private where the report is to be
            public.
    """
    if public and (test or evaluation):
        raise DataError(
            "a public report holds nothing that was computed from real records: leave out "
            f"{'--test' if test else '--evaluation'}, or --public"
        )
    opened = open_any(release, acceptance)
    if public and not opened.release.guarantee.private:
        raise ReleaseError(f"{release} is {NOT_PRIVATE}: a report of it cannot be public")
    figures = None if evaluation is None else read_figures(evaluation, opened.digest)
    tables, strips, real_records = None, None, 0
    if is_table(synthetic):
        table = read_synthetic_table(synthetic)
        confirmed_by(opened, table.provenance, table.class_names)
        if table.schema != opened.release.schema:
            raise SchemaError(f"{synthetic}: its schema is not that of {release}")
        real = [] if test is None else [read_real_table(test, "test", table.schema)]
        tables = view_tables([table, *real])
        records, real_records = len(table), sum(map(len, real))
    else:
        images = read_synthetic(synthetic)
        confirmed_by(opened, images.provenance, images.class_names)
        others = None if test is None else read_real(test, "test", images)
        strips = view_images(images, others)
        records, real_records = len(images), 0 if others is None else len(others)
    return rendered(
        label=label_of(opened),
        public=public,
        records=records,
        real_records=real_records,
        tables=tables,
        strips=strips,
        figures=figures,
    )
