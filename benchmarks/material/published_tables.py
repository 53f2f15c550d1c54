"""The four tables of the DP-NTK paper that are not given: from their public files to benchmarks.

    python -m benchmarks.material.published_tables NAME FILE FOLDER
    python -m benchmarks.tables NAME=FOLDER:LABEL

NAME is Cervical, Epileptic, Isolet or Intrusion. FILE is as the UCI machine learning repository or
the UCI KDD archive has it:

- Cervical: `risk_factors_cervical_cancer.csv` (set 383). Label `Biopsy`. The two times since a
  diagnosis, which nearly nobody has, are left out.
- Epileptic: `data.csv` (set 388). Label `y`: a seizure (1 in the file) or not (2 to 5).
- Isolet: `isolet1+2+3+4.data` or `isolet5.data` (set 54), or both in one. Label `letter`: a vowel
  or a consonant, since the paper has two classes and does not say which.
- Intrusion: `kddcup.data_10_percent`, gzipped or not. Label `attack`: normal, or one of the four
  kinds of attack of the task's description. The number of outbound commands, always 0, is left out.

FOLDER gets `table.csv` and `schema.toml`. What the schema says is from the public descriptions;
where they give no bounds, these are what such numbers can be, or for sums of bytes what 32 bits
hold.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

import pandas as pd

from dpntk.common.schema.columns.column import Column
from dpntk.common.schema.drafts.toml import save_schema
from dpntk.common.schema.table import TableSchema

NO_YES: Final = ("0", "1")
LOG: Final = "log1p"


def _yes_or_no(name: str, *, missing: bool = False) -> Column:
    return Column.boolean(name, NO_YES, dtype="int64" if not missing else "string", missing=missing)


def _texts(values: pd.Series) -> pd.Series:
    """Numbers such as 1.0 as texts such as 1."""
    numbers = pd.to_numeric(values, errors="coerce")
    return numbers.map(lambda number: "" if pd.isna(number) else f"{number:.0f}")


def _cervical(file: Path) -> tuple[pd.DataFrame, TableSchema]:
    wholes = {
        "Age": (10, 100),
        "Number of sexual partners": (0, 50),
        "First sexual intercourse": (5, 60),
        "Num of pregnancies": (0, 20),
        "STDs (number)": (0, 12),
        "STDs: Number of diagnosis": (0, 12),
    }
    years = {
        "Smokes (years)": 80.0,
        "Smokes (packs/year)": 100.0,
        "Hormonal Contraceptives (years)": 50.0,
        "IUD (years)": 50.0,
    }
    left_out = ["STDs: Time since first diagnosis", "STDs: Time since last diagnosis"]
    table = pd.read_csv(file, na_values=["?"]).drop(columns=left_out)
    columns = []
    for name in table:
        if name in wholes:
            columns.append(Column.integer(name, *wholes[name], missing=name != "Age"))
            table[name] = _texts(table[name])
        elif name in years:
            columns.append(Column.continuous(name, 0.0, years[name], decimals=2, missing=True))
        else:
            told = name in {"Hinselmann", "Schiller", "Citology", "Biopsy"} or name.startswith("Dx")
            columns.append(_yes_or_no(name, missing=not told))
            table[name] = _texts(table[name])
    return table, TableSchema(tuple(columns), "Biopsy")


def _epileptic(file: Path) -> tuple[pd.DataFrame, TableSchema]:
    points = [f"X{number}" for number in range(1, 179)]
    read = pd.read_csv(file)
    table = pd.concat([read[points], (read["y"] == 1).astype(int)], axis=1)
    # Microvolts, by a converter of 12 bits.
    columns = [Column.integer(name, -2048, 2047) for name in points]
    return table, TableSchema((*columns, _yes_or_no("y")), "y")


def _isolet(file: Path) -> tuple[pd.DataFrame, TableSchema]:
    features = [f"f{number}" for number in range(1, 618)]
    table = pd.read_csv(file, header=None, names=[*features, "letter"], skipinitialspace=True)
    letters = table["letter"].map(lambda number: "ABCDEFGHIJKLMNOPQRSTUVWXYZ"[int(number) - 1])
    table["letter"] = letters.isin(list("AEIOU")).map({True: "vowel", False: "consonant"})
    columns = [Column.continuous(name, -1.0, 1.0, decimals=4) for name in features]
    label = Column.categorical("letter", ["vowel", "consonant"])
    return table, TableSchema((*columns, label), "letter")


_KINDS: Final = {
    "dos": "back land neptune pod smurf teardrop",
    "probe": "ipsweep nmap portsweep satan",
    "r2l": "ftp_write guess_passwd imap multihop phf spy warezclient warezmaster",
    "u2r": "buffer_overflow loadmodule perl rootkit",
}
_SERVICES: Final = """
    IRC X11 Z39_50 aol auth bgp courier csnet_ns ctf daytime discard domain domain_u echo eco_i
    ecr_i efs exec finger ftp ftp_data gopher harvest hostnames http http_2784 http_443 http_8001
    imap4 iso_tsap klogin kshell ldap link login mtp name netbios_dgm netbios_ns netbios_ssn
    netstat nnsp nntp ntp_u other pm_dump pop_2 pop_3 printer private red_i remote_job rje shell
    smtp sql_net ssh sunrpc supdup systat telnet tftp_u tim_i time urh_i urp_i uucp uucp_path vmnet
    whois
