"""`knowngood discover`: which releases of torch and Triton the package index has that the catalogue has not; and in
which state upstream's threads are. `--write` adds the builds to a `builds.toml` that people keep: its comments, its
order and all it says stay as they are.
"""

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import click
from packaging.version import InvalidVersion, Version

from knowngood.catalogue.loader import read_builds, shipped_catalogue
from knowngood.catalogue.text_files import CatalogueProblems, read_text, read_toml
from knowngood.cli.context import opened_with_catalogue
from knowngood.cli.exit_codes import Exit
from knowngood.cli.lazy import command
from knowngood.cli.options import AS_JSON, PATH, flag, option, text
from knowngood.domain.builds.build import DEFAULT_PYTHON, Build
from knowngood.domain.errors import BadRequest
from knowngood.domain.issue import Look
from knowngood.domain.vocabulary import many
from knowngood.measure.discovery.releases import (
    BuildProposal,
    Release,
    foreign_triton,
    main_wheel,
    new_releases,
    propose_build,
    read_wheel_facts,
    releases_of,
    usual_pythons,
)
from knowngood.measure.discovery.upstream import read_states, threads_of
from knowngood.settings import read_settings
from knowngood.store.catalogue import load_looks, save_looks
from knowngood.store.engine import reading, unit_of_work
from knowngood.store.queries import load_issues
from knowngood_workers.provision.index_config import read_index
from knowngood_workers.provision.simple_index import SimpleIndex, UnreadableWheel


@dataclass(frozen=True)
class Discovery:
    """`additions` are builds to add, `undescribed` new releases that no build can be written for, with the reason.

    `older` are releases between those of the catalogue that it leaves out; `yanked` maps withdrawn ones to why.
    """

    additions: tuple[BuildProposal, ...]
    undescribed: Mapping[str, str] = field(default_factory=dict)
    older: tuple[str, ...] = ()
    yanked: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_news(self) -> bool:
        return bool(self.additions or self.undescribed)


@command(
    "Look for new releases of torch and Triton, and print their builds; 0: none, 1: some, 4: the index is unusable.\n\n"
    "With --upstream, ask GitHub's API instead whether each issue's thread is open or closed, and keep the "
    "answer in the store; the issue files stay as they are. Ends with 1 if a state changed, and with 4 if no "
    "thread could be read. A token in GITHUB_TOKEN raises the API's limit; GITHUB_API_URL names another server.",
    text("--index", "The address of the index. Default: the one that pip and uv use here.", "URL"),
    option("--file", type=PATH, help="The builds.toml to compare with and write to. Default: the shipped one."),
    text("--since", "Propose every release from this one on, such as 2.4.", "VERSION"),
    flag("--upstream", help_="Read the states of upstream's threads instead."),
    flag("--write", help_="Add the builds to the file; its comments and order stay."),
    AS_JSON,
    example="discover --since 2.9 --write --file repros/builds.toml",
)
def discover(*, index: str, file: Path | None, since: str, upstream: bool, write: bool, as_json: bool) -> Exit:
    if upstream:
        if index or file or since or write or as_json:
            raise BadRequest("--upstream asks no package index, and goes with no other option")
        return _look_upstream()
    place = file or shipped_catalogue() / "builds.toml"
    try:
        builds = read_builds(place)
    except CatalogueProblems as wrong:
        raise BadRequest(f"{place} cannot be used: {wrong.problems[0]}") from None
    least = _version(since)
    simple_index = SimpleIndex(read_index(os.environ), only=_address(index))
    discovery = look(simple_index, builds, datetime.now(UTC).date(), least)
    if write and discovery.additions:
        add_builds(place, discovery.additions)
    if as_json:
        click.echo(json.dumps(as_body(discovery, written=write), indent=2))
    else:
        _print(discovery, place, written=write)
    return Exit.FINDING if discovery.is_news else Exit.OK


