"""The report: what it shows, of whatever kind of records, to whom, and what it never does."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import dataclass, field, replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Final

import numpy as np
import pytest

from dpntk.common.display.untrusted import shown
from dpntk.common.schema.columns.column import Column
from dpntk.common.schema.columns.dates import TimeUnit
from dpntk.common.schema.columns.kinds import ColumnKind, Transform
from dpntk.common.schema.table import TableSchema
from dpntk.embed import FourierOptions, SourceOptions, embed
from dpntk.evaluate.html.tables import view_tables
from dpntk.evaluate.tables.table import Table
from dpntk.generate import TableSettings, TrainingSettings, generate
from dpntk.release import PrivacyParameters, own_key
from dpntk.release.publishing.pipeline import unrecorded_release, write_release
from tests.conftest import SIDE, Command, draw_records, refused
from tests.helpers.releases import KINDS, write_images, write_rows, write_small_release
from tests.helpers.rows import drawn, table

SETTINGS: Final = {
    "images": TrainingSettings(steps=2, batch=6),
    "table": TableSettings(steps=2, batch=4),
    "distilled set": None,
}
VOID: Final = {"meta", "link", "img"}
MARKUP: Final = (
    "<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "{{ 7 * 7 }}{% raise %}",
    "</style><b>", "=HYPERLINK(\"http://x\")", "a\u202eb & c", "javascript:alert(1)",
)  # fmt: skip


@dataclass
class Page(HTMLParser):
    """What a browser makes of a report: elements with their attributes, and all texts.

    Attributes:
        content: the file.
        elements: tag and attributes of each, in order.
        texts: what is in each of them.
    """

    content: str
    elements: list[tuple[str, dict[str, str | None]]] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.feed(self.content)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(" ".join(data.split()))


def made(kind: str, folder: Path) -> None:
    """A release of a kind and its synthetic records, in `folder`."""
    release = write_small_release(kind, folder / "release.h5")
    generate(release, folder / "synthetic", settings=SETTINGS[kind])


def page(path: str = "report.html") -> Page:
    return Page(Path(path).read_text(encoding="utf-8"))


def require_harmless(found: Page) -> None:
    """Assert that a page fetches nothing, runs nothing, and can be read aloud."""
    tags = [tag for tag, _ in found.elements]
    assert not {"script", "iframe", "object", "embed", "form", "a", "base"} & set(tags)
    for tag, attributes in found.elements:
        assert not [name for name in attributes if name.startswith("on")]
        for name in {"src", "href"} & set(attributes):
            assert (attributes[name] or "").startswith("data:")
        assert tag != "img" or attributes["alt"]
        assert tag != "th" or attributes["scope"] in ("row", "col")
    assert tags.count("table") == tags.count("caption")
    assert "url(" not in found.content
    assert len(found.content) < 5_000_000


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_for_everybody_and_for_its_owner(
    kind: str, dpntk: Command, tmp_path: Path
) -> None:
    made(kind, tmp_path)
    test = write_rows(tmp_path / "t.csv") if kind == "table" else write_images(tmp_path / "t.npz")
    if kind == "distilled set":
        records, labels = draw_records(40)
        np.savez(test, x=records.reshape(-1, SIDE, SIDE), y=labels % 2)
    Path("report.html").write_bytes(b"<!DOCTYPE html>\n<!-- dpntk report: an earlier one")

    assert "is SENSITIVE" in dpntk("report", "--test", test).stderr
    assert Path("report.html").stat().st_mode & 0o777 == 0o600
    own = page()
    require_harmless(own)
    assert "SENSITIVE." in own.texts
    assert "Public." not in own.texts
    assert ("need not look like records" in own.content) == (kind == "distilled set")
    compared = "real" if kind == "table" else "nearest"
    assert compared in own.content.split("</style>")[1]

    assert "is public" in dpntk("report", "--public", "-o", "public.html").stderr
    assert Path("public.html").stat().st_mode & 0o044
    public = page("public.html")
    require_harmless(public)
    assert "Public." in public.texts
    assert "SENSITIVE" not in public.content
    assert not [text for text in public.texts if re.fullmatch(r"\d+\.\d{8,}", text)]
    shows = [text for text in public.texts if "held" in text or "nearest" in text or text == "real"]
    assert shows == []


@pytest.mark.parametrize("option", ["--test", "--evaluation"])
def test_a_public_report_takes_nothing_that_knows_real_records(
    option: str, dpntk: Command, tmp_path: Path
) -> None:
    made("table", tmp_path)
    refused(dpntk("report", "--public", option, write_rows(tmp_path / "t.csv")), option, "public")
    assert not Path("report.html").exists()


def test_a_public_report_reads_no_real_records(
    dpntk: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever lies around: without what reads them it is the same to the byte."""
    made("table", tmp_path)
    assert dpntk("report", "--public").code == 0
    before = Path("report.html").read_bytes()
    (tmp_path / "release.csv").unlink()  # the records
    for name in ("read_real", "read_real_table", "read_figures"):
        monkeypatch.delattr(f"dpntk.evaluate.html.report.{name}")
    assert dpntk("report", "--public").code == 0
    assert Path("report.html").read_bytes() == before