"""
_FLAGS: Final = "OTH REJ RSTO RSTOS0 RSTR S0 S1 S2 S3 SF SH"


def _intrusion(file: Path) -> tuple[pd.DataFrame, TableSchema]:
    rates = [
        "serror_rate", "srv_serror_rate", "rerror_rate", "srv_rerror_rate", "same_srv_rate",
        "diff_srv_rate", "srv_diff_host_rate",
    ]  # fmt: skip
    of_host = [
        "dst_host_same_srv_rate", "dst_host_diff_srv_rate", "dst_host_same_src_port_rate",
        "dst_host_srv_diff_host_rate", "dst_host_serror_rate", "dst_host_srv_serror_rate",
        "dst_host_rerror_rate", "dst_host_srv_rerror_rate",
    ]  # fmt: skip
    most, many = 2**32 - 1, 10_000

    def amount(name: str, upper: int = many) -> Column:
        return Column.integer(name, 0, upper, transform=LOG)

    columns = [
        amount("duration", 100_000),
        Column.categorical("protocol_type", ["icmp", "tcp", "udp"]),
        Column.categorical("service", _SERVICES.split(), other="other"),
        Column.categorical("flag", _FLAGS.split()),
        amount("src_bytes", most),
        amount("dst_bytes", most),
        _yes_or_no("land"),
        Column.integer("wrong_fragment", 0, 3),
        Column.integer("urgent", 0, 14),
        Column.integer("hot", 0, 127),
        Column.integer("num_failed_logins", 0, 5),
        _yes_or_no("logged_in"),
        amount("num_compromised"),
        _yes_or_no("root_shell"),
        Column.integer("su_attempted", 0, 2),
        amount("num_root"),
        Column.integer("num_file_creations", 0, 127),
        Column.integer("num_shells", 0, 5),
        Column.integer("num_access_files", 0, 20),
        _yes_or_no("is_host_login"),
        _yes_or_no("is_guest_login"),
        Column.integer("count", 0, 511),
        Column.integer("srv_count", 0, 511),
        *(Column.continuous(name, 0.0, 1.0, decimals=2) for name in rates),
        Column.integer("dst_host_count", 0, 255),
        Column.integer("dst_host_srv_count", 0, 255),
        *(Column.continuous(name, 0.0, 1.0, decimals=2) for name in of_host),
    ]
    names = [column.name for column in columns]
    constant = "num_outbound_cmds"
    every = [*names[:19], constant, *names[19:], "attack"]
    table = pd.read_csv(file, header=None, names=every).drop(columns=[constant])
    kind_of = {name: kind for kind, attacks in _KINDS.items() for name in attacks.split()}
    attack = table["attack"].str.rstrip(".")
    table["attack"] = attack.map({"normal": "normal", **kind_of})
    label = Column.categorical("attack", ["normal", *_KINDS])
    return table, TableSchema((*columns, label), "attack")


PUBLISHED: Final = {
    "Cervical": _cervical,
    "Epileptic": _epileptic,
    "Isolet": _isolet,
    "Intrusion": _intrusion,
}


def main(arguments: list[str] | None = None) -> None:
    """Write table and schema of one of them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("name", choices=PUBLISHED)
    parser.add_argument("file", type=Path)
    parser.add_argument("folder", type=Path)
    said = parser.parse_args(arguments)
    table, schema = PUBLISHED[said.name](said.file)
    said.folder.mkdir(parents=True, exist_ok=True)
    table.to_csv(said.folder / "table.csv", index=False)
    save_schema(schema, said.folder / "schema.toml", overwrite=True)
    print(f"python -m benchmarks.tables {said.name}={said.folder}:{schema.label}")


if __name__ == "__main__":
    main()