def _look_upstream() -> Exit:
    engine = opened_with_catalogue(read_settings())
    with reading(engine) as s:
        looks, issues = load_looks(s), load_issues(s)
    threads = threads_of(issues, looks)
    answers = dict(read_states(threads, looks, os.environ, datetime.now(UTC)))
    found = {url: answer for url, answer in answers.items() if isinstance(answer, Look)}
    with unit_of_work(engine) as s:
        save_looks(s, found)
    turned = [url for url, look in found.items() if threads[url].state not in {"", look.state}]
    unread = (f"{threads[url].name} was not read: {answers[url]}\n" for url in answers if url not in found)
    news = (f"{threads[url].name} is {found[url].state} now\n" for url in turned)
    counts = f"{len(found)} of {many(len(threads), 'thread')} looked at, {len(turned)} turned"
    click.echo("".join((*unread, *news, counts, "; the others the next time" if len(answers) < len(threads) else "")))
    return Exit.UNUSABLE if threads and not found else Exit.FINDING if turned else Exit.OK


def _version(text: str) -> Version | None:
    try:
        return Version(text) if text else None
    except InvalidVersion:
        raise BadRequest(f'--since "{text}" is no version; write for example 2.4') from None


def _address(text: str) -> str:
    if text and not text.startswith(("http://", "https://")):
        raise BadRequest("--index takes an address such as https://mirror.example.org/simple")
    return text


def look(index: SimpleIndex, builds: Sequence[Build], today: date, since: Version | None = None) -> Discovery:
    """Ask the index. Raises IndexUnusable; a wheel that cannot be read is named, and the others go on."""
    torches, tritons = releases_of(index.files_of("torch")), releases_of(index.files_of("triton"))
    fresh, older = new_releases(torches, builds, since)
    usual = usual_pythons(builds)
    additions: list[BuildProposal] = []
    undescribed: dict[str, str] = {}
    for release in fresh:
        python, wheel = main_wheel(release, usual)
        try:
            metadata, version_py = index.metadata_of(wheel)
        except UnreadableWheel as problem:
            undescribed[str(release.version)] = str(problem)
            continue
        facts = read_wheel_facts(metadata, version_py, python)
        made = propose_build(release, facts, tritons, usual, today)
        if isinstance(made, str):
            undescribed[str(release.version)] = made
        else:
            additions.append(made)
    foreign = foreign_triton(builds, additions, tritons, today)
    return Discovery(
        additions=(*additions, *([foreign] if foreign else [])),
        undescribed=undescribed,
        older=tuple(str(release.version) for release in older),
        yanked={**_yanked("torch", torches), **_yanked("triton", tritons)},
    )


def _yanked(project: str, releases: Mapping[Version, Release]) -> dict[str, str]:
    return {
        f"{project} {release.version}": release.yanked for release in releases.values() if release.yanked is not None
    }


def as_body(discovery: Discovery, *, written: bool) -> dict[str, Any]:
    return {
        "builds": [
            {
                "torch": addition.torch,
                "local": addition.local,
                "cuda": addition.cuda,
                "triton": addition.triton,
                "with_triton": addition.with_triton,
                "git": addition.git,
                "python": addition.python,
                "pythons": list(addition.pythons),
                "as_of": addition.as_of.isoformat(),
                "released": addition.released.isoformat() if addition.released else None,
                "remarks": list(addition.remarks),
                "toml": as_toml(addition),
            }
            for addition in discovery.additions
        ],
        "undescribed": dict(discovery.undescribed),
        "older": list(discovery.older),
        "yanked": dict(discovery.yanked),
        "written": written and bool(discovery.additions),
    }


def _print(discovery: Discovery, place: Path, *, written: bool) -> None:
    """TOML on the standard output, ready to paste; what else there is to say on the standard error."""
    for addition in discovery.additions:
        click.echo("\n".join([*(f"# {remark}" for remark in addition.remarks), as_toml(addition), ""]))
    for version, reason in discovery.undescribed.items():
        click.echo(f"torch {version} is new, and no build can be written for it: {reason}", err=True)
    for name, reason in discovery.yanked.items():
        click.echo(f"{name} was withdrawn from the index (yanked){f': {reason}' if reason else ''}", err=True)
    if discovery.older:
        more = "older releases that the catalogue leaves out (--since VERSION proposes them)"
        click.echo(f"{more}: {', '.join(discovery.older)}", err=True)
    if written and discovery.additions:
        click.echo(f"{len(discovery.additions)} added to {place}; `knowngood next` plans them", err=True)
    if not discovery.is_news:
        click.echo("nothing new: the catalogue has every release since its newest", err=True)


