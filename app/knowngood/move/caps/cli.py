"""`knowngood caps`: the upper bounds that a project has on torch, and which of them can go. No network."""

import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from itertools import islice
from pathlib import Path

import click

from knowngood.cli.choice import one_of
from knowngood.cli.encoding import SCREEN
from knowngood.cli.exit_codes import Exit
from knowngood.cli.knowledge import ground_here, recorded_here
from knowngood.cli.lazy import command
from knowngood.cli.options import (
    ANY_SIGNER,
    AS_FORMAT_JSON,
    COMPONENT,
    FILE_HERE,
    FORMS,
    ISSUES,
    PACKAGE,
    PUBLIC_KEY,
    SNAPSHOT_FILE,
    WATCH,
    argument,
    flag,
    names,
    option,
)
from knowngood.domain.builds.build import DEFAULT_PYTHON, Build
from knowngood.domain.errors import BadRequest
from knowngood.domain.hardware_names import class_named
from knowngood.domain.message import english
from knowngood.domain.threads import ThreadIndex
from knowngood.environments.service import stated_in
from knowngood.environments.wheels.refusals import ends_before, torch_bounds
from knowngood.environments.wheels.table import WheelTable, wheels_of
from knowngood.gate.renderers.common import one_line, wrapped
from knowngood.gate.renderers.json import dumped
from knowngood.gate.renderers.markdown import escaped
from knowngood.gate.renderers.text import fitting
from knowngood.git_files import ask_git, files_in
from knowngood.move.caps.bounds import FILES, Declared, find_declared
from knowngood.move.caps.rules import PAIRED, Cap, CapStatus, Judge, Origin, held_back
from knowngood.move.upgrade.ranking import UpgradeAdvice, advise
from knowngood.move.upgrade.request import UpgradeRequest, read_upgrade

Names = tuple[str, ...]

_MOST_FILES, _MOST_BYTES, _LONGEST = 2000, 1 << 20, 5000  # characters of a commit's message
_GIT = "caps"


@command(
    "List every upper bound and exclusion on torch, Triton and what is built on them: since when and why, and what is "
    "measured above it. No network.\n\n"
    "It reads pyproject.toml, requirements and constraints, setup.cfg and setup.py, files of conda and pixi, the "
    "constraints in uv.lock, and Dockerfiles. An exact version is no bound. Without --hardware every measured class "
    "counts. Ends with 0; with --fail-on, 1 if there is such a bound.",
    argument("folder", "The project; this folder unless said.", default=".", type=click.Path(exists=True)),
    option("--deps", type=FILE_HERE, metavar="LOCK", help="A lock file: also what in it holds torch back."),
    flag("--removable", help_="Only what can go."),
    names("--hardware", "Classes such as cpu-x86_64, or GPUs such as H100."),
    WATCH,
    ISSUES,
    COMPONENT,
    PACKAGE,
    names("--fail-on", f"End with 1 if a bound is such: {', '.join(CapStatus)}."),
    option("--format", "form", type=FORMS, default="text", help="Markdown is for a pull request."),
    AS_FORMAT_JSON,
    SNAPSHOT_FILE,
    PUBLIC_KEY,
    ANY_SIGNER,
    example="caps --deps uv.lock",
)
def caps(
    *,
    folder: str,
    deps: Path | None,
    removable: bool,
    hardware: Names,
    watch: Names,
    issues: Names,
    component: Names,
    package: Names,
    fail_on: Names,
    form: str,
    as_json: bool,
    snapshot: str,
    public_keys: Names,
) -> Exit:
    failing = one_of(CapStatus, fail_on, "--fail-on", "status of a bound")
    ground = ground_here(snapshot, public_keys)
    known, table = ground.knowledge.known, wheels_of(ground.knowledge.known)
    request = UpgradeRequest(watch=watch, issues=issues, component=component, package=package, hardware=hardware)

    @cache
    def advice(start: Build) -> UpgradeAdvice:
        question = read_upgrade(replace(request, start=start.id), ground.knowledge, recorded_here(ground))
        return advise(question, known)

    declared = list(declared_in(Path(folder), {*table.packages, *PAIRED}))
    classes = tuple(class_named(name, known.hardware) for name in hardware) or known.hardware
    judge = Judge(known, table, ThreadIndex(known.issues.values()), advice, classes)
    found = [*judge.caps(declared, _origins(Path(folder), declared)), *(_dependencies(deps, table) if deps else ())]
    shown = [cap for cap in found if not removable or cap.status is CapStatus.REMOVABLE]
    shown.sort(key=lambda cap: list(CapStatus).index(cap.status))
    write = dumped if as_json else {"json": dumped, "markdown": _markdown, "text": _text}[form]
    sys.stdout.write(write(shown))
    return Exit.FINDING if any(cap.status in failing for cap in found) else Exit.OK


# -- the project -------------------------------------------------------------------------------------------------------


def declared_in(folder: Path, packages: set[str]) -> Iterator[Declared]:
    """The requirements in the files of a project, by their paths in it."""
    for name in islice(filter(FILES.fullmatch, files_in(folder, _GIT)), _MOST_FILES):
        with suppress(OSError):  # it went meanwhile
            if (folder / name).stat().st_size <= _MOST_BYTES:
                yield from find_declared(name, (folder / name).read_text("utf-8", "replace"), packages)


