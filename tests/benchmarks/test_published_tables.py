"""Tables of the paper that are not given: made-up files of their form become tables and schemas."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmarks.material import published_tables
from benchmarks.tables import prepare
from dpntk.common.schema.drafts.toml import read_schema
from dpntk.common.sources.options import SourceOptions
from dpntk.embed import TangentOptions, embed

ROWS = 60
RANDOM = np.random.default_rng(0)
FINDINGS = ["condylomatosis", "cervical condylomatosis", "syphilis", "HIV", "HPV"]


def cervical(path: Path) -> None:
    yes_or_no = ["Smokes", "Hormonal Contraceptives", "IUD", "STDs"]
    told = ["Dx:Cancer", "Dx:CIN", "Dx:HPV", "Dx", "Hinselmann", "Schiller", "Citology", "Biopsy"]
    table = pd.DataFrame({"Age": RANDOM.integers(13, 80, ROWS)})
    for name in ("Number of sexual partners", "First sexual intercourse", "Num of pregnancies"):
        table[name] = RANDOM.integers(6, 12, ROWS).astype(float)
    for name in (*yes_or_no, *(f"STDs:{finding}" for finding in FINDINGS), *told):
        table[name] = RANDOM.integers(0, 2, ROWS).astype(float)
    for name in ("Smokes (years)", "Smokes (packs/year)", "IUD (years)", "STDs (number)"):
        table[name] = RANDOM.integers(0, 5, ROWS).astype(float)
    table["Hormonal Contraceptives (years)"] = RANDOM.uniform(0, 9, ROWS).round(3)
    table["STDs: Number of diagnosis"] = 1
    for name in ("STDs: Time since first diagnosis", "STDs: Time since last diagnosis"):
        table[name] = "?"
    unknown = table.astype(object)
    unknown.loc[::7, ["Smokes", "First sexual intercourse", "IUD (years)", "STDs:HIV"]] = "?"
    unknown.to_csv(path, index=False)


def epileptic(path: Path) -> None:
    points = {f"X{number}": RANDOM.integers(-1900, 2000, ROWS) for number in range(1, 179)}
    names = {"": [f"X{number}.V1" for number in range(ROWS)]}
    pd.DataFrame(names | points | {"y": RANDOM.integers(1, 6, ROWS)}).to_csv(path, index=False)


def isolet(path: Path) -> None:
    values = RANDOM.uniform(-1, 1, (ROWS, 617)).round(4)
    letters = RANDOM.integers(1, 27, ROWS)
    lines = [", ".join([*map(str, row), f"{n}."]) for row, n in zip(values, letters, strict=True)]
    path.write_text("\n".join(lines) + "\n")


def intrusion(path: Path) -> None:
    lines = []
    for number in range(ROWS):
        head = ["0", ["tcp", "udp", "icmp"][number % 3], ["http", "unheard_of"][number % 2], "SF"]
        counts = [*RANDOM.integers(0, 10**6, 2), 0, 3, 0, 7, 0, 1, 12, 0, 1, 3, 1, 0, 2, 0, 0, 1]
        rates = RANDOM.random((2, 7)).round(2)
        hosts = [*RANDOM.integers(0, 256, 2), 0.5]
        attack = ["normal", "smurf", "satan", "guess_passwd", "rootkit"][number % 5]
        values = [*head, *counts, 8, 9, *rates[0], *hosts, *rates[1], f"{attack}."]
        lines.append(",".join(map(str, values)))
    path.write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize(
    ("name", "write", "columns", "classes"),
    [
        ("Cervical", cervical, 27, ("0", "1")),
        ("Epileptic", epileptic, 179, ("0", "1")),
        ("Isolet", isolet, 618, ("vowel", "consonant")),
        ("Intrusion", intrusion, 41, ("normal", "dos", "probe", "r2l", "u2r")),
    ],
)
def test_a_public_file_becomes_a_table_with_its_schema(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    name: str,
    write: Callable[[Path], None],
    columns: int,
    classes: tuple[str, ...],
) -> None:
    """All rows are read by the schema, without a value beyond its bounds, and embedded."""
    write(tmp_path / "raw")
    published_tables.main([name, str(tmp_path / "raw"), str(tmp_path / "made")])
    told = capsys.readouterr().out.split()[-1]
    assert told.startswith(f"{name}={tmp_path}/made:")
    schema = read_schema(tmp_path / "made/schema.toml")
    assert (len(schema.columns), schema.classes) == (columns, classes)
    assert not schema.from_data
    data = prepare(name, told.partition("=")[2], tmp_path / "parts")
    assert data.schema == schema
    features = TangentOptions(width=2, pairs=("none",), moments=0)
    embedding = embed(data.train, features, SourceOptions(schema=schema))
    assert embedding.records == round(0.8 * ROWS)
    assert (embedding.counts > 0).all()
    assert "beyond" not in capsys.readouterr().err


def test_what_the_columns_hold(tmp_path: Path) -> None:
    for name, write in (("Cervical", cervical), ("Intrusion", intrusion), ("Isolet", isolet)):
        write(tmp_path / name)
        published_tables.main([name, str(tmp_path / name), str(tmp_path / f"of {name}")])
    of_cervical, of_intrusion, of_isolet = (
        pd.read_csv(tmp_path / f"of {name}/table.csv")
        for name in ("Cervical", "Intrusion", "Isolet")
    )
    assert of_cervical["Smokes"].isna().sum() == len(range(0, ROWS, 7))
    assert not [column for column in of_cervical if "Time since" in column]
    kinds = ["normal", "dos", "probe", "r2l", "u2r"]
    assert of_intrusion["attack"].tolist() == [kinds[number % 5] for number in range(ROWS)]
    assert "num_outbound_cmds" not in of_intrusion
    assert set(of_intrusion["dst_host_srv_rerror_rate"].between(0, 1)) == {True}
    letters = (tmp_path / "Isolet").read_text().split("\n")[:-1]
    vowels = [int(line.split(",")[-1].strip(" .")) in {1, 5, 9, 15, 21} for line in letters]
    assert (of_isolet["letter"] == "vowel").tolist() == vowels