def as_toml(addition: BuildProposal) -> str:
    """The table as it stands in the file, without a line end. What it holds are versions, dates and our own words."""
    pythons = ", ".join(f'"{python}"' for python in addition.pythons)
    lines = [
        "[[build]]",
        f'torch = "{addition.torch}"',
        f'local = "{addition.local}"',
        f'cuda = "{addition.cuda}"' if addition.cuda else "",
        f'triton = "{addition.triton}"' if addition.triton else "",
        f'git = "{addition.git}"' if addition.git else "",
        f'with_triton = "{addition.with_triton}"' if addition.with_triton else "",
        f'python = "{addition.python}"' if addition.python != DEFAULT_PYTHON else "",
        f"pythons = [{pythons}]" if pythons else "",
        f"as_of = {addition.as_of.isoformat()}",
        f"released = {addition.released.isoformat()}" if addition.released else "",
        'origin = "default"',
        f'note = "{addition.note}"' if addition.note else "",
    ]
    return "\n".join(line for line in lines if line)


def add_builds(file: Path, additions: Sequence[BuildProposal]) -> None:
    """Write the builds into the file, each after the last older one of its kind; all of them or none.

    The new text is read as the catalogue reads it before it takes the place of the file: every earlier build must be in
    it, unchanged. Raises BadRequest and leaves the file as it was.
    """
    place = file.resolve()
    try:
        uses_crlf = b"\r\n" in place.read_bytes()
        text = read_text(place)
        before = read_builds(place)
    except OSError as error:
        raise BadRequest(f"{file} cannot be read: {error.strerror}") from None
    partial = place.with_name(f"{place.name}.partial")
    try:
        for addition in sorted(
            additions, key=lambda proposal: (Version(proposal.torch), proposal.with_triton is not None)
        ):
            text = _with(text, addition, partial)
        partial.write_text(text.replace("\n", "\r\n") if uses_crlf else text, encoding="utf-8", newline="")
        after = {build.id: build for build in read_builds(partial)}
        if any(after.get(build.id) != build for build in before) or len(after) <= len(before):
            raise BadRequest(f"{file} would not hold what it held before; add the tables by hand")
        shutil.copymode(place, partial)
        os.replace(partial, place)  # noqa: PTH105 - one step, whoever reads meanwhile
    except CatalogueProblems as found:
        words = "; ".join(f"line {problem.line}: {problem.message}" for problem in found.problems)
        raise BadRequest(f"{file} cannot take the new builds: {words}") from None
    except OSError as error:
        raise BadRequest(f"{file} cannot be written: {error.strerror}") from None
    finally:
        partial.unlink(missing_ok=True)


def _with(text: str, addition: BuildProposal, scratch: Path) -> str:
    """`text` with one more table. `scratch` is a file that it may be written to, to be looked at."""
    scratch.write_text(text, encoding="utf-8", newline="")
    lines = text.split("\n")
    at = _place(scratch, addition)
    end = len(lines) if at is None else _end_of_table(lines, at)
    while end and not lines[end - 1].strip():
        end -= 1
    rest = lines[end:]
    gap = [] if rest and not rest[0].strip() else [""]
    head = [*lines[:end], ""] if end else []
    return "\n".join([*head, *as_toml(addition).split("\n"), *gap, *rest])


def _place(file: Path, addition: BuildProposal) -> int | None:
    """The line (from 1) of the table to stand behind: the last of the same kind that is no newer; None: at the end."""
    toml = read_toml(file)
    starts = [
        toml.lines.line_of(("build", at))
        for at, table in enumerate(toml.data.get("build", []))
        if table["origin"] == "default"
        and ("with_triton" in table) == (addition.with_triton is not None)
        and table.get("python", DEFAULT_PYTHON) == addition.python
        and Version(table["torch"]) <= Version(addition.torch)
    ]
    return max(starts, default=None)


def _end_of_table(lines: Sequence[str], start: int) -> int:
    """How many lines there are up to the end of the table that begins on line `start` (from 1)."""
    end = start
    while end < len(lines) and not lines[end].startswith("["):
        end += 1
    while end > start and (not lines[end - 1].strip() or lines[end - 1].startswith("#")):
        end -= 1
    return end
