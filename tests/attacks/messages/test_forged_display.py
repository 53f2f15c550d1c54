"""Names that try to repaint a terminal, to reorder its lines, or to begin lines of their own.

Every command runs on them: in files, folders, columns, categories, classes, options, releases and
ledgers. Whatever they are, they are data, and a text that is shown is ours.
"""

from __future__ import annotations

import io
import json
import re
import unicodedata
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from rich.console import Console

from dpntk.common.cli.app import COMMANDS
from dpntk.common.display import console as printing
from dpntk.common.display.untrusted import shown
from dpntk.common.schema.columns.column import Column
from dpntk.common.schema.columns.kinds import ColumnKind, Missing
from dpntk.common.schema.drafts.draft import Draft
from dpntk.common.schema.image import ImageSchema
from dpntk.common.schema.table import TableSchema
from dpntk.embed import load_embedding
from dpntk.embed.sums.file import write_embedding
from dpntk.evaluate.images.classifiers import CLASSIFIERS
from dpntk.release import make_key, open_release, own_key
from dpntk.release.file.distilled import DistilledRelease
from dpntk.release.file.distilled_codec import save_distilled
from dpntk.release.file.reader import open_any
from dpntk.release.publishing.pipeline import write_release
from dpntk.release.signing.keys import default_key_path
from dpntk.release.signing.trust import add, allowed_path
from tests.conftest import Command, Outcome, draw_records

FORGED = "FORGED"
EVIL = (
    f"x\x1b[2K\x1b[1A\r{FORGED}\n{FORGED}\x0b{FORGED}\x0c{FORGED}\x85{FORGED}\u2028{FORGED}\u2029"
    f"{FORGED}\x08\x07\t\x7f\x9b\u202e\u2066\u200e\u061c\u200b\u2060\ufeff\u00ad\u3164"
)
OVERRIDES = "\u202a\u202b\u202c\u202d\u2067\u2068\u2069\u200f\u200c\u200d\x00\x9d\x90\U000e0001"
"""What is left of these kinds; file names have room for 255 bytes only, and none for NUL."""

LINE_BEGINS: re.Pattern[str] = re.compile(rf"^[\s│┃|]{{0,10}}{FORGED}", re.MULTILINE)

pytestmark = pytest.mark.usefixtures("surroundings")


@pytest.fixture
def surroundings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys and lists of signers lie in a folder of such a name, too; classifiers are quick."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / f"{EVIL}.config"))
    name = "logistic regression"
    monkeypatch.setattr("dpntk.evaluate.images.utility.CLASSIFIERS", {name: CLASSIFIERS[name]})


def hidden(text: str) -> set[str]:
    """Characters that a terminal does not simply show; line feeds are ours."""
    return {
        c
        for c in text
        if c != "\n" and (unicodedata.category(c)[0] in "CZ" or c == "\u3164") and c != " "
    }


def require_honest(*outcomes: Outcome) -> None:
    """Assert that nothing of the kind has reached the terminal, though the names have."""
    for outcome in outcomes:
        for text in (outcome.stdout, outcome.stderr):
            assert not hidden(text), text
            assert not LINE_BEGINS.search(text), text
    assert any(FORGED in outcome.stdout + outcome.stderr for outcome in outcomes)
    assert {outcome.code == 0 for outcome in outcomes} == {True, False}


def named(ending: str) -> Path:
    return Path(EVIL + ending)


def images(folder: Path) -> Path:
    """Class folders of such names with files of another kind, the first image transparent."""
    records, _ = draw_records(40)
    for index, record in enumerate(records):
        part = folder / f"{EVIL}{index % 2}"
        part.mkdir(parents=True, exist_ok=True)
        image = Image.fromarray(record.reshape(8, 8))
        if not index:
            image.putalpha(128)
        image.save(part / f"{EVIL}{index:02}.png")
        (part / f"{EVIL}.txt").touch()
    return folder


