"""The four commands as a user runs them, and what they say when something is wrong."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from dpntk.common.cli.app import run as in_this_process
from dpntk.evaluate.images import classifiers
from tests.conftest import SIDE, Command, draw_records, refused

Process = Callable[..., "subprocess.CompletedProcess[str]"]


def statement(dpntk: Command, release: str) -> str:
    """What `dpntk inspect` says, on one line."""
    return " ".join(dpntk("inspect", release).stdout.replace("│", " ").split())


def test_classes_are_looked_up_and_said_or_declared(dpntk: Command, folder: Path) -> None:
    assert dpntk("embed", folder, "--width", 5, "-o", "seen.h5").code == 0
    assert dpntk("release", "seen.h5", "--eps", 1, "--delta", 1e-3, "-o", "1.h5").code == 0
    assert "Looked up in the records: number and names of the classes." in statement(dpntk, "1.h5")
    (folder / "d, e").mkdir()
    refused(dpntk("embed", folder, "--width", 5), "without an image", "--class-names")
    odd = dpntk("embed", folder, "--width", 5, "--class-names", "a,,b")
    refused(odd, "--class-names", "an empty name")
    declared = dpntk("embed", folder, "--width", 5, "--class-names", 'c, b,"d, e",a')
    assert declared.code == 0, declared.stderr
    assert "looked up" not in declared.stderr
    assert "no record is of 1 class of 4" in declared.stderr
    assert dpntk("release", "--eps", 1, "--delta", 1e-3).code == 0
    said = statement(dpntk, "release.h5")
    assert "Looked up" not in said
    assert "c, b, d, e, a" in said


def digits(folder: Path) -> Path:
    program = Path(__file__).parents[2] / "benchmarks" / "material" / "digits.py"
    subprocess.run([sys.executable, program, folder], check=True)
    return folder


def test_from_a_folder_of_images_to_a_table_of_accuracies(
    dpntk: Command,
    dpntk_process: Process,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    digits(tmp_path / "digits")

    def run(*arguments: object) -> str:
        finished = dpntk_process(*arguments, cwd=tmp_path)
        assert finished.returncode == 0, finished.stderr
        assert "━" not in finished.stderr  # no progress bar where there is no terminal
        return finished.stdout + finished.stderr

    said = run("embed", "digits", "--width", "100")
    assert "1,438 images of 8x8 pixels in 10 classes" in said
    assert "SENSITIVE" in said
    assert (tmp_path / "embedding.h5").stat().st_mode & 0o777 == 0o600

    # so little data needs a large epsilon to show that the path works
    assert "epsilon 50" in run("release", "--eps", "50")
    assert "loss" in run("generate", "release.h5", "--steps", "300", "-n", "2000")
    # As many steps as such small images take; of the CNN nothing is asked.
    monkeypatch.setattr(classifiers, "_MLP_STEPS", 600)
    monkeypatch.setattr(classifiers, "_CNN_STEPS", 5)
    capfd.readouterr()
    assert in_this_process(["evaluate", "synthetic", "--test=digits", "--baseline=digits"]) == 0
    table = capfd.readouterr().out
    assert "synthetic (epsilon 50)" in table
    assert "real " in table

    figures = json.loads((tmp_path / "evaluation.json").read_text())
    synthetic, real = figures["rows"]
    assert figures["test_records"] == 359
    classes = (tmp_path / "digits" / "test").iterdir()
    most = max(len(list(folder.iterdir())) for folder in classes) / 359
    assert figures["most_frequent_class"] == pytest.approx(most)
    assert f"always answering the most frequent class: {most:.3f}" in " ".join(table.split())
    assert synthetic["MLP"] > 0.6
    assert real["MLP"] > 0.9

    sampler = tmp_path / "synthetic" / "generator.safetensors"
    assert dpntk("generate", "--from", sampler, "-n", "7", "-o", "more").code == 0
    with np.load(tmp_path / "more" / "images.npz") as more:
        assert more["x"].shape == (7, 8, 8)

    assert dpntk("generate", "--from", sampler, "--points", "2", "-o", "points").code == 0
    with np.load(tmp_path / "points" / "points.npz") as points:
        assert points["x"].shape == (20, 64)
    assert dpntk("evaluate", "points", "--test", "digits", "-o", "points.json").code == 0
    (scores,) = json.loads((tmp_path / "points.json").read_text())["rows"]
    assert scores["kernel regression"] > 0.6


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--arch", "fc_2l", "--width", "9_5"], "fc_2l, width 9_5, on scattering"),
        (["--arch", "fc_2l", "--front", "pixels"], "fc_2l, width 400_100, on pixels"),
        (["--arch", "cnn_1l", "--width", "3"], "cnn_1l, width 3, on pixels"),
        (["--arch", "cnn_2l", "--width", "3_4"], "cnn_2l, width 3_4, on pixels"),
        (["--width", "9", "--activation", "softsign"], "fc_1l, width 9, on scattering"),
    ],
    ids=str,
)
def test_every_architecture_goes_the_whole_path(
    dpntk: Command, folder: Path, tmp_path: Path, options: list[str], said: str
) -> None:
    assert dpntk("embed", folder, *options).code == 0
    assert dpntk("release", "--eps", "5", "--delta", "1e-3").code == 0
    assert said in dpntk("inspect", "release.h5").stdout
    made = dpntk("generate", "release.h5", "--steps", "20", "-n", "30")
    assert made.code == 0, made.stderr
    with np.load(tmp_path / "synthetic" / "images.npz") as images:
        assert images["x"].shape == (30, SIDE, SIDE)


def test_what_is_looked_up_names_the_option_that_declares_it(
    dpntk: Command, tmp_path: Path
) -> None:
    records, labels = draw_records(20)
    np.savez(tmp_path / "a.npz", x=records, y=labels)
    looked_up = dpntk("embed", "a.npz", "--width", "5")
    assert "number and names of the classes; declare with --classes\n" in looked_up.stderr
    assert "dpntk plan embedding.h5 --eps 1\n" in looked_up.stderr
    declared = dpntk("embed", "a.npz", "--width", "5", "--classes", "3", "--overwrite")
    assert "looked up" not in declared.stderr


def test_classes_without_records_are_said(dpntk: Command, tmp_path: Path) -> None:
    np.savez(tmp_path / "gap.npz", x=np.zeros((4, 8, 8), np.uint8), y=np.array([0, 0, 3, 3]))
    made = dpntk("embed", "gap.npz", "--width", "3")
    assert made.code == 0
    assert "no record is of 2 classes of 4" in " ".join(made.stderr.split())


def test_networks_that_do_not_exist_get_one_line(dpntk: Command, folder: Path) -> None:
    for options, message in (
        (["--arch", "fc_2l", "--width", "9"], "give a width for each, as in --width 400_100"),
        (["--width", "9_5"], "has 1 hidden layer(s)"),
        (["--width", "many"], "write 400, or 3000_200"),
        (["--arch", "cnn_1l", "--front", "scattering"], "takes the pixels themselves"),
        (["--preset", "mnist", "--width", "9"], "--preset mnist says which network"),
        (["--preset", "mnist", "--features", "rff"], "it goes with --features ntk, not rff"),
        (["--features", "hermite", "--width", "5"], "goes with --features ntk, not hermite"),
        (["--frequencies", "9"], "--frequencies 9: it goes with --features rff, not ntk"),
        (["--length-scale", "2"], "--length-scale 2: it goes with --features rff, not ntk"),
        (["--classes", "2"], "its folders name 3 classes, but 2 are declared"),
        (["--target", "age"], "--target age: it goes with tables, and these are images"),
    ):
        outcome = dpntk("embed", folder, *options)
        assert outcome.code == 1
        assert message in " ".join(outcome.stderr.split())
        assert not Path("embedding.h5").exists()


def test_embedding_and_release_are_not_overwritten_by_accident(
    dpntk: Command, folder: Path, tmp_path: Path
) -> None:
    embed = ["embed", folder, "--width", "5"]
    release = ["release", "--eps", "1", "--delta", "1e-3", "--compose"]
    assert dpntk(*embed).code == 0
    first = (tmp_path / "embedding.h5").read_bytes()
    assert dpntk(*embed, "--overwrite").code == 0
    assert (tmp_path / "embedding.h5").read_bytes() == first  # the same to the last bit
    assert dpntk(*release).code == 0

    before = (tmp_path / "embedding.h5").read_bytes(), (tmp_path / "release.h5").read_bytes()
    for again in (embed, release):
        outcome = dpntk(*again)
        assert outcome.code == 1
        assert "--overwrite" in outcome.stderr
    assert before == (
        (tmp_path / "embedding.h5").read_bytes(),
        (tmp_path / "release.h5").read_bytes(),
    )


@pytest.mark.parametrize(
    "line",
    [
        "schema data.csv --overwrite -o data.csv",
        "bounds --schema schema.toml --eps 1 --overwrite -o data.csv",
        "embed images --overwrite -o data.csv",
        "merge embedding.h5 --overwrite -o data.csv",
        "release --eps 1 --delta 1e-3 --overwrite -o embedding.h5",
        "distill images --eps 1 --delta 1e-3 --overwrite -o embedding.h5",
        "evaluate --test images -o embedding.h5",
    ],
)
def test_no_command_replaces_its_input(
    dpntk: Command, folder: Path, embedding_file: Path, tmp_path: Path, line: str
) -> None:
    assert folder.name == "images"
    data = tmp_path / "data.csv"
    data.write_text("age,job\n3,a\n5,b\n")
    before = data.read_bytes(), embedding_file.read_bytes()
    outcome = dpntk(*line.split())
    assert outcome.code == 1
    assert "is another kind of file" in outcome.stderr
    assert (data.read_bytes(), embedding_file.read_bytes()) == before


def test_the_ledger_outlives_a_new_embedding(dpntk: Command, folder: Path, tmp_path: Path) -> None:
    """Embedding the same records again must not make what was spent look like nothing."""
    dpntk("embed", folder, "--width", "5")
    dpntk("release", "--eps", "1", "--delta", "1e-3")
    assert dpntk("embed", folder, "--width", "7", "--overwrite").code == 0
    again = dpntk("release", "--eps", "1", "--delta", "1e-3", "-o", "second.h5")
    assert again.code == 1
    assert "was released before" in again.stderr


@pytest.fixture
def prepared(dpntk: Command, folder: Path) -> Path:
    """A folder with images, an embedding and a release."""
    dpntk("embed", folder, "--width", "5")
    dpntk("release", "--eps", "1", "--delta", "1e-3")
    Image.new("L", (9, 9)).save(folder.parent / "odd.png")
    (folder.parent / "empty").mkdir()
    (folder.parent / "text.h5").write_text("text")
    (folder.parent / "others").mkdir()
    (folder.parent / "others" / "thesis.txt").touch()
    np.savez(folder.parent / "far.npz", x=np.zeros((2, 9, 9), np.uint8), y=[0, 70_000])
    return folder.parent


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("embed missing -o e.h5", "missing: there is no such file or folder"),
        ("embed empty -o e.h5", "neither class folders"),
        ("embed odd.png -o e.h5", "not a kind of file"),
        ("embed images -o nowhere/e.h5", "nowhere is not a folder"),
        ("embed images -o empty", "empty is a folder"),
        ("embed images -o e.h5 --width 0", "--width 0: a width is from 1 to"),
        ("embed images -o e.h5 --image-size 100", "'--image-size': 100 is not in the range"),
        ("embed images -o e.h5 --device tpu9", "--device tpu9: no such device"),
        ("embed images -o e.h5 --arch fc_9l", "'fc_9l' is not"),
        ("embed images -o e.h5 --capacity 20", "more than 20 records"),
        (
            "embed far.npz -o e.h5",
            "too large: labels are 0 to 9999 at most; if they have gaps, name them with "
            "--class-names ('70000')",
        ),
        ("release --eps 0 -o r.h5", "--eps 0: it must be a positive number"),
        ("release --eps -1 -o r.h5", "--eps -1: it must be a positive number"),
        ("release --eps nan -o r.h5", "--eps nan: it must be a positive number"),
        ("release --eps inf -o r.h5", "epsilon inf adds no noise"),
        ("release --eps one -o r.h5", "'one' is not a valid float"),
        ("release --eps 1 --delta 0 -o r.h5", "--delta 0: it must lie between 0 and 1"),
        ("release --eps 1 --delta 0.1 -o r.h5", "--delta 0.1 is not below 1/n"),
        (
            "release --eps 1 --delta 1e-3 -o r.h5",
            "was released before: with this release the total",
        ),
        ("embed images -o e.h5 --budget-eps 0", "--budget-eps 0: it must be a positive number"),
        ("embed images -o e.h5 --budget-eps 9e-5", "--budget-eps 9e-05: 0.0001 is the least"),
        ("embed images -o e.h5 --budget-eps 1 --budget-delta 1e-101", "1e-100 is the least"),
        ("embed images -o e.h5 --budget-delta 1e-6", "--budget-eps"),
        ("budget missing.h5", "missing.h5: there is no such file"),
        ("release missing.h5 --eps 1 -o r.h5", "missing.h5: there is no such file"),
        ("release nowhere/e.h5 --eps 1 -o r.h5", "nowhere/e.h5: there is no such file"),
        ("release text.h5 --eps 1 -o r.h5", "text.h5: not a dpntk embedding"),
        ("release release.h5 --eps 1 -o r.h5", "release.h5: not a dpntk embedding"),
        ("generate missing.h5", "missing.h5: there is no such file"),
        ("generate embedding.h5", "is an embedding, not a release: it is SENSITIVE"),
        ("generate text.h5", "text.h5: not a dpntk release"),
        ("generate release.h5 -o others", "others holds more than an earlier result"),
        ("generate release.h5 -o text.h5", "text.h5 is a file"),
        ("generate release.h5 -n 0", "'--records': 0 is not in the range"),
        ("generate --from text.h5", "text.h5: not a generator"),
        ("generate release.h5 --points 5000", "--points 5000: 15,000 in all classes; at most"),
        ("generate release.h5 --steps 5 --lr 10 --device cuda:99", "no such device"),
        ("evaluate missing --test images", "missing: there is no such folder"),
        ("evaluate empty --test images", "there is neither images.npz nor a table in it"),
    ],
)
def test_bad_input_is_one_clear_line_and_leaves_nothing(
    dpntk: Command, prepared: Path, arguments: str, words: str
) -> None:
    before = sorted(prepared.rglob("*"))
    outcome = dpntk(*arguments.split())
    refused(outcome, words)
    assert outcome.stdout == ""
    assert sorted(prepared.rglob("*")) == before


@pytest.mark.parametrize(
    "arguments",
    [
        "embed images -o e.h5",
        "release --eps 1 --delta 1e-3 -o r.h5 --compose",
        "generate --steps 1 -o s",
    ],
)
def test_a_disk_that_fills_up_leaves_nothing(
    dpntk: Command, prepared: Path, arguments: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_space(_: int) -> None:
        raise OSError(28, "No space left on device")

    before = sorted(prepared.rglob("*"))
    monkeypatch.setattr(os, "fsync", no_space)
    refused(dpntk(*arguments.split()), "No space left on device")
    assert sorted(prepared.rglob("*")) == before


def test_interrupting_leaves_nothing(dpntk: Command, tmp_path: Path) -> None:
    """Ctrl-C in the middle of the training: one line, exit code 1, no folder."""
    records, labels = draw_records(50)
    np.savez(tmp_path / "data.npz", x=records.reshape(-1, SIDE, SIDE), y=labels)
    program = Path(sys.executable).parent / "dpntk"
    assert dpntk("embed", "data.npz", "--width", "5").code == 0
    assert dpntk("release", "--eps", "1", "--delta", "1e-3").code == 0
    before = sorted(tmp_path.iterdir())

    # A terminal makes the progress bar appear, which shows that the training is under way.
    terminal, its_end = os.openpty()
    with subprocess.Popen(
        [program, "generate", "release.h5", "--steps", "1000000"],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=its_end,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "150"},
        # a shell may have started the tests with interrupts switched off
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as running:  # fmt: skip
        os.close(its_end)
        shown = read_until(terminal, b"noise floor")
        running.send_signal(signal.SIGINT)
        shown += read_until(terminal, None)
        try:
            assert running.wait(timeout=60) == 1
        finally:
            running.kill()
    os.close(terminal)
    assert b"interrupted\r\n" in shown
    assert b"Traceback" not in shown
    assert sorted(tmp_path.iterdir()) == before


def read_until(terminal: int, words: bytes | None) -> bytes:
    """Read what a program shows until it shows some words, or (None) until it ends."""
    shown = b""
    deadline = time.monotonic() + 60
    while words is None or words not in shown:
        ready, _, _ = select.select([terminal], [], [], max(0, deadline - time.monotonic()))
        assert ready, f"nothing more after {shown!r}"
        try:
            shown += os.read(terminal, 4096)
        except OSError:  # the program has ended, and with it its terminal
            break
    return shown
