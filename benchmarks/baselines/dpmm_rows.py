"""Fit MST or AIM to rows of codes and draw rows: run by the Python of `mst_aim.environment`.

Run: python benchmarks/baselines/dpmm_rows.py JOB.json ROWS.npy MADE.npy
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
from dpmm.models.aim import AIMGM
from dpmm.models.mst import MSTGM

MODELS = {"MST": MSTGM, "AIM": AIMGM}


def main() -> None:
    """Read rows int64 (n, k), and write as many that were drawn from the fitted model."""
    job, rows, made = map(Path, sys.argv[1:])
    settings = json.loads(job.read_text())
    names = [f"c{number}" for number in range(len(settings["sizes"]))]
    table = pd.DataFrame(np.load(rows), columns=names)
    model = MODELS[settings["method"]](
        epsilon=settings["epsilon"], delta=settings["delta"], n_jobs=1
    )
    model.set_domain(dict(zip(names, settings["sizes"], strict=True)))
    model.set_random_state(np.random.RandomState(settings["seed"]))
    model.fit(table)
    drawn = model.generate(n_records=len(table))
    np.save(made, drawn[names].to_numpy(dtype=np.int64))


if __name__ == "__main__":
    main()