TABLE = TableSchema(
    (
        Column(f"age{EVIL}{OVERRIDES[:9]}", ColumnKind.INTEGER, "int64", 0, 30),
        Column(
            f"town{EVIL}", ColumnKind.CATEGORICAL, "string", categories=(f"U{EVIL}", f"B{EVIL}"),
            other=f"U{EVIL}", missing=Missing.CATEGORY,
        ),
        Column(f"ill{EVIL}", ColumnKind.BOOLEAN, "string", categories=(f"no{EVIL}", f"yes{EVIL}")),
    ),
    f"ill{EVIL}",
)  # fmt: skip
AGE, TOWN, ILL = (column.name for column in TABLE.columns)


def quoted(*values: str) -> str:
    return ",".join(f'"{value}"' for value in values) + "\n"


def table(path: Path) -> Path:
    """Some rows are beyond the bounds, or in no category."""
    rows = [quoted(AGE, TOWN, ILL)]
    for number in range(60):
        town, ill = f"{'UBC'[number % 3]}{EVIL}", f"{'yes' if number % 2 else 'no'}{EVIL}"
        rows.append(quoted(str(number), town, ill))
    path.write_text("".join(rows), newline="")
    return path


def write_schema(path: Path, draft: Draft) -> Path:
    path.write_text(draft.to_toml())
    return path


Scenario = Callable[[Command], list[Outcome]]
SCENARIOS: dict[str, Scenario] = {}


def scenario(act: Scenario) -> Scenario:
    SCENARIOS[act.__name__] = act
    return act


EMBED = ("--width", 2, "--front", "pixels")


def embedded(dpntk: Command, *more: object) -> Outcome:
    return dpntk("embed", images(named(".images")), *EMBED, "-o", named(".h5"), *more)


def released(dpntk: Command) -> Outcome:
    embedded(dpntk)
    return dpntk("release", named(".h5"), "--eps", 9, "--delta", 1e-3, "-o", named(".release"))


@scenario
def schema(dpntk: Command) -> list[Outcome]:
    data = table(named(".csv"))
    names = named("2.csv")
    names.write_text(quoted(AGE, TOWN) + "".join(quoted(f"{n} a", f"{n}") for n in range(60)))
    return [
        dpntk("schema", data, "--label", ILL, "-o", named(".toml")),
        dpntk("schema", names, "-o", named("2.toml")),
        dpntk("schema", data, "--label", f"no{EVIL}", "-o", named("3.toml")),
        dpntk("schema", data, "--encoding", EVIL, "-o", named("3.toml")),
        dpntk("schema", named(".missing"), "-o", named("3.toml")),
    ]


@scenario
def embed(dpntk: Command) -> list[Outcome]:
    data = table(named(".csv"))
    seen = write_schema(named(".toml"), Draft(TABLE, (AGE, TOWN, ILL)))
    of_table = ("embed", data, "--schema", seen, "--width", 2)
    other = Path("b.csv")
    other.write_text(quoted(AGE, TOWN, ILL) + quoted("x" + EVIL, TOWN, f"no{EVIL}"), newline="")
    return [
        embedded(dpntk),
        embedded(dpntk),
        dpntk(*of_table, "--accept-from-data", "-o", named("2.h5")),
        dpntk(*of_table, "-o", named("3.h5")),
        dpntk("embed", other, *of_table[2:], "--accept-from-data", "-o", named("3.h5")),
        dpntk(*of_table, "--accept-from-data", "--pairs", f"{AGE},{EVIL}", "-o", named("3.h5")),
        dpntk("embed", named(".missing")),
        dpntk("embed", named(".images"), "--device", EVIL, "-o", named("3.h5")),
        dpntk("embed", named(".images"), "--width", EVIL, "-o", named("3.h5")),
        dpntk("embed", named(".images"), "--features", EVIL),
        dpntk("embed", named(".images"), EVIL),
        dpntk("embed", f"--{EVIL}"),
        dpntk(EVIL),
    ]


