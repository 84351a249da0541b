"""A snapshot: what the gate knows in one file, dated and signed, for machines that reach no server.

    line 1   {"format": "knowngood-snapshot", "version": 2, "product": "knowngood", "needs": "0.2",
              "made_at": "...", "key": "ed25519:...", "sha256": "..."}
    line 2   the Ed25519 signature of line 1 and its line end, in base64; empty where it is not signed
    the rest gzip of one JSON object; `sha256` is its digest as it stands in the file

Line 1 holds the digest of the rest, so the signature covers all of it. A public key is written `ed25519:` and the
base64 of its 32 bytes. Nothing is unpacked before signature and digest are found right.

Read by the types of its values, without pydantic (see `by_type`).
"""

import base64
import binascii
import gzip
import hashlib
import json
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from datetime import UTC, date, datetime
from typing import Any

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from knowngood.app.domain.builds.build import Build
from knowngood.app.domain.errors import BadSnapshot
from knowngood.app.domain.issue import Issue, SignatureKind
from knowngood.app.domain.verdicts.known import Known
from knowngood.app.domain.verdicts.verdict import Cell, CellPlace
from knowngood.app.domain.watch_list import WatchList
from knowngood.app.knowledge.lazy_cells import LazyCells
from knowngood.app.knowledge.model import Knowledge
from knowngood.app.serialization.by_type import read_value

FORMAT = "knowngood-snapshot"
PRODUCT = "knowngood"
VERSION = 2
_OLD_VERSIONS = frozenset({1})
NEEDS = "0.2"
"""The oldest release that reads what this one writes."""

_KEY = "ed25519:"
_MOST_BYTES = 1 << 30


@dataclass(frozen=True)
class Snapshot:
    """A snapshot as it was read. `key` is the public key that signed it (empty: nobody did); `is_trusted` says that
    the caller named that key.
    """

    knowledge: Knowledge
    key: str
    is_trusted: bool


def make_key() -> bytes:
    """A new private key, as PEM."""
    return Ed25519PrivateKey.generate().private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def public_key(private: bytes) -> str:
    """`ed25519:...`, to be handed out. Raises BadSnapshot for what is no key of this kind."""
    raw = _private(private).public_key().public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
    return _KEY + base64.b64encode(raw).decode()