def _origins(folder: Path, declared: Sequence[Declared]) -> Mapping[tuple[str, int], Origin]:
    """The commits that lines with a bound are from; none of a file that is not in one yet."""
    git = (_GIT, "-C", str(folder))
    try:
        is_shallow = ask_git(*git, "rev-parse", "--is-shallow-repository").strip() == b"true"
    except BadRequest:  # it is in no git, or there is none
        return {}

    @cache
    def origin(commit: str, is_last: bool) -> Origin:  # noqa: FBT001 - as git says it
        told = ask_git(*git, "log", "-1", "--format=%as%n%s%n%b", commit, "--").decode(errors="replace")
        day, subject, *body = told.split("\n")
        text = " ".join(line for line in body if "-by: " not in line)[:_LONGEST].strip()
        return Origin(commit[:8], f"before {day}" if is_last and is_shallow else day, subject[:_LONGEST], text)

    found = dict[tuple[str, int], Origin]()
    for file, line in dict.fromkeys((one.file, one.line) for one in declared if one.bounds):
        with suppress(BadRequest):
            blamed = ask_git(*git, "blame", "--porcelain", "-w", "-L", f"{line},{line}", "--", file)
            commit = blamed.split(maxsplit=1)[0].decode()
            found[file, line] = origin(commit, b"\nboundary\n" in blamed)  # git knows no commit of zeros, which is none
    return found


# -- dependencies ------------------------------------------------------------------------------------------------------


def _dependencies(lock: Path, table: WheelTable) -> Iterator[Cap]:
    """By the table of wheels; by installed metadata for what it does not have, where that very version is installed."""
    stated = stated_in(lock.read_bytes(), lock.name)
    packages = {pin.name: pin.version for pin in stated.pins if pin.version and pin.name != "torch"}
    torch = next((pin.version for pin in stated.all_of("torch") if pin.version), "")
    if not torch:
        raise BadRequest(f"--deps {lock} states no torch; give a lock of an environment that has it")
    newest = table.releases("torch")[-1].version
    asked = torch_bounds(packages, stated.python or DEFAULT_PYTHON, table)
    for name in packages.keys() - {*table.packages}:
        with suppress(PackageNotFoundError):
            installed = distribution(name)
            texts = installed.requires or () if installed.version == packages[name] else ()
            for one in find_declared("requirements.txt", "\n".join(texts), {"torch"}):
                if "extra" not in one.marker and any(ends_before(clause, newest) for clause in one.specifier):
                    asked[name] = str(one.specifier)
    yield from held_back(lock.name, packages, dict(sorted(asked.items())), torch, table)


# -- as text -----------------------------------------------------------------------------------------------------------

_SAID = {
    CapStatus.REMOVABLE: ("no known reason", "has no known reason", "have no known reason"),
    CapStatus.NEEDED: ("still needed", "is still needed", "are still needed"),
    CapStatus.NOT_MEASURED: ("not measured", "was not measured", "were not measured"),
    CapStatus.DEPENDENCY: ("not yours", "is not yours and holds torch back", "are not yours and hold torch back"),
    CapStatus.IDLE: ("keeps nothing out", "keeps nothing out", "keep nothing out"),
}


def _summary(found: Sequence[Cap]) -> str:
    if not found:
        return "No bound on torch, Triton, or what is built on them."
    counts = Counter(cap.status for cap in found)
    parts = [f"{n} {_SAID[status][1 + (n > 1)]}" for status in _SAID if (n := counts[status])]
    packages = dict.fromkeys("torch" if cap.status is CapStatus.DEPENDENCY else cap.package for cap in found)
    return f"{len(found)} bound{'s' * (len(found) > 1)} on {', '.join(packages)}: {', '.join(parts)}."


def _place(cap: Cap) -> str:
    return f"{cap.file}:{cap.line}" if cap.line else cap.file


def _origin(cap: Cap) -> str:
    parts = (cap.since and f"since {cap.since}", cap.why and f'"{cap.why[:60]}"')
    return ", ".join(filter(None, parts)) + (f" ({cap.commit})" if cap.commit else "")


def _verdict(cap: Cap) -> str:
    to = {CapStatus.REMOVABLE: "can move to" if cap.to else "can go", CapStatus.NEEDED: "could become"}.get(cap.status)
    end = f"; {to} {cap.to}".rstrip() if to and (cap.to or cap.status is CapStatus.REMOVABLE) else ""
    return f"{_SAID[cap.status][0]}: {english(cap.said)}{end}"


def _text(found: Sequence[Cap]) -> str:
    blocks = [["", *_block(cap)] for cap in found]
    last = ["", "For a pull request: --format markdown       Only what can go: --removable"] if found else []
    lines, shown = fitting(blocks, SCREEN - len(last) - 2)
    more = [f"{len(blocks) - shown} more: --json"] if shown < len(blocks) else []
    return "\n".join([*wrapped(_summary(found)), *lines, *last[:1], *more, *last[1:]]) + "\n"


def _block(cap: Cap) -> Iterator[str]:
    what = f"{cap.package} asks {cap.bound}" if cap.status is CapStatus.DEPENDENCY else f"{cap.package}{cap.bound}"
    yield from wrapped(one_line(_place(cap)).ljust(24) + f" {what:<22} {one_line(_origin(cap))}".rstrip(), later="    ")
    yield from wrapped(one_line(_verdict(cap)), "  ", "  ")
    yield from (f"  what would settle it: {one_line(line)}" for line in cap.commands[:1])


def _markdown(found: Sequence[Cap]) -> str:
    texts = [(_place(cap), f"{cap.package}{cap.bound}", _origin(cap), _verdict(cap)) for cap in found]
    rows = [f"| {' | '.join(map(escaped, row))} |" for row in texts]
    head = ["", "| where | bound | since, why | measured |", "| --- | --- | --- | --- |"] if rows else []
    commands = [(_place(cap), one_line(cap.commands[0]).replace("`", "'")) for cap in found if cap.commands]
    settle = [f"- {escaped(place)}: `{line}`" for place, line in commands]
    how = ["", "What would settle it:", "", *settle] if settle else []
    return "\n".join([_summary(found), *head, *rows, *how]) + "\n"