@scenario
def bounds(dpntk: Command) -> list[Outcome]:
    data = table(named(".csv"))
    columns = (replace(TABLE.columns[0], name=f"flat{EVIL}"), *TABLE.columns)
    text = Draft(TableSchema(columns, ILL), private=(columns[0].name, AGE)).to_toml()
    secret = named(".toml")
    secret.write_text(re.sub(r"(lower|upper) = \d+\n", "", text))
    data.write_text(
        quoted(columns[0].name, AGE, TOWN, ILL)
        + "".join(quoted("0", str(n), f"U{EVIL}", f"no{EVIL}") for n in range(60)),
        newline="",
    )
    counted = ("embed", data, "--schema", secret, "--private-bounds", "-o", named(".h5"))
    promise = ("bounds", named(".h5"), "--schema", secret, "--delta", 1e-3)
    found = (*promise, "--adjacency", "add-remove")
    return [
        dpntk(*counted),
        dpntk(*promise, "--eps", 0.001, "-o", named("2.toml")),
        dpntk(*found, "--eps", 50, "-o", named("2.toml")),
        dpntk(*found, "--eps", 0.001, "--compose", "-o", named("3.toml")),
        dpntk(*found, "--eps", 1, "-o", named("4.toml")),
        dpntk(*found, "--eps", 1, "-o", named("2.toml")),
    ]


@scenario
def merge(dpntk: Command) -> list[Outcome]:
    embedded(dpntk)
    more = images(named(".more"))
    Image.new("L", (8, 8), 9).save(more / f"{EVIL}0" / "more.png")
    assert dpntk("embed", more, *EMBED, "-o", named("2.h5")).code == 0
    return [
        dpntk("merge", named(".h5"), named("2.h5"), "-o", named("sum.h5")),
        dpntk("merge", named(".h5"), named(".h5"), "-o", named("3.h5")),
        dpntk("merge", named(".h5"), named(".missing"), "-o", named("3.h5")),
    ]


@scenario
def plan(dpntk: Command) -> list[Outcome]:
    embedded(dpntk)
    return [
        dpntk("plan", named(".h5"), "--eps", 1, "--delta", 1e-3),
        dpntk("plan", named(".missing"), "--eps", 1),
        dpntk("plan", "--schema", write_schema(named(".toml"), Draft(TABLE, private=(AGE,))),
              "--records", 60, "--eps", 1, "--delta", 1e-3),
        dpntk("plan", "--records", EVIL, "--eps", 1),
    ]  # fmt: skip


@scenario
def release(dpntk: Command) -> list[Outcome]:
    made = released(dpntk)
    again = ("release", named(".h5"), "--eps", 1, "--delta", 1e-3)
    key = named(".key")
    key.write_bytes(b"no key")
    key.chmod(0o600)
    return [
        made,
        dpntk(*again, "--compose", "-o", named("2.release")),
        dpntk(*again, "-o", named("3.release")),
        dpntk(*again, "--key", key, "-o", named("3.release")),
        dpntk("release", named(".missing"), "--eps", 1),
        dpntk("release", named(".images"), "--eps", EVIL),
    ]


DISTILL = ("--eps", 5, "--delta", 1e-3, "--per-class", 1, "--steps", 2, "--sampling-prob", 0.5)


@scenario
def distill(dpntk: Command) -> list[Outcome]:
    data = images(named(".images"))
    return [
        dpntk("distill", data, *DISTILL, "-o", named(".release")),
        dpntk("distill", data, *DISTILL, "-o", named("2.release")),
        dpntk("distill", named(".missing"), *DISTILL, "-o", named("3.release")),
        dpntk("distill", data, "--eps", 1, "--preset", EVIL),
    ]


@scenario
def budget(dpntk: Command) -> list[Outcome]:
    released(dpntk)
    loaded = load_embedding(named(".h5"))
    entries = tuple(
        replace(entry, release_id=EVIL, created=EVIL) for entry in loaded.ledger.entries
    )
    write_embedding(replace(loaded, ledger=replace(loaded.ledger, entries=entries)), named(".h5"))
    dpntk("distill", named(".images"), *DISTILL, "-o", named("2.release"))
    ledger = named(".images.ledger.json")
    document = json.loads(ledger.read_text())
    document["entries"][0] |= {"release_id": EVIL, "created": EVIL}
    ledger.write_text(json.dumps(document))
    outcomes = [
        dpntk("budget", named(".h5")),
        dpntk("budget", named(".images")),
        dpntk("budget", named(".missing")),
        dpntk("embed", named(".images"), *EMBED, "-o", named("2.h5"), "--data-set", "\u3164a"),
        dpntk("budget", named("2.h5")),
        dpntk("budget", "--data-set", "\u3164a"),
        dpntk("budget", "--data-set", EVIL),
    ]
    document["entries"][0] |= {"adjacency": EVIL}
    ledger.write_text(json.dumps(document))
    return [*outcomes, dpntk("budget", named(".images"))]


