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
from typing import Any, NamedTuple

from knowngood.catalogue_digest import SHIPPED
from knowngood.domain.builds.build import Build
from knowngood.environments.installed import state_here
from knowngood.environments.resolve import ResolvedBuild, resolve
from knowngood.gate.in_code.finding import Finding
from knowngood.serialization.by_type import read_value

FILE = SHIPPED / "known.answers"
"""Written by tools/shipped_answers.py."""

_FORMAT = {"format": "knowngood-answers", "version": 1}
_OF_ISSUE = ("issue", "title", "signature", "upstream")
_OF_CELL = tuple(one.name for one in fields(Finding) if one.name not in {*_OF_ISSUE, "build", "hardware", "note"})


class AboutIssue(NamedTuple):
    """The same of an issue on every build. `facts` are its title, signature and thread; `package` is the one that it
    concerns (empty: torch's every user), and `elsewhere` the answer where that is not installed.
    """

    facts: tuple[str, str, str]
    package: str
    elsewhere: Sequence[Any] = ()


@dataclass(frozen=True)
class ShippedAnswers:
    """The file, of which a part is unpacked when it is asked for. `builds` are those of the catalogue; `parts` the
    offset and length of each tested build's.
    """

    issues: Mapping[str, AboutIssue]
    builds: Mapping[str, Build]
    parts: Mapping[str, tuple[int, int]]
    data: bytes

    @cached_property
    def environment(self) -> ResolvedBuild:
        """The running one."""
        return resolve(state_here(), self.builds, self.parts.keys())

    def ask(self, issue: str, environment: ResolvedBuild, hardware: Sequence[str]) -> list[Finding] | None:
        """None where only the gate can say: a name that has to be understood first, a class that is not in the file,
        an issue of a package that is there (its version counts), hardware that nobody knows.
        """
        about = self.issues.get(issue)
        if about is None or not hardware:
            return None
        facts: dict[str, Any] = dict(zip(_OF_ISSUE, (issue, *about.facts), strict=True))
        where: dict[str, Any] = {
            "build": environment.build or "",
            "note": environment.note if environment.build else "",
        }
        if about.package:
            is_elsewhere = environment.packages and about.package not in environment.packages
            return [_finding(facts, where, min(hardware), about.elsewhere)] if is_elsewhere else None
        if environment.build is None:
            return [
                Finding(**facts, **where, hardware="", affected=None, verdict="not_run", reason=environment.not_tested)
            ]
        cells = self._cells(environment.build)
        if not cells.keys() >= set(hardware):
            return None
        return [_finding(facts, where, class_, cells[class_][issue]) for class_ in hardware]

    def _cells(self, build: str) -> Mapping[str, Mapping[str, Sequence[Any]]]:
        """By class and issue."""
        if build not in self._unpacked:
            offset, length = self.parts[build]
            self._unpacked[build] = json.loads(zlib.decompress(self.data[offset : offset + length]))
        return self._unpacked[build]

    @cached_property
    def _unpacked(self) -> dict[str, Mapping[str, Mapping[str, Sequence[Any]]]]:
        return {}


def _finding(facts: Mapping[str, Any], where: Mapping[str, Any], hardware: str, cell: Sequence[Any]) -> Finding:
    told = dict(zip(_OF_CELL, cell, strict=True))
    at = told["measured_at"]
    told["measured_at"] = datetime.fromisoformat(at) if at else None
    return Finding(**facts, **where, hardware=hardware, **told)


@cache
def read_answers() -> ShippedAnswers | None:
    """None where the file is not there, or cannot be read: then the gate is asked."""
    try:
        line, _, data = FILE.read_bytes().partition(b"\n")
        header = json.loads(line)
        if not header.items() >= _FORMAT.items():
            return None
        builds = {one["id"]: read_value(Build, one) for one in header["builds"]}
        issues = {id_: AboutIssue(*about) for id_, about in header["issues"].items()}
        return ShippedAnswers(issues, builds, header["parts"], data)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def write_answers(
    issues: Mapping[str, AboutIssue], builds: Iterable[Mapping[str, Any]], findings: Mapping[str, Iterable[Finding]]
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
        part.setdefault(one.hardware, {})[one.issue] = cell_of(one)
    return part


def cell_of(finding: Finding) -> list[Any]:
    """The part of it that differs from cell to cell."""
    return [getattr(finding, name) for name in _OF_CELL]


def _text(value: object) -> bytes:
    return json.dumps(value, default=lambda one: one.isoformat(), separators=(",", ":")).encode()
