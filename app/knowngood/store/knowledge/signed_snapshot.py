"""A snapshot and who made it: written and read with an Ed25519 signature.

Apart from snapshot.py, because cryptography takes longer to import than a question to the gate takes without it.
"""

import base64
import binascii
from collections.abc import Iterable

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from knowngood import foreign_text
from knowngood.domain.errors import BadSnapshot, TextTooCostly
from knowngood.store.knowledge.model import Knowledge, Recorded
from knowngood.store.knowledge.snapshot import Snapshot, make_parts, open_parts, parse_contents, read_contents

_KEY = "ed25519:"


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


def write_snapshot(knowledge: Knowledge, private: bytes, recorded: Recorded | None = None) -> bytes:
    """The file. The same grounds and key give the same bytes."""
    line, payload = make_parts(knowledge, recorded, public_key(private))
    return line + base64.b64encode(_private(private).sign(line)) + b"\n" + payload


def read_snapshot(data: bytes, keys: Iterable[str] = ()) -> Snapshot:
    """Believe a snapshot, or raise BadSnapshot with a sentence that says why not.

    With `keys` it must be signed by one of them. Without, the signature must be right by the key that the file names,
    which tells damage and nothing of who made it.
    """
    opened = open_parts(data)
    trusted = {_as_key(key) for key in keys}
    if not opened.signature:
        raise BadSnapshot("the snapshot is not signed; make one with `knowngood snapshot`")
    key = _as_key(str(opened.header.get("key", "")))
    if trusted and key not in trusted:
        raise BadSnapshot(f"the snapshot was signed by {key}, which is none of the keys given")
    _verify(key, opened.signature, opened.line + b"\n")
    try:
        foreign_text.read(parse_contents, opened.payload)
    except TextTooCostly as error:  # a key of anybody's makes a signature that is right
        raise BadSnapshot(f"the snapshot is none of ours: {error}") from None
    return read_contents(opened, key, is_trusted=bool(trusted))


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
