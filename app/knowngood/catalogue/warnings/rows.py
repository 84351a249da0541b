"""Warnings about whole rows: what may fool a verdict, or a reader, although nothing is wrong with a row's files; and
what its author says to that.

These are warnings beside the problems: a row that is right all the same waives them, with a reason.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import regex

from knowngood.catalogue.issue_rules import Outline, host_failures, outline_of, tables
from knowngood.catalogue.script_analysis import parse_script
from knowngood.catalogue.text_files import CatalogueProblems, FileProblem, Toml, read_text, read_toml
from knowngood.catalogue.warnings.codes import WarningCode, in_words
from knowngood.catalogue.warnings.scripts import script_warnings
from knowngood.catalogue.warnings.version_words import MeasuredReleases, claims_in, contradiction
from knowngood.domain.timed_search import search
from knowngood.serialization.toml_positions import KeyPath

ANSWERS = "evidence/answers.json"
"""Where a folder of issues keeps which releases failed and passed by the evidence that comes with it."""

Measured = Mapping[str, Mapping[str, MeasuredReleases]]
"""By issue and hardware class."""

_OWN_PATHS = {
    "Inductor": ("inductor_",),
    "Triton": ("inductor_triton", "triton_launch"),
    "XLA": ("xla_",),
    "AOTInductor": ("export", "operator:"),
    "AOTAutograd": ("inductor_", "export"),
}
_TEXTS = ("title", "summary")
_WORKAROUND_TEXTS = ("title", "body", "trade_off")


@dataclass(frozen=True, order=True)
class RowWarning(FileProblem):
    """One thing to look at, of the row `issue`. `reason` is the waiver's (empty: it is not waived)."""

    issue: str
    code: WarningCode
    reason: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.issue}: {self.message} [{self.code}]"


def row_warnings(folders: Sequence[Path], issues: Sequence[str]) -> tuple[RowWarning, ...]:
    """Warnings about these issues, found in these folders, in the order of files and lines; waived ones too."""
    warnings: list[RowWarning] = []
    for folder in folders:
        owner = folder.parent if (folder / "issue.toml").exists() else folder
        measured = read_answers(owner)
        for id_ in issues:
            if (owner / id_).is_dir():
                warnings.extend(_of_row(owner / id_, measured.get(id_, {})))
    return tuple(sorted(warnings))


def open_warnings(place: Path) -> tuple[str, ...]:
    """Those that the row which stands there does not waive, each in a sentence with its code."""
    return tuple(
        f"{warning.message} [{warning.code}]" for warning in row_warnings([place], [place.name]) if not warning.reason
    )


def read_answers(folder: Path) -> Measured:
    """The measured answers of a folder's issues; nothing where it comes without evidence. Raises CatalogueProblems."""
    file = folder / ANSWERS
    if not file.exists():
        return {}
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
        return {
            issue: {
                class_: MeasuredReleases(tuple(releases["fails"]), tuple(releases["passes"]))
                for class_, releases in classes.items()
            }
            for issue, classes in document.items()
        }
    except (OSError, ValueError, AttributeError, KeyError, TypeError) as error:
        words = f"cannot be read ({error!r:.100}); `python -m tools.answers` in a checkout writes it anew"
        raise CatalogueProblems([FileProblem(file, 1, words)]) from None


def _of_row(folder: Path, measured: Mapping[str, MeasuredReleases]) -> Iterator[RowWarning]:
    try:
        toml = read_toml(folder / "issue.toml")
        script = parse_script(read_text(folder / "repro.py"), folder / "repro.py")
    except CatalogueProblems:
        return  # a problem, which is reported as one
    outline = outline_of(toml.data)
    warnings = [
        RowWarning(folder / "repro.py", line, words, folder.name, code)
        for line, code, words in script_warnings(script, outline)
    ]
    findings = [
        *_of_signature(folder.name, outline),
        *_of_exercises(toml, outline),
        *_of_probes(outline),
        *_of_versions(toml, measured),
    ]
    warnings += [_warning(toml, folder.name, *finding) for finding in findings]
    yield from _waived(toml, folder.name, warnings)