def strangers_release(dpntk: Command) -> Path:
    """Whatever a trusted stranger's file says in words is such a text."""
    released(dpntk)
    made = open_release(named(".release")).release
    assert isinstance(made.schema, ImageSchema)
    texts = EVIL + OVERRIDES.replace("\0", "")
    stranger = make_key(named(".stranger"))
    add("alice", stranger.public)
    # YAML hides control characters in a text, and shows a line break as one if there are no others.
    for name, text in ((".hostile", texts), (".lines", f"x\n\n{FORGED}: true")):
        hostile = replace(
            made,
            release_id=text,
            created=text,
            dpntk_version=text,
            statement=text,
            schema=replace(made.schema, classes=(text, f"{text}2")),
            guarantee=replace(made.guarantee, mechanism=text, accountant=text),
        )
        write_release(hostile, named(name), stranger)
    return named(".hostile")


@scenario
def inspect(dpntk: Command) -> list[Outcome]:
    hostile = strangers_release(dpntk)
    dpntk("distill", named(".images"), *DISTILL, "-o", named("2.release"))
    opened = open_any(named("2.release"))
    assert isinstance(opened.release, DistilledRelease)
    points = replace(opened.release, settings={"origin": EVIL}, release_id=EVIL)
    save_distilled(points, named("3.release"), own_key())
    labels = [dpntk("inspect", file) for file in (hostile, named("3.release"))]
    assert json.loads(dpntk("inspect", hostile, "--json").stdout)["created"].startswith(EVIL)
    return [
        *labels,
        dpntk("inspect", hostile, "--json"),
        dpntk("inspect", hostile, "--registry"),
        dpntk("inspect", named(".lines"), "--registry"),
        dpntk("inspect", hostile, "--page", named(".html")),
        dpntk("inspect", hostile, "--page", named(".images")),
        dpntk("inspect", hostile, "--signer", EVIL),
        dpntk("inspect", named(".missing")),
    ]


@scenario
def verify(dpntk: Command) -> list[Outcome]:
    hostile = strangers_release(dpntk)
    return [
        dpntk("verify", hostile, "--how"),
        dpntk("verify", hostile, "--key", named(".stranger.pub")),
        dpntk("verify", hostile, "--signer", EVIL, "--how"),
        dpntk("verify", hostile, "--key", named(".missing")),
        dpntk("verify", named(".missing")),
    ]


@scenario
def generate(dpntk: Command) -> list[Outcome]:
    hostile = strangers_release(dpntk)
    trained = dpntk("generate", hostile, "--steps", 2, "-n", 40, "-o", named(".out"))
    (named(".other")).mkdir()
    (named(".other") / EVIL).touch()
    return [
        trained,
        dpntk("generate", "--from", named(".out"), "-n", 4, "-o", named("2.out")),
        dpntk("generate", "--from", named(".missing"), "-o", named("3.out")),
        dpntk("generate", hostile, "--steps", 1, "-o", named(".other")),
        dpntk("generate", named(".missing"), "-o", named("3.out")),
        dpntk("generate", hostile, "--module", named(".missing"), "-o", named("3.out")),
    ]


@scenario
def evaluate(dpntk: Command) -> list[Outcome]:
    data = images(named(".images"))
    records, labels = draw_records(40)
    synthetic = named(".out")
    synthetic.mkdir()
    np.savez(synthetic / "images.npz", x=records.reshape(-1, 8, 8), y=labels % 2)
    provenance = {
        "classes": [f"{EVIL}0", f"{EVIL}1"],
        "release": {"private": False, "digest": EVIL, "epsilon": EVIL},
    }
    (synthetic / "provenance.json").write_text(json.dumps(provenance))
    held_out = table(named(".csv"))
    seen = write_schema(named(".toml"), Draft(TABLE))
    rows = ("evaluate", held_out, "--schema", seen, "--test", held_out, "-o", named(".json"))
    return [
        dpntk("evaluate", synthetic, "--test", data, "-o", named("2.json")),
        dpntk(*rows, "--train-records", 20),
        dpntk(*rows, "--positive", EVIL),
        dpntk("evaluate", named(".missing"), "--test", data, "-o", named("2.json")),
        dpntk("evaluate", synthetic, "--test", data, "--release", named(".missing")),
        dpntk("evaluate", synthetic, "--test", data, "-o", named(".images")),
    ]