def _private(pem: bytes) -> Ed25519PrivateKey:
    try:
        key = serialization.load_pem_private_key(pem, None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise BadSnapshot(f"the signing key cannot be used: {error}") from None
    if not isinstance(key, Ed25519PrivateKey):
        raise BadSnapshot("the signing key is no Ed25519 key; leave --key out and one is made")
    return key


def write_snapshot(knowledge: Knowledge, private: bytes) -> bytes:
    """The file. The same grounds and key give the same bytes."""
    payload = gzip.compress(
        json.dumps(_body(knowledge), default=_fields, separators=(",", ":")).encode(), compresslevel=6, mtime=0
    )
    header = {
        "format": FORMAT,
        "version": VERSION,
        "product": PRODUCT,
        "needs": NEEDS,
        "made_at": knowledge.known.as_of.astimezone(UTC).isoformat(),
        "key": public_key(private),
        "sha256": hashlib.sha256(payload).hexdigest(),
    }
    line = json.dumps(header).encode() + b"\n"
    return line + base64.b64encode(_private(private).sign(line)) + b"\n" + payload


def read_snapshot(data: bytes, keys: Iterable[str] = ()) -> Snapshot:
    """Believe a snapshot, or raise BadSnapshot with a sentence that says why not.

    With `keys` it must be signed by one of them. Without, the signature must be right by the key that the file names,
    which tells damage and nothing of who made it.
    """
    line, _, rest = data.partition(b"\n")
    signature, _, payload = rest.partition(b"\n")
    header = _header(line)
    trusted = {_as_key(key) for key in keys}
    key = _as_key(str(header.get("key", "")))
    if hashlib.sha256(payload).hexdigest() != header.get("sha256"):
        raise BadSnapshot("the snapshot is damaged: its contents are not those that its first line tells; copy it anew")
    if not signature:
        raise BadSnapshot("the snapshot is not signed; make one with `knowngood snapshot`")
    if trusted and key not in trusted:
        raise BadSnapshot(f"the snapshot was signed by {key}, which is none of the keys given")
    _verify(key, signature, line + b"\n")
    try:
        body = json.loads(_unpacked(payload))
        return Snapshot(_knowledge(body, datetime.fromisoformat(header["made_at"])), key, is_trusted=bool(trusted))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise BadSnapshot(
            f"the snapshot was signed, but holds what this release cannot read ({error!r:.100})"
        ) from None


def _header(line: bytes) -> dict[str, Any]:
    try:
        header = json.loads(line)
    except ValueError:
        header = None
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise BadSnapshot("this is no Known Good snapshot: its first line does not say so")
    if header.get("product") != PRODUCT:
        raise BadSnapshot(f'this is a snapshot of another product ("{header.get("product")!s:.40}")')
    version = header.get("version")
    if version in _OLD_VERSIONS:
        raise BadSnapshot(
            f"the snapshot is of format {version}, whose claims were made by older rules; "
            "make a new one with `knowngood snapshot`"
        )
    if not isinstance(version, int) or version > VERSION:
        raise BadSnapshot(
            f"the snapshot is of format {version!s:.20} and this release reads up to {VERSION}; "
            f"Known Good {header.get('needs', 'of a later release')!s:.20} or newer reads it"
        )
    return header


def _as_key(text: str) -> str:
    """The key as we write it. Raises BadSnapshot with the form expected."""
    _raw(text)
    return text.strip()


def _raw(text: str) -> bytes:
    try:
        raw = base64.b64decode(text.strip().removeprefix(_KEY), validate=True)
    except (binascii.Error, ValueError):
        raw = b""
    if not text.strip().startswith(_KEY) or len(raw) != 32:  # noqa: PLR2004 - of Ed25519
        raise BadSnapshot(f'"{text.strip()[:60]}" is no public key; one is written {_KEY} and 44 characters')
    return raw


def _verify(key: str, signature: bytes, signed: bytes) -> None:
    try:
        Ed25519PublicKey.from_public_bytes(_raw(key)).verify(base64.b64decode(signature, validate=True), signed)
    except (InvalidSignature, binascii.Error, ValueError):
        raise BadSnapshot("the snapshot was changed after it was signed: its signature does not fit") from None


def _unpacked(payload: bytes) -> bytes:
    unpacker = zlib.decompressobj(wbits=31)
    data = unpacker.decompress(payload, _MOST_BYTES)
    if unpacker.unconsumed_tail or not unpacker.eof:
        raise ValueError("more than any snapshot of ours would hold")
    return data


# -- what stands in it -------------------------------------------------------------------------------------------------


def _body(knowledge: Knowledge) -> dict[str, Any]:
    known = knowledge.known
    return {
        "hardware": list(known.hardware),
        "issues": [
            {name: value for name, value in _fields(issue).items() if name not in _LEFT_OUT}
            for issue in known.issues.values()
        ],
        "builds": list(known.builds.values()),
        # Without the names of fields, which would be most of it before it is packed.
        "cells": [list(_fields(known.cells[place]).values()) for place in sorted(known.cells)],
        "lists": list(knowledge.lists.values()),
    }


def _fields(value: Any) -> Any:  # noqa: ANN401 - a domain value: what JSON has no word for
    """A date as ISO 8601 has it, any other domain value as its fields."""
    return (
        value.isoformat() if isinstance(value, date) else {one.name: getattr(value, one.name) for one in fields(value)}
    )


_LEFT_OUT: Mapping[str, Any] = {
    "summary": "",
    "summary_zh": "",
    "script": "",
    "signature": {"kind": SignatureKind.MESSAGE},
    "arms": (),
    "variants": (),
    "observed": {},
}
"""Fields of an issue that no decision needs and that make up most of it, with what stands for them when it is read."""


def _knowledge(body: Mapping[str, Any], as_of: datetime) -> Knowledge:
    cells: dict[CellPlace, list[Any]] = {(one[0], one[1], one[2]): one for one in body["cells"]}
    known = Known(
        issues={fields["id"]: read_value(Issue, {**_LEFT_OUT, **fields}) for fields in body["issues"]},
        builds={fields["id"]: read_value(Build, fields) for fields in body["builds"]},
        cells=LazyCells(
            lambda _place, values: read_value(Cell, dict(zip(Cell.__dataclass_fields__, values, strict=False))), cells
        ),
        hardware=tuple(body["hardware"]),
        as_of=as_of,
    )
    lists = {fields["name"]: read_value(WatchList, fields) for fields in body["lists"]}
    return Knowledge(known, frozenset(build for _, build, _ in cells), lists)
