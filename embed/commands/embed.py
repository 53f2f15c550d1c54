"""The command `dpntk embed`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ...common.cli.options import (
    DataPath,
    FiniteRange,
    device_option,
    module_option,
    output_option,
    overwrite_option,
    quiet_values_option,
    seed_option,
    unit_options,
)
from ...common.cli.sections import (
    Section,
    SectionedCommand,
    map_option,
    running_option,
    table_option,
)
from ..exact.grid import MOST_RECORDS
from .feature_options import feature_options
from .source_options import source_options


@click.command("embed", cls=SectionedCommand)
@click.argument("data", type=DataPath())
@output_option(
    "Where to write the embedding. It is SENSITIVE: keep it where the records are. [default: "
    "embedding.h5; magnitudes.h5 with --private-bounds]"
)
@overwrite_option("Replace an embedding that is already there; the new one takes over its ledger.")
@click.option(
    "--budget-eps", type=float, metavar="EPSILON",
    help="Set a ceiling: all releases from this embedding together may not spend more.",
)  # fmt: skip
@click.option(
    "--budget-delta", type=float, metavar="DELTA",
    help="Delta of the ceiling [default: that of 'dpntk release']",
)  # fmt: skip
@click.option(
    "--data-set", metavar="NAME",
    help="Your name for these records, if you embed them more than once: releases from all "
    "embeddings with that name are added up.",
)  # fmt: skip
@feature_options
@seed_option(
    "Seed of the feature map's random weights (never of noise: noise has no seed).",
    0,
    "--feature-seed",
    Section.FEATURES,
)
@module_option(
    "For perceptual: a TorchScript archive, written by torch.jit.script(module).save(FILE), that "
    "maps float32 images (b, 1, side, side), or (b, 3, side, side) in colour, with values 0 to 1, "
    "to numbers (b, ...). It is a program and will be run. Whoever generates needs the same file.",
    Section.FEATURES,
)
@map_option(
    "--module-is-public", is_flag=True,
    help="For perceptual: declare that the module was trained on public data only. The guarantee "
    "does not cover what it was trained on.",
)  # fmt: skip
@device_option
@source_options
@unit_options
@running_option(
    "--capacity", type=click.IntRange(1, MOST_RECORDS), metavar="N",
    help="Make room for this many records in all, if shards are to be added up later "
    "[default: 1048576, or as many as there are if that is more]",
)  # fmt: skip
@running_option(
    "--restart", is_flag=True,
    help="Throw away the progress of an interrupted run, and begin anew.",
)  # fmt: skip
@running_option(
    "--checkpoint-every", type=FiniteRange(0), metavar="SECONDS",
    help="How often to save the progress [default: every 30 seconds, or less often if that would "
    "cost more than 2 % of the time]",
)  # fmt: skip
@quiet_values_option
@table_option(
    "--private-bounds", is_flag=True,
    help="Count only the order of magnitude of each number, so that 'dpntk bounds' can find bounds "
    'for the columns that have bounds = "private" in the schema.',
)  # fmt: skip
def command(
    data: Path | str,
    **given: Any,  # noqa: ANN401 - handed on
) -> None:
    """Stream the records in DATA once and keep only their class-wise feature sums.

    With --schema, DATA is a table: a CSV (.csv, .csv.gz) or Parquet file, or a folder of them.

    Otherwise DATA holds images. It is a folder with one folder of PNG, JPEG, TIFF, BMP or WebP
    files for each class, MNIST-style IDX files (gzipped or not, also in shards), arrays x.npy and
    y.npy, train.npz, CIFAR-10's binary files, Parquet files or tar shards; or a single .npz,
    .parquet or .tar file. Images without labels form one class.

    DATA may lie in object storage, as in s3://bucket/folder; credentials come from the environment.

    After an interruption, the same command continues where it stopped. Several processes share the
    work if they are started together: torchrun --nproc-per-node 2 --no-python dpntk embed DATA.
    """
    from .running import run  # --help need not wait for torch

    run(data, **given)