def _warning(toml: Toml, issue: str, path: KeyPath, code: WarningCode, *values: str) -> RowWarning:
    return RowWarning(toml.file, toml.lines.line_of(path), in_words(code, *values), issue, code)


Told = tuple[KeyPath, WarningCode, *tuple[str, ...]]
"""The place, the code, and what fills the blanks of its sentence."""


@cache
def real_failures() -> tuple[tuple[str, str], ...]:
    """Failures as they were measured: the row, and the text."""
    text = (files("knowngood.catalogue.warnings") / "real_failures.txt").read_text(encoding="utf-8")
    blocks = (block.partition("\n") for block in text.strip().split("\n---\n")[1:])
    return (*((head.split()[0], words) for head, _, words in blocks), *(("", words) for words in host_failures()))


def _of_signature(issue: str, outline: Outline) -> Iterator[Told]:
    if not outline.pattern:
        return
    try:
        others = (text for row, text in real_failures() if row != issue)
        hit = next((text for text in others if search(outline.pattern, (text,)).line is not None), None)
    except regex.error:
        return  # a problem, which is reported as one
    if hit is not None:
        yield ("signature", "pattern"), WarningCode.WIDE_SIGNATURE, " ".join(hit.split())[:100]


def _of_exercises(toml: Toml, outline: Outline) -> Iterator[Told]:
    if outline.exercises == ("eager",):
        yield ("exercises",), WarningCode.EAGER_BASELINE
        return
    component = _text(toml.data, "component")
    own = next((probes for name, probes in _OWN_PATHS.items() if component.startswith(name)), ())
    if own and not outline.backends and not any(probe.startswith(own) for probe in outline.exercises):
        yield ("exercises",), WarningCode.WIDE_EXERCISES, component, '", "'.join(outline.exercises)


def _of_probes(outline: Outline) -> Iterator[Told]:
    for probe in outline.exercises:
        if probe.removeprefix("operator:aten::") in composite_operators():
            yield ("exercises",), WarningCode.COMPOSITE_OPERATOR, probe
    compiled = [probe for probe in outline.exercises if probe.startswith(("dynamo_", "inductor_", "export"))]
    if compiled and not outline.suspect:
        yield ("exercises",), WarningCode.UNNAMED_SUSPECT, '", "'.join(compiled)


@cache
def composite_operators() -> frozenset[str]:
    """ATen's operators of which every overload is made of others (CompositeImplicitAutograd), in torch 2.9.1."""
    text = (files("knowngood.catalogue.warnings") / "composite_operators.txt").read_text(encoding="ascii")
    return frozenset(text.split())


def _of_versions(toml: Toml, measured: Mapping[str, MeasuredReleases]) -> Iterator[Told]:
    for path, text in _texts(toml.data):
        for claim in claims_in(text):
            so = contradiction(claim, measured)
            if so:
                yield path, WarningCode.VERSION_WORDS, claim.words, claim.reading, so


def _texts(data: Mapping[str, Any]) -> Iterator[tuple[KeyPath, str]]:
    """Texts in which we speak ourselves: claims are what others say."""
    for key in _TEXTS:
        yield (key,), _text(data, key)
    for at, table in tables(data.get("workaround")):
        for key in _WORKAROUND_TEXTS:
            yield ("workaround", at, key), _text(table, key)


def _text(table: Mapping[str, Any], key: str) -> str:
    """Empty for what is no text: a number of more than 4,300 digits cannot even be written as one."""
    value = table.get(key)
    return value if isinstance(value, str) else ""


def _waived(toml: Toml, issue: str, warnings: Sequence[RowWarning]) -> Iterator[RowWarning]:
    """The findings, each with the reason of the waiver that covers it, and the waivers that cover nothing."""
    waivers = list(tables(toml.data.get("waiver")))
    used: set[int] = set()
    for warning in warnings:
        fits = [
            at
            for at, waiver in waivers
            if waiver.get("warning") == warning.code and _text(waiver, "about") in warning.message
        ]
        used.update(fits)
        reason = _text(waivers[fits[0]][1], "reason") if fits else ""
        yield replace(warning, reason=reason)
    for at, waiver in waivers:
        if at not in used:
            yield _warning(toml, issue, ("waiver", at), WarningCode.IDLE_WAIVER, _text(waiver, "warning"))
