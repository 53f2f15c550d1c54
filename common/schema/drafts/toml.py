"""The file `schema.toml`, in which a table's owner states what is publicly known of it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from ...arguments import Location, path_from, require_kind
from ...errors import OutputError, SchemaError
from ...storage import untrusted_files
from ...storage.atomic import SENSITIVE_MODE, require_absent, write_atomically
from ..privacy_unit import PrivacyUnit
from ..table import TableSchema
from .draft import SCHEMA_BEGINS, Draft

_LARGEST_FILE: Final = 1 << 26
"""The largest file, in bytes."""
COST: Final = "is a schema that somebody may have corrected"
A_SCHEMA: Final = "a TableSchema, as draft.settled() gives one, or the path of a schema.toml"
"""What a Python argument for a schema accepts, for messages."""


def read_schema(
    path: Location, *, accept_from_data: bool = False, privacy_unit: PrivacyUnit | None = None
) -> TableSchema:
    """Read a `schema.toml` whose entries are all confirmed.

    Guarantee:
        The schema's contents count as public knowledge; what was looked up in the data is marked,
        and every release says so.

    Args:
        path: the file.
        accept_from_data: see `Draft.settled`.
        privacy_unit: the unit whose rows are protected together; the file's if None.

    Returns:
        The schema.

    Raises:
        SchemaError: there is no such file, it is not a schema, or it is not settled.
    """
    path = path_from("path", path, refusal=SchemaError)
    draft = read_draft(path)
    draft = draft if privacy_unit is None else draft.with_privacy_unit(privacy_unit)
    return draft.settled(str(path), accept_from_data=accept_from_data)


def read_draft(path: Path) -> Draft:
    """Read a `schema.toml`, which may still be a draft.

    Raises:
        SchemaError: there is no such file, or it is not a schema.
    """
    try:
        content = untrusted_files.read(path, _LARGEST_FILE, refusal=SchemaError)
        text = content.decode("utf-8-sig")  # some editors begin with a byte order mark
    except UnicodeDecodeError as error:
        raise SchemaError(f"{path}: not TOML: not in UTF-8") from error
    return Draft.from_toml(text, str(path))


def save_schema(schema: TableSchema | Draft, path: Location, *, overwrite: bool = False) -> None:
    """Write a `schema.toml`, readable by its owner alone (0600): a draft is as sensitive as data.

    Guarantee:
        None: unconfirmed parts stay marked in the file. They are released only if whoever reads the
        file accepts it, and then the release says so.

    Args:
        schema: a table's schema, or a draft of one.
        path: where to write it.
        overwrite: whether an existing schema may be replaced.

    Raises:
        OutputError: something is there and may not be replaced, or nothing can be written there.
        SchemaError: `schema` is not a schema.
    """
    path = path_from("path", path, refusal=OutputError)
    wanted = "a TableSchema, or what draft_schema has drafted"
    require_kind("schema", schema, (TableSchema, Draft), wanted, refusal=SchemaError)
    draft = schema if isinstance(schema, Draft) else Draft(schema)
    require_absent(path, overwrite=overwrite, cost=COST, begins=SCHEMA_BEGINS.encode())
    write_atomically(path, draft.to_toml().encode(), mode=SENSITIVE_MODE)
