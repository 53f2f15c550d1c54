"""Which feature map makes the most useful records: one table, by the same code for all.

For each data set, map and seed: embed, release at epsilon 1 (replace-one, delta 1e-5), generate
60,000 records with the default settings and equal steps, train the classifiers of `dpntk evaluate`
on them, and test these on the real test images. Nothing is chosen by these figures. Finished runs
are kept in benchmarks/results.json, so an interrupted table is gone on with; the table is written
to benchmarks/results.md.

Run: python benchmarks/maps.py NAME=FOLDER [NAME=FOLDER ...] [--seeds N]
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
from pathlib import Path
from typing import Any

from dpntk.embed import embed, save_embedding
from dpntk.evaluate import measure, read_real, read_synthetic
from dpntk.evaluate.classifiers import CLASSIFIERS
from dpntk.generate import TrainingSettings, generate
from dpntk.release import Terms, open_release, own_key, publish

HERE = Path(__file__).parent
RESULTS, TABLE = HERE / "results.json", HERE / "results.md"
EPSILON, RECORDS = 1.0, 60_000
MAPS: dict[str, dict[str, Any]] = {
    "ntk, pixels": {"features": "ntk", "front": "pixels", "width": 800},
    "ntk, scattering": {"features": "ntk", "front": "scattering", "width": 400},
    "rff (DP-MERF)": {"features": "rff"},
    "hermite (DP-HP)": {"features": "hermite"},
}


def run(data: Path, options: dict[str, Any], seed: int) -> dict[str, float]:
    """One run of the whole path; the seed is of features, training and classifiers."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        save_embedding(embed(data, classes=10, feature_seed=seed, **options), folder / "e.h5")
        publish(folder / "e.h5", folder / "r.h5", Terms(EPSILON), own_key())
        settings = TrainingSettings(seed=seed)
        opened = open_release(folder / "r.h5")
        generate(opened, folder / "synthetic", count=RECORDS, settings=settings)
        synthetic = read_synthetic(folder / "synthetic")
        (row,) = measure({"synthetic": synthetic}, read_real(data, "test", synthetic), seed)
    return dict(row.accuracy)


def table(runs: dict[str, dict[str, float]]) -> str:
    """All finished runs as Markdown: mean and range over the seeds."""
    lines = [
        f"# Feature maps at epsilon {EPSILON:g}, delta 1e-5, replace-one",
        "",
        "Accuracy on the real test images of classifiers trained on 60,000 synthetic ones; mean",
        "over the seeds, and their range. Written by `benchmarks/maps.py`; equal settings for",
        "all rows.",
        "",
        "| data | map | seeds | " + " | ".join(CLASSIFIERS) + " |",
        "|---|---|---|" + "---|" * len(CLASSIFIERS),
    ]
    groups: dict[tuple[str, str], list[dict[str, float]]] = {}
    for key, accuracy in runs.items():
        data, kind, _ = key.split(" | ")
        groups.setdefault((data, kind), []).append(accuracy)
    for (data, kind), accuracies in sorted(groups.items()):
        cells = []
        for classifier in CLASSIFIERS:
            values = [accuracy[classifier] for accuracy in accuracies]
            cell = f"{statistics.mean(values):.3f}"
            if len(values) > 1:
                cell += f" ({min(values):.3f} to {max(values):.3f})"
            cells.append(cell)
        lines.append(f"| {data} | {kind} | {len(accuracies)} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Run what is missing, and write the table after every run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("data", nargs="+", metavar="NAME=FOLDER")
    parser.add_argument("--seeds", type=int, default=3)
    arguments = parser.parse_args()
    runs: dict[str, dict[str, float]] = {}
    if RESULTS.exists():
        runs = json.loads(RESULTS.read_text())
    for seed in range(arguments.seeds):
        for item in arguments.data:
            name, folder = item.split("=", 1)
            for kind, options in MAPS.items():
                key = f"{name} | {kind} | {seed}"
                if key not in runs:
                    runs[key] = run(Path(folder), options, seed)
                    RESULTS.write_text(json.dumps(runs, indent=1, sort_keys=True) + "\n")
                    TABLE.write_text(table(runs))
                print(key, runs[key], flush=True)


if __name__ == "__main__":
    main()