def test_a_report_without_noise_cannot_be_public(dpntk: Command, folder: Path) -> None:
    dpntk("embed", folder, "--width", "5")
    dpntk("release", "--eps", "inf", "--not-private")
    dpntk("generate", "--steps", "2", "-n", "40")
    refused(dpntk("report", "--public"), "NOT PRIVATE", "public")
    assert dpntk("report").code == 0
    assert "NOT PRIVATE." in page().texts


def test_records_of_another_release_are_refused(
    dpntk: Command, tmp_path: Path, two_kinds: None
) -> None:
    made("table", tmp_path)
    other = write_small_release("table", tmp_path / "other.h5")
    refused(dpntk("report", other), "do not say that they come from")
    assert dpntk("evaluate", "--test", write_rows(tmp_path / "t.csv")).code == 0
    assert dpntk("report", "--evaluation", "evaluation.json").code == 0
    assert "TVD 2-way" in page().texts
    document = json.loads(Path("evaluation.json").read_text())
    document["synthetic"][0]["release"]["digest"] = "0" * 64
    Path("evaluation.json").write_text(json.dumps(document))
    refused(dpntk("report", "--evaluation", "evaluation.json"), "of another release")
    Path("evaluation.json").write_text('{"rows": [3], "synthetic": []}')
    refused(dpntk("report", "--evaluation", "evaluation.json"), "not an evaluation.json")


def strange(tmp_path: Path) -> TableSchema:
    """A release without a label, and records, of columns and categories that look like markup."""
    schema = TableSchema(
        (
            *(Column.categorical(name, MARKUP) for name in MARKUP[:-1]),
            Column.integer(MARKUP[-1], 0, 9),
        ),
        None,
    )
    fields = [[json.dumps(name).replace('\\"', '""').replace("\\u202e", "\u202e")
               for name in MARKUP]]  # fmt: skip
    fields += [[*([fields[0][row % len(MARKUP)]] * (len(MARKUP) - 1)), "3"] for row in range(40)]
    data = tmp_path / "strange.csv"
    data.write_text("\n".join(map(",".join, fields)) + "\n")
    features = FourierOptions(frequencies=20)
    embedding = embed(data, features, SourceOptions(schema=schema))
    release = tmp_path / "release.h5"
    write_release(unrecorded_release(embedding, PrivacyParameters(20.0, 1e-3)), release, own_key())
    generate(release, tmp_path / "synthetic", settings=SETTINGS["table"])
    return schema


def test_names_of_strangers_come_out_as_text(dpntk: Command, tmp_path: Path) -> None:
    strange(tmp_path)
    assert dpntk("report", "--test", "strange.csv").code == 0
    found = page()
    require_harmless(found)
    for name in MARKUP:
        assert found.texts.count(shown(name)) >= len(MARKUP)
    assert "\u202e" not in found.content


