"""The findings of every shipped cell, made beforehand: the quick way to a first answer.

The gate's own imports, and what it works out before a first inferred claim, take half a second of processor that a
program or a test suite does not want to spend. So its answers about every tested build, class and issue come with the
release, in one file beside the snapshot that they are made of (`python -m tools.shipped_answers` writes it; a test
holds every one of them equal to what the gate says). Nothing is decided here.

    line 1   {"format": "knowngood-answers", "version": 1, "issues": {...}, "builds": [...], "parts": {...}}
    the rest one part for each build, each by itself in zlib: {class: {issue: fields of Finding}}; `parts` says where
"""

import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from functools import cache, cached_property
from typing import Any

from knowngood.app.catalogue_digest import SHIPPED
from knowngood.app.domain.builds.build import Build
from knowngood.app.features.environments.installed import state_here
from knowngood.app.features.environments.resolve import ResolvedBuild, resolve
from knowngood.app.features.in_code.finding import Finding
from knowngood.app.serialization.by_type import read_value

FILE = SHIPPED / "known.answers"
"""Written by tools/shipped_answers.py."""

_FORMAT = {"format": "knowngood-answers", "version": 1}
_OF_ISSUE = ("issue", "title", "signature", "upstream")
_OF_CELL = tuple(one.name for one in fields(Finding) if one.name not in {*_OF_ISSUE, "build", "hardware", "note"})


@dataclass(frozen=True)
class ShippedAnswers:
    """The file, of which a part is unpacked when it is asked for. `issues` has title, signature, thread and package of
    each; `builds` are those of the catalogue; `parts` the offset and length of each tested build's.
    """

    issues: Mapping[str, Sequence[str]]
    builds: Mapping[str, Build]
    parts: Mapping[str, tuple[int, int]]
    data: bytes

    def ask(self, issue: str, hardware: Sequence[str]) -> list[Finding] | None:
        """None where only the gate can say: a name that has to be understood first, a class that is not in the file,
        an issue of a package (whose version counts).
        """
        *about, package = self.issues.get(issue, ("",))
        if not about or package:
            return None
        facts: dict[str, Any] = dict(zip(_OF_ISSUE, (issue, *about), strict=True))
        resolved = self._resolved
        if resolved.build is None:
            return [
                Finding(**facts, build="", hardware="", affected=None, verdict="not_run", reason=resolved.not_tested)
            ]
        if not self._part.keys() >= set(hardware):
            return None
        facts |= {"build": resolved.build, "note": resolved.note}
        return [Finding(**facts, hardware=class_, **_read(self._part[class_][issue])) for class_ in hardware]

    @cached_property
    def _resolved(self) -> ResolvedBuild:
        return resolve(state_here(), self.builds, self.parts.keys())

    @cached_property
    def _part(self) -> Mapping[str, Mapping[str, Sequence[Any]]]:
        """By class and issue, of the build that this environment is."""
        offset, length = self.parts[self._resolved.build or ""]
        part: dict[str, dict[str, list[Any]]] = json.loads(zlib.decompress(self.data[offset : offset + length]))
        return part


def _read(cell: Sequence[Any]) -> dict[str, Any]:
    fields_ = dict(zip(_OF_CELL, cell, strict=True))
    at = fields_["measured_at"]
    return {**fields_, "measured_at": datetime.fromisoformat(at) if at else None}


@cache
def read_answers() -> ShippedAnswers | None:
    """None where the file is not there, or cannot be read: then the gate is asked."""
    try:
        line, _, data = FILE.read_bytes().partition(b"\n")
        header = json.loads(line)
        if not header.items() >= _FORMAT.items():
            return None
        builds = {one["id"]: read_value(Build, one) for one in header["builds"]}
        return ShippedAnswers(header["issues"], builds, header["parts"], data)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def write_answers(
    issues: Mapping[str, Sequence[str]], builds: Iterable[Mapping[str, Any]], findings: Mapping[str, Iterable[Finding]]
) -> bytes:
    """The file. `findings` are those of each tested build, on every class."""
    parts, chunks, offset = {}, [], 0
    for build, found in findings.items():
        chunks.append(zlib.compress(_text(_by_class(found)), 9))
        parts[build] = (offset, len(chunks[-1]))
        offset += len(chunks[-1])
    header = {**_FORMAT, "issues": issues, "builds": list(builds), "parts": parts}
    return _text(header) + b"\n" + b"".join(chunks)


def _by_class(findings: Iterable[Finding]) -> dict[str, dict[str, list[Any]]]:
    part: dict[str, dict[str, list[Any]]] = {}
    for one in findings:
        part.setdefault(one.hardware, {})[one.issue] = [getattr(one, name) for name in _OF_CELL]
    return part


def _text(value: object) -> bytes:
    return json.dumps(value, default=lambda one: one.isoformat(), separators=(",", ":")).encode()
