"""Opening a release: the part of this package that `generate` and `evaluate` may use.

The steps, which stop at the first failure: read the bytes once; check the user block; verify the
signature; decide whether the signer is trusted; parse the body through a whitelist, in a sandboxed
process unless this machine has signed the file; check that the release's claims about itself are
true. Nothing unsigned or from a stranger is parsed unless the user wants it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from ...common.adjacency import Adjacency
from ...common.arguments import path_from, require_kind
from ...common.errors import FormatError, ReleaseError, SchemaError
from ...common.features.registry import feature_map_from_spec
from ...common.schema import schema_from_json
from ...common.storage import untrusted_files
from ...common.storage.container import EMBEDDING_MAGIC, USER_BLOCK
from ...common.storage.plain import parse_json
from ..signing.policy import TRUSTED, Acceptance, accept
from .distilled import AnyOpened, DistilledRelease, holds_points
from .distilled_codec import understand_distilled
from .model import EmbeddingGuarantee, Opened, OpenedRelease, Release
from .parser import Body, read_body, read_in_child
from .ranges import require_possible_arrays
from .statement import equal_by_declaration, statement_of
from .user_block import UserBlock, digest_of, read_user_block
from .validation import require_consistent, require_fitting

_LARGEST_FILE: Final = 1 << 34
_NO_FILE: Final = "'dpntk release' makes one from an embedding"
_WEIGHTS: Final = "feature_map/"


def open_release(path: Path | str, acceptance: Acceptance = TRUSTED) -> OpenedRelease:
    """Read and check the release file of an embedding.

    Args:
        path: the file.
        acceptance: whose releases to open; by default, those of trusted signers.

    Returns:
        The release, with who signed it.

    Raises:
        ReleaseError: as for `open_any`, or it is a distilled set.
    """
    opened = open_any(path, acceptance)
    if holds_points(opened):
        raise FormatError(f"{path}: is a distilled set, not an embedding")
    return opened


def open_any(path: Path | str, acceptance: Acceptance = TRUSTED) -> AnyOpened:
    """Read and check a release file of any kind.

    Args:
        path: the file.
        acceptance: whose releases to open; by default, those of trusted signers.

    Returns:
        The release or distilled set, with who signed it; `generate` takes either.

    Raises:
        ReleaseError: there is no readable file, or it is an embedding.
        SignatureError: it is unsigned, or the signature is not for these bytes.
        UntrustedSigner: its signer is not trusted.
        FormatError: it is not a release that this dpntk reads, or it contradicts itself.
        TrustError: the list of trusted signers cannot be read.
    """
    path = path_from("path", path, refusal=ReleaseError)
    require_kind(
        "acceptance", acceptance, Acceptance, "an Acceptance, such as Acceptance(signer='NAME')",
        refusal=ReleaseError,
    )  # fmt: skip
    content = read_file(path)
    try:
        block = read_user_block(content)
        signed_by = accept(block.signature, memoryview(content)[USER_BLOCK:], acceptance)
        release = release_in(content, block, own=signed_by.own)
    except ReleaseError as error:
        raise type(error)(f"{path}: {error}") from error
    if isinstance(release, DistilledRelease):
        return Opened(release, digest_of(content), signed_by, path)
    return Opened(release, digest_of(content), signed_by, path)


def release_in(content: bytes, block: UserBlock, *, own: bool) -> Release | DistilledRelease:
    """Parse the signed part of a file, check it, and check the first line against it.

    Args:
        content: the whole file; its signature has been verified, or is not wanted.
        block: its first 512 bytes, whose first line no signature covers.
        own: whether this machine has signed it; other files are parsed in a sandboxed process.

    Raises:
        FormatError: it is not a release that this dpntk reads, or it contradicts itself.
    """
    body = read_body(content) if own else read_in_child(content)
    return understand_distilled(body, block) if body.distilled else understand(body, block)


def read_file(path: Path) -> bytes:
    """The bytes of a file that may be a release.

    Raises:
        ReleaseError: there is no readable file, or it is an embedding.
    """
    content = untrusted_files.read(path, _LARGEST_FILE, refusal=ReleaseError, hint=_NO_FILE)
    if content.startswith(EMBEDDING_MAGIC):
        raise ReleaseError(
            f"{path} is an embedding, not a release: it is SENSITIVE and must not leave its "
            "owner; run 'dpntk release' on it first"
        )
    return content


def understand(body: Body, block: UserBlock) -> Release:
    """Make a release from plain values, after validating them.

    Raises:
        FormatError: they do not make sense as a release.
    """
    values: dict[str, Any] = dict(body.attributes)
    weights = {
        name.removeprefix(_WEIGHTS): array
        for name, array in body.arrays.items()
        if name.startswith(_WEIGHTS)
    }
    try:
        schema = schema_from_json(parse_json(values["schema"]))
        feature_map = feature_map_from_spec(parse_json(values["feature_map"]), weights)
        guarantee = _guarantee_in(values)
    except (SchemaError, KeyError, TypeError, ValueError) as error:
        raise FormatError(f"damaged: {str(error)[:200]}") from error
    if guarantee.private != block.private:
        raise FormatError("its first line and its epsilon disagree about its being private")
    if values["m_is_exact"] != int(guarantee.adjacency is Adjacency.REPLACE_ONE):
        raise FormatError("the number of records is exact under replace-one, and only there")
    require_consistent(guarantee, feature_map, schema)
    embedding, class_weights = body.arrays["embedding"], body.arrays["class_weights"]
    require_fitting(embedding, class_weights, schema, feature_map)
    require_possible_arrays(guarantee, feature_map.levels, embedding, class_weights)
    equal_classes = equal_by_declaration(guarantee, class_weights)
    return Release(
        embedding=embedding,
        class_weights=class_weights,
        feature_map=feature_map,
        schema=schema,
        guarantee=guarantee,
        release_id=values["release_id"],
        created=values["created"],
        dpntk_version=values["dpntk_version"],
        # In our own words, whatever the file says, because people rely on it.
        statement=statement_of(guarantee, schema, feature_map, equal_classes=equal_classes),
    )


def _guarantee_in(values: Mapping[str, Any]) -> EmbeddingGuarantee:
    """The guarantee stated in a file's attributes, not checked yet.

    Raises:
        ValueError: there is no such adjacency.
    """
    return EmbeddingGuarantee(
        epsilon=values["epsilon"],
        delta=values["delta"],
        adjacency=Adjacency(values["adjacency"]),
        noise_multiplier=values["noise_multiplier"],
        sensitivity=values["sensitivity"],
        sigma=values["sigma"],
        grid=values["grid"],
        count_weight=values["count_weight"],
        records=values["m"],
        mechanism=values["mechanism"],
        accountant=values["accountant"],
        epsilon_replace_one=values.get("epsilon_replace_one"),
        total_epsilon=values["total_epsilon"],
        total_adjacency=Adjacency(values["total_adjacency"]),
        total_releases=values["total_releases"],
    )
