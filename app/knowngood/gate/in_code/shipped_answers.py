"""The findings of every shipped cell, made beforehand: the quick way to a first answer.

The gate's own imports, and what it works out before a first inferred claim, take half a second of processor that a
program or a test suite does not want to spend. So its answers about every tested build, class and issue come with the
release, in one file beside the snapshot that they are made of (`python -m tools.shipped_answers` writes it; a test
holds every one of them equal to what the gate says). Nothing is decided here.

    line 1   {"format": "knowngood-answers", "version": 1, "issues": {...}, "builds": [...], "parts": {...}}
    the rest one part for each build, each by itself in zlib: {class: {issue: fields of Finding}}; `parts` says where

Of an issue line 1 has what is the same on every build: [[title, signature, thread], package, elsewhere]. `package` is
the one that it concerns (empty: every user of torch), `elsewhere` the fields of the answer where that is not installed.
"""

import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from functools import cache, cached_property
from typing import Any

from knowngood.catalogue_digest import SHIPPED
from knowngood.domain.builds.build import Build
from knowngood.environments.installed import state_here
from knowngood.environments.resolve import ResolvedBuild, resolve
from knowngood.gate.in_code.finding import Finding
from knowngood.serialization.by_type import read_value

FILE = SHIPPED / "known.answers"
"""Written by tools/shipped_answers.py."""

_FORMAT = {"format": "knowngood-answers", "version": 1}
_OF_ISSUE = ("title", "signature", "upstream")
_OF_CELL = tuple(
    one.name for one in fields(Finding) if one.name not in {"issue", *_OF_ISSUE, "build", "hardware", "note"}
)
AboutIssue = tuple[Sequence[str], str, Sequence[Any]]
"""As line 1 has it."""


@dataclass(frozen=True)
class ShippedAnswers:
    """The file, of which a part is unpacked when it is asked for. `builds` are those of the catalogue; `parts` the
    offset and length of each tested build's.
    """

    issues: Mapping[str, AboutIssue]
    builds: Mapping[str, Build]
    parts: Mapping[str, tuple[int, int]]
    data: bytes
    unpacked: dict[str, Mapping[str, Mapping[str, Sequence[Any]]]] = field(default_factory=dict)

    @cached_property
    def environment(self) -> ResolvedBuild:
        """The running one."""
        return resolve(state_here(), self.builds, self.parts.keys())

    def ask(self, issue: str, environment: ResolvedBuild, hardware: Sequence[str]) -> list[Finding] | None:
        """None where only the gate can say: a name that has to be understood first, a class that is not in the file,
        an issue of a package that is there (its version counts), hardware that nobody knows.
        """
        if issue not in self.issues or not hardware:
            return None
        facts, package, elsewhere = self.issues[issue]
        is_tested = environment.build is not None
        about: dict[str, Any] = {
            "issue": issue,
            **dict(zip(_OF_ISSUE, facts, strict=True)),
            "build": environment.build or "",
            "note": environment.note if is_tested else "",
        }
        if package:
            is_elsewhere = environment.packages and package not in environment.packages
            return [_finding(about, min(hardware), elsewhere)] if is_elsewhere else None
        if environment.build is None:
            return [Finding(**about, hardware="", affected=None, verdict="not_run", reason=environment.not_tested)]
        cells = self._cells(environment.build)
        if not cells.keys() >= set(hardware):
            return None
        return [_finding(about, class_, cells[class_][issue]) for class_ in hardware]

    def _cells(self, build: str) -> Mapping[str, Mapping[str, Sequence[Any]]]:
        """By class and issue."""
        if build not in self.unpacked:
            offset, length = self.parts[build]
            self.unpacked[build] = json.loads(zlib.decompress(self.data[offset : offset + length]))
        return self.unpacked[build]


def _finding(about: Mapping[str, Any], hardware: str, cell: Sequence[Any]) -> Finding:
    fields_ = dict(zip(_OF_CELL, cell, strict=True))
    at = fields_.pop("measured_at")
    return Finding(**about, hardware=hardware, measured_at=at and datetime.fromisoformat(at), **fields_)


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
    issues: Mapping[str, AboutIssue], builds: Iterable[Mapping[str, Any]], findings: Mapping[str, Iterable[Finding]]
) -> bytes:
    """The file. `findings` are those of each tested build, on every class."""
    parts, chunks, offset = {}, [], 0
    for build, found in findings.items():
        by_class: dict[str, dict[str, list[Any]]] = {}
        for one in found:
            by_class.setdefault(one.hardware, {})[one.issue] = cell_of(one)
        chunks.append(zlib.compress(_text(by_class), 9))
        parts[build] = (offset, len(chunks[-1]))
        offset += len(chunks[-1])
    header = {**_FORMAT, "issues": issues, "builds": list(builds), "parts": parts}
    return _text(header) + b"\n" + b"".join(chunks)


def cell_of(finding: Finding) -> list[Any]:
    """The part of it that differs from cell to cell."""
    return [getattr(finding, name) for name in _OF_CELL]


def _text(value: object) -> bytes:
    return json.dumps(value, default=lambda one: one.isoformat(), separators=(",", ":")).encode()