def test_figures_are_those_of_the_rows() -> None:
    """Two tables by hand: shares, distances, and the pair in which they differ."""
    one = table([5, 5, 95, float("nan")], [0, 0, 1, 1], [0, 0, 1, 1])
    other = table([5, 95, 95, 95], [0, 1, 0, 1], [0, 0, 1, 1])
    view = view_tables([one, other])
    age, job, rich = view.bars
    assert age.rows[0] == ("0 to 10", [0.5, 0.25])
    assert age.rows[8] == ("88 to 98", [0.25, 0.75])
    assert age.rows[9] == ("99 to 100", [0.0, 0.0])
    assert age.rows[10] == ("(missing)", [0.25, 0.0])
    assert [rows for rows in job.rows if any(rows[1])] == [("a", [0.5, 0.5]), ("b", [0.5, 0.5])]
    assert (age.distance, job.distance, rich.distance) == (0.5, 0.0, 0.0)
    apart = {pair.names: pair.values for pair in view.pairs}
    assert apart["job", "rich"] == [pytest.approx(1.0), 0.0]
    by_difference = [abs(first - second) for first, second in apart.values()]
    assert by_difference == sorted(by_difference, reverse=True)
    assert [len(row) for row in view.grids[0]] == [0, 1, 2]
    alone = view_tables([drawn(200, 0)])
    assert alone.bars[0].distance is None
    assert {len(shares) for bars in alone.bars for _, shares in bars.rows} == {1}


AGES = Column("age", ColumnKind.INTEGER, "int64", lower=0, upper=99)


@pytest.mark.parametrize(
    ("column", "value", "ranges"),
    [
        (AGES, 9, ["0 to 9", "10 to 19"]),
        (replace(AGES, upper=3), 0, ["0", "1", "2", "3"]),
        (replace(AGES, upper=990, step=10), 90, ["0 to 90", "100 to 190"]),
        (replace(AGES, upper=1023, transform=Transform.LOG1P), 0, ["0 to 1", "1 to 3"]),
        (Column.continuous("x", -1.0, 1.0), -0.81, ["-1 to -0.8", "-0.8 to -0.6"]),
        (Column("x", ColumnKind.DATE, "date32", 0, 95), 9, ["from 1970-01-01", "from 1970-01-11"]),
        (
            Column("x", ColumnKind.DATETIME, "timestamp[us]", 0, 86_400 * 40), 86_400 * 4 - 1,
            ["from 1970-01-01", "from 1970-01-05"],
        ),
        (
            Column("x", ColumnKind.DATETIME, "timestamp[us]", 0, 36_000), 3_599,
            ["from 1970-01-01T00:00:00", "from 1970-01-01T01:00:00"],
        ),
        (
            Column("x", ColumnKind.DURATION, "string", 0, 100, unit=TimeUnit.DAY, format="%d days"),
            9, ["from 0 days", "from 10 days"],
        ),
    ],
)  # fmt: skip
def test_ranges_of_numbers_say_what_is_in_them(
    column: Column, value: float, ranges: list[str]
) -> None:
    """`value` is about the largest of the first range, and the upper bound is in the last."""
    values = np.array([value, column.upper], dtype=np.float64)
    (bars,) = view_tables([Table(TableSchema((column,), None), {column.name: values}, {})]).bars
    assert [name for name, _ in bars.rows][: len(ranges)] == ranges
    assert [shares for _, shares in bars.rows if any(shares)] == [[0.5], [0.5]]
    assert bars.rows[0][1] == bars.rows[-1][1] == [0.5]
    assert len(bars.rows) <= 10


def test_a_browser_has_nothing_to_complain_of(dpntk: Command, tmp_path: Path) -> None:
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if browser is None:
        pytest.skip("there is no Chromium")
    strange(tmp_path)
    assert dpntk("report").code == 0
    shows = subprocess.run(
        [browser, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr",
         f"--user-data-dir={tmp_path / 'browser'}", "--dump-dom",
         (tmp_path / "report.html").as_uri()],
        capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip
    assert "How columns go together" in shows.stdout
    assert "CONSOLE" not in shows.stderr
