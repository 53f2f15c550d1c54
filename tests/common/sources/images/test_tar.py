"""Tar shards: names and labels as WebDataset has them, and nothing on the disk."""

from __future__ import annotations

import io
import json
import tarfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dpntk.common.errors import SchemaError
from dpntk.common.sources import Batch, SourceOptions, open_source, require_public_form
from tests.helpers.data_sets import IMAGES, RECORDS, encoded, write_tar


def only_batch(path: Path) -> Batch:
    (batch,) = open_source(path).batches(100)
    return batch


def test_digits_come_before_json_and_spaces_do_not_matter(tmp_path: Path) -> None:
    members = [
        ("0.json", b'{"label": 2, "source": {"label": 9}}'), ("0.png", encoded(IMAGES[4])),
        ("1.json", b"broken, and not looked at"), ("1.png", encoded(IMAGES[5])), ("1.cls", b" 1\n"),
        ("2.PNG", encoded(IMAGES[6])), ("2.JSON", b'{"label": 0}'),
    ]  # fmt: skip
    batch = only_batch(write_tar(tmp_path / "a.tar", members))
    assert batch.labels.tolist() == [2, 1, 0]
    assert np.array_equal(batch.records, RECORDS[4:7])


@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_names_of_any_length_and_alphabet(tmp_path: Path, form: int) -> None:
    """Same keys in different folders are different records."""
    long = "folder/" * 18
    with tarfile.open(tmp_path / "a.tar", "w", format=form) as archive:
        for index, key in enumerate(["a/x", "b/x", f"{long}x", f"{long}y", "Zoë"]):
            for kind, content in (("png", encoded(IMAGES[index])), ("cls", b"%d" % index)):
                member = tarfile.TarInfo(f"{key}.{kind}")
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
    batch = only_batch(tmp_path / "a.tar")
    assert batch.labels.tolist() == [0, 1, 2, 3, 4]
    assert np.array_equal(batch.records, RECORDS[:5])


def test_members_that_are_no_records_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "a.tar"
    with tarfile.open(path, "w") as archive:
        for name, kind in (("sub.dir", tarfile.DIRTYPE), ("link.txt", tarfile.SYMTYPE)):
            member = tarfile.TarInfo(name)
            member.type = kind
            archive.addfile(member)
        for name, content in (
            ("./._0.png", b"what macOS adds"), ("./0.png", encoded(IMAGES[3])),
            ("./0.txt", b"a caption"), ("./0.json", json.dumps({"label": 1}).encode()),
            ("./.png", b"no key"), ("notes", b""),
        ):  # fmt: skip
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    assert np.array_equal(only_batch(path).records, RECORDS[3:4])


def test_nothing_is_ever_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outside = tmp_path / "outside.png"
    folder = tmp_path / "data"
    folder.mkdir()
    members = [(f"{key}.{kind}", content) for key in (str(outside)[:-4], "../up", "in")
               for kind, content in (("png", encoded(IMAGES[3])), ("cls", b"1"))]  # fmt: skip
    write_tar(folder / "a.tar", members)
    monkeypatch.chdir(folder)
    before = sorted(tmp_path.rglob("*"))
    assert len(only_batch(folder).labels) == 3
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("labelled", [True, False])
def test_a_single_image_does_not_say_whether_there_are_labels(
    tmp_path: Path, labelled: bool
) -> None:
    """It would show in a release: classes are looked up in labels, and unlabelled images have one.

    Two images both have labels, or neither has.
    """
    path = tmp_path / "one.tar"
    label = [("a.cls", b"0")] if labelled else []
    write_tar(path, [("a.png", encoded(IMAGES[0])), *label])
    form = SourceOptions(image_size=8, channels=1)
    with pytest.raises(SchemaError, match="declare the classes with classes or class_na"):
        require_public_form(open_source(path, form))
    require_public_form(open_source(path, replace(form, classes=1)))
    two = ("b.cls", b"0") if labelled else ("b.txt", b"")
    write_tar(path, [("a.png", encoded(IMAGES[0])), *label, ("b.png", encoded(IMAGES[1])), two])
    require_public_form(open_source(path, form))