@scenario
def report(dpntk: Command) -> list[Outcome]:
    hostile = strangers_release(dpntk)
    dpntk("generate", hostile, "--steps", 2, "-n", 40, "-o", named(".out"))
    shows = dpntk("report", hostile, named(".out"), "-o", named(".html"))
    page = named(".html").read_text()
    assert FORGED in page
    assert not hidden(page)
    return [
        shows,
        dpntk("report", hostile, named(".out"), "--public", "--test", named(".images")),
        dpntk("report", named(".missing"), named(".out")),
        dpntk("report", hostile, named(".out"), "-o", named(".images")),
    ]


@scenario
def audit(dpntk: Command) -> list[Outcome]:
    embedded(dpntk)
    return [
        dpntk("audit", named(".h5"), "--eps", 1, "--delta", 1e-3, "--runs", 100),
        dpntk("audit", named(".missing"), "--eps", 1),
    ]


@scenario
def trust(dpntk: Command) -> list[Outcome]:
    make_key(named(".key"))
    return [
        dpntk("trust", "add", "alice", named(".key.pub")),
        dpntk("trust", "add", EVIL, named(".key.pub")),
        dpntk("trust", "add", "bob", named(".missing")),
        dpntk("trust", "list"),
        dpntk("trust", "remove", EVIL),
        dpntk("trust", EVIL),
    ]


@scenario
def keygen(dpntk: Command) -> list[Outcome]:
    return [
        dpntk("keygen"),
        dpntk("keygen", "-o", named(".key")),
        dpntk("keygen", "-o", named(".key")),
    ]


@scenario
def demo(dpntk: Command) -> list[Outcome]:
    made = [dpntk("demo", "--table", "-o", named(".demo")), dpntk("demo", "-o", named(".2"))]
    return [*made, dpntk("demo", "-o", named(".demo"))]


@scenario
def doctor(dpntk: Command) -> list[Outcome]:
    strange = dpntk("doctor")
    default_key_path().parent.mkdir(parents=True)
    default_key_path().write_text(EVIL)
    allowed_path().write_text(EVIL)
    return [strange, dpntk("doctor"), dpntk("doctor", "--json")]


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_no_command_shows_what_a_name_wants_it_to(command: str, dpntk: Command) -> None:
    require_honest(*SCENARIOS[command](dpntk))


def test_every_kind_of_character_is_tried() -> None:
    tried = EVIL + OVERRIDES
    overrides = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f"
    assert set(overrides) <= set(tried)
    assert {unicodedata.category(c) for c in tried} >= {"Cc", "Cf", "Zl", "Zp"}
    assert hidden(tried) == set(tried) - set("\nx[2K1A" + FORGED)


def test_names_that_are_no_text_are_shown(dpntk: Command) -> None:
    """File names are bytes; printing what they become in Python would fail."""
    missing = "not-utf-8-\udcff"
    outcome = dpntk("embed", missing)
    assert outcome.code == 1
    assert outcome.stderr == "error: not-utf-8-\\udcff: there is no such file or folder\n"


def test_what_can_be_shown_is_shown_as_it_is() -> None:
    for honest in ("Größe in cm", "年齢", "العمر", "C:\\data", "[bold]", ":smile:", "👍"):
        assert shown(honest) == honest


def test_the_bar_of_progress_shows_file_names(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.StringIO()
    terminal = Console(file=screen, force_terminal=True, width=400, markup=False)
    monkeypatch.setattr(printing.console, "terminal", terminal)
    with printing.progress("listing", 2, "bytes") as advance:
        advance(1, f"[bold]{EVIL}")
    drawn = screen.getvalue()
    assert "[bold]x\\x1b" in drawn
    assert not set("\u202e\u2028\x9b\u200b\x07") & set(drawn)
    assert f"\n{FORGED}" not in drawn
