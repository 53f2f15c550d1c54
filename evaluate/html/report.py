"""The report on a release and its synthetic records."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ...common.arguments import Location, argument, path_from, require_flag
from ...common.errors import DataError, OutputError, ReleaseError, SchemaError
from ...common.sources.tables.frames import Frame
from ...common.storage.atomic import PUBLIC_MODE, SENSITIVE_MODE, require_absent, write_atomically
from ...release.file.distilled import AnyOpened
from ...release.file.reader import open_any
from ...release.file.statement import NOT_PRIVATE
from ...release.label.kinds import label_of
from ...release.signing.policy import TRUSTED, Acceptance
from ..given import Arrays, images_in, records_given, table_in
from ..images.records import LabelFiles, read_real, read_synthetic
from ..provenance import confirmed_by, is_distilled
from ..report import Evaluation
from ..tables.table import is_table, read_real_table, read_synthetic_table
from .figures import Figures, figures_of, read_figures
from .images import Strip, view_images
from .page import BEGINS, rendered
from .tables import TableView, view_tables


def write_report(
    release: Location,
    synthetic: Location,
    output: Location = "report.html",
    *,
    test: Frame | Arrays | Location | None = None,
    evaluation: Evaluation | Location | None = None,
    public: bool = False,
    acceptance: Acceptance = TRUSTED,
    test_labels: Location | None = None,
    label_columns: tuple[str, str] | None = None,
) -> None:
    """Write everything there is to see of synthetic records into one HTML file.

    Guarantee:
        A public report is computed from the release and from synthetic records that claim to come
        from it, and from nothing else: nothing else may be given. So it is post-processing of the
        release. Any other report is for the owner alone (0600).

    Args:
        release: the path of the release.
        synthetic: the folder that `dpntk generate` wrote.
        output: where to write; an earlier report there is replaced.
        test: real records to compare with; their test part, if they have one. They may be in
            memory, as for `evaluate`.
        evaluation: the result of `evaluate` for the synthetic records, or its `evaluation.json`.
        public: whether anybody may see the report.
        acceptance: whose releases to open; by default those of trusted signers.
        test_labels: for images in a folder: the CSV file with the labels of `test`.
        label_columns: the names of its columns of files and labels; detected if None.

    Raises:
        DataError: records or figures cannot be read, do not claim to come from the release, or
            involve real records although the report is to be public.
        SchemaError: records do not match each other.
        ReleaseError: the release cannot be accepted, or is not private although the report is to be
            public.
        OutputError: the report cannot be written.
    """
    require_flag("public", public, refusal=OutputError)
    path = path_from("output", output, refusal=OutputError)
    require_absent(path, overwrite=True, cost="", begins=BEGINS)
    content = _report(
        path_from("release", release, refusal=ReleaseError),
        path_from("synthetic", synthetic, refusal=DataError),
        test,
        evaluation,
        public=public,
        acceptance=acceptance,
        labels=LabelFiles.of(test_labels, None, label_columns),
    )
    write_atomically(path, content, mode=PUBLIC_MODE if public else SENSITIVE_MODE)


def _report(
    release: Path,
    synthetic: Path,
    test: Frame | Arrays | Location | None,
    evaluation: Evaluation | Location | None,
    *,
    public: bool,
    acceptance: Acceptance,
    labels: LabelFiles,
) -> bytes:
    if public and not (test is None and evaluation is None):
        raise DataError(
            "a public report holds nothing that was computed from real records: leave out "
            f"{argument('evaluation' if test is None else 'test')}, or {argument('public')}"
        )
    opened = open_any(release, acceptance)
    if public and not opened.release.guarantee.private:
        raise ReleaseError(f"{release} is {NOT_PRIVATE}: a report of it cannot be public")
    figures = None if evaluation is None else _figures(evaluation, opened.digest)
    held_out = None if test is None else records_given("test", test)
    if is_table(synthetic):
        found = _table(opened, synthetic, None if held_out is None else table_in(held_out))
    else:
        real = None if held_out is None else images_in(held_out)
        found = _images(opened, synthetic, real, labels)
    return rendered(label=label_of(opened), public=public, figures=figures, **vars(found))


@dataclass(frozen=True)
class _Seen:
    """The view of records in a report.

    Attributes:
        records: number of synthetic records.
        real_records: number of real records to compare with.
        points: whether the synthetic ones are points for kernel regression.
        tables: the view of tables.
        strips: the view of images.
    """

    records: int
    real_records: int
    points: bool
    tables: TableView | None = None
    strips: list[Strip] | None = None


def _table(opened: AnyOpened, synthetic: Path, test: Path | Frame | None) -> _Seen:
    table = read_synthetic_table(synthetic)
    confirmed_by(opened, table.provenance, table.class_names)
    if table.schema != opened.release.schema:
        raise SchemaError(f"{synthetic}: its schema is not that of {opened.path}")
    real = [] if test is None else [read_real_table(test, "test", table.schema)]
    return _Seen(
        records=len(table),
        real_records=sum(map(len, real)),
        points=is_distilled(table.provenance),
        tables=view_tables([table, *real]),
    )


def _images(
    opened: AnyOpened, synthetic: Path, test: Path | Arrays | None, labels: LabelFiles
) -> _Seen:
    images = read_synthetic(synthetic)
    confirmed_by(opened, images.provenance, images.class_names)
    real = None
    if test is not None:
        real = read_real(test, "test", images, labels.test, labels.columns)
    return _Seen(
        records=len(images),
        real_records=0 if real is None else len(real),
        points=is_distilled(images.provenance),
        strips=view_images(images, real),
    )


def _figures(evaluation: Evaluation | Location, digest: str) -> Figures:
    if isinstance(evaluation, Evaluation):
        return figures_of(evaluation.to_json(), digest, type(evaluation).__name__)
    return read_figures(path_from("evaluation", evaluation, refusal=DataError), digest)
