"""Object storage for tests: fsspec's own in memory, and a server that speaks S3's protocol."""

from __future__ import annotations

import contextlib
import functools
import logging
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path

import fsspec
import pytest

KEY, SECRET = "AKIAOFTHEWARD", "the-secret-of-the-ward"
"""Credentials that must not be found anywhere."""


@contextlib.contextmanager
def serving(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Run moto's server in a thread; yields its address."""
    from botocore.loaders import JSONFileLoader
    from moto.server import ThreadedMotoServer  # loads half of AWS

    logging.getLogger("werkzeug").setLevel(logging.ERROR)  # a line for each request
    # The description of Amazon's services is read anew for every client; here there are hundreds.
    read = functools.cache(JSONFileLoader().load_file)
    monkeypatch.setattr(JSONFileLoader, "load_file", lambda _, path: read(path))
    server = ThreadedMotoServer(port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    try:
        yield f"http://{host}:{port}"
    finally:
        server.stop()


def empty_bucket(server: str, set_variable: Callable[[str, str], object]) -> str:
    """Make a bucket, and set what every program of Amazon's looks at."""
    for name, value in {
        "AWS_ENDPOINT_URL": server,
        "AWS_ACCESS_KEY_ID": KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_MAX_ATTEMPTS": "1",
        "AWS_EC2_METADATA_DISABLED": "true",
    }.items():
        set_variable(name, value)
    name = f"ward-{secrets.token_hex(4)}"
    filesystem, _ = fsspec.url_to_fs("s3://", skip_instance_cache=True)
    filesystem.mkdir(name)
    return f"s3://{name}"


def upload(path: Path, folder: str) -> str:
    """Copy a file or folder of this machine into one of a storage; returns its address there."""
    filesystem, root = fsspec.url_to_fs(folder, skip_instance_cache=True)
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    for file in files:
        filesystem.pipe(f"{root}/{file.relative_to(path.parent)}", file.read_bytes())
    return f"{folder}/{path.name}"


def replace(address: str, content: bytes | None = None) -> None:
    """Write an object anew; with the same bytes if none are given."""
    filesystem, path = fsspec.url_to_fs(address, skip_instance_cache=True)
    filesystem.pipe(path, filesystem.cat_file(path) if content is None else content)
