"""A snapshot: what the gate knows in one file, dated and signed, for machines that reach no server.

    line 1   {"format": "knowngood-snapshot", "version": 2, "product": "knowngood", "needs": "0.2",
              "made_at": "...", "key": "ed25519:...", "sha256": "..."}
    line 2   the Ed25519 signature of line 1 and its line end, in base64; empty where it is not signed
    the rest gzip of one JSON object; `sha256` is its digest as it stands in the file

Line 1 holds the digest of the rest, so the signature covers all of it. A public key is written `ed25519:` and the
base64 of its 32 bytes. Nothing is unpacked before signature and digest are found right.

Read without pydantic: a command that starts in a CI job pays for every import (pydantic 250 ms; 2026-11-21, 2 cores
under load).
"""

import base64
import binascii
import gzip
import hashlib
import json
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from enum import Enum
from typing import Any

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from knowngood.app.domain.builds.build import Build
from knowngood.app.domain.errors import BadSnapshot
from knowngood.app.domain.issue import (
    Claim,
    Culprit,
    Device,
    Fidelity,
    Issue,
    Link,
    LinkKind,
    Packages,
    Requires,
    Severity,
    Signature,
    SignatureKind,
    Status,
    Workaround,
)
from knowngood.app.domain.issue_selectors import Watch
from knowngood.app.domain.verdicts.known import Known
from knowngood.app.domain.verdicts.outcome import Outcome
from knowngood.app.domain.verdicts.verdict import Cell, VariantFinding, Verdict, WorkaroundFinding, WorkaroundVerdict
from knowngood.app.domain.watch_list import Content, WatchList
from knowngood.app.knowledge.lazy_cells import CellPlace, LateCells
from knowngood.app.knowledge.model import Knowledge

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
    """What was read. `key` is the public key that signed it (empty: nobody did); `is_trusted` says that the caller
    named that key.
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
    payload = gzip.compress(json.dumps(_body(knowledge), separators=(",", ":")).encode(), compresslevel=6, mtime=0)
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
        return Snapshot(_grounds(body, datetime.fromisoformat(header["made_at"])), key, is_trusted=bool(trusted))
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
        "issues": [_issue_fields(issue) for issue in known.issues.values()],
        "builds": [_plain(build) for build in known.builds.values()],
        "cells": [_cell_fields(known.cells[place]) for place in sorted(known.cells)],
        "lists": [_plain(one) for one in knowledge.lists.values()],
    }


def _plain(value: Any) -> Any:  # noqa: ANN401 - any domain value
    """A domain value as what JSON is made of."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, tuple | list):
        return [_plain(one) for one in value]
    if isinstance(value, Mapping):
        return {name: _plain(one) for name, one in value.items()}
    if hasattr(value, "__dataclass_fields__"):
        return {name: _plain(getattr(value, name)) for name in value.__dataclass_fields__}
    return value


_LEFT_OUT = ("summary", "summary_zh", "script", "signature", "arms", "variants")
"""Fields of an issue that no decision needs and that make up most of it."""


def _issue_fields(issue: Issue) -> dict[str, Any]:
    fields: dict[str, Any] = _plain(issue)
    return {name: value for name, value in fields.items() if name not in _LEFT_OUT}


def _cell_fields(cell: Cell) -> list[Any]:
    """Without the names of fields, which would be most of it before it is packed."""
    return [_plain(getattr(cell, name)) for name in Cell.__dataclass_fields__]


def _grounds(body: Mapping[str, Any], as_of: datetime) -> Knowledge:
    cells: dict[CellPlace, list[Any]] = {(one[0], one[1], one[2]): one for one in body["cells"]}
    known = Known(
        issues={fields["id"]: _issue(fields) for fields in body["issues"]},
        builds={fields["id"]: _build(fields) for fields in body["builds"]},
        cells=LateCells(lambda _place, values: _cell(values), cells),
        hardware=tuple(body["hardware"]),
        as_of=as_of,
    )
    lists = {fields["name"]: _list(fields) for fields in body["lists"]}
    return Knowledge(known, frozenset(build for _, build, _ in cells), lists)


def _issue(fields: Mapping[str, Any]) -> Issue:
    requires, packages = fields["requires"], fields["packages"]
    capability = requires["compute_capability"]
    per_release = {name: tuple(texts) for name, texts in packages["per_release"].items()}
    return Issue(
        id=fields["id"],
        title=fields["title"],
        summary="",
        links=tuple(
            Link(LinkKind(one["kind"]), one["url"], one["title"], one["state"], _date(one["seen"]))
            for one in fields["links"]
        ),
        component=fields["component"],
        culprit=Culprit(fields["culprit"]),
        severity=Severity(fields["severity"]),
        silent=fields["silent"],
        fidelity=Fidelity(fields["fidelity"]),
        status=Status(fields["status"]),
        claims=tuple(Claim(**{**one, "dated": _date(one["dated"])}) for one in fields["claims"]),
        requires=Requires(
            Device(requires["device"]),
            requires["torch"],
            requires["python"],
            tuple(capability) if capability else None,
            requires["package"],
        ),
        packages=Packages(
            tuple(packages["requirements"]), per_release, tuple(packages["no_deps"]), packages["mutates"]
        ),
        signature=Signature(SignatureKind.MESSAGE),
        variants=(),
        arms=(),
        workarounds=tuple(Workaround(**one) for one in fields["workarounds"]),
        timeout_s=fields["timeout_s"],
        script="",
        title_zh=fields["title_zh"],
        default=fields["default"],
        is_smoke=fields["is_smoke"],
        is_of_team=fields.get("is_of_team", False),  # older snapshots do not say
    )


def _build(fields: Mapping[str, Any]) -> Build:
    return Build(**{**fields, "as_of": date.fromisoformat(fields["as_of"]), "released": _date(fields["released"])})


def _cell(values: list[Any]) -> Cell:
    fields = dict(zip(Cell.__dataclass_fields__, values, strict=True))
    return Cell(
        **{
            **fields,
            "verdict": Verdict(fields["verdict"]),
            "measured_at": _time(fields["measured_at"]),
            "control": Outcome(fields["control"]) if fields["control"] else None,
            "variants": tuple(
                VariantFinding(**{**one, "verdict": Verdict(one["verdict"])}) for one in fields["variants"]
            ),
            "workarounds": {
                id_: WorkaroundFinding(
                    **{
                        **one,
                        "verdict": WorkaroundVerdict(one["verdict"]),
                        **{name: tuple(one[name]) for name in ("helped", "failed", "untried")},
                    }
                )
                for id_, one in fields["workarounds"].items()
            },
        }
    )


def _list(fields: Mapping[str, Any]) -> WatchList:
    content = fields["content"]
    watch = content["watch"]
    return WatchList(
        name=fields["name"],
        owner=fields["owner"],
        version=fields["version"],
        changed_at=datetime.fromisoformat(fields["changed_at"]),
        changed_by=fields["changed_by"],
        content=Content(
            Watch(
                issues=tuple(watch["issues"]),
                components=tuple(watch["components"]),
                packages=tuple(watch["packages"]),
                severity=Severity(watch["severity"]) if watch["severity"] else None,
            ),
            tuple(content["hardware"]),
            content["description"],
        ),
    )


def _time(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text).astimezone(UTC) if text else None


def _date(text: str | None) -> date | None:
    return date.fromisoformat(text) if text else None
