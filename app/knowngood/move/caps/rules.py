"""The verdict on a bound: it may go, it is still needed, or what would settle it. Pure.

"No known reason" is said only where somebody who moves above the bound loses nothing that we know of: the newest
release there that is settled is measured enough, whatever fails there and not below has a workaround that works there,
and neither the line nor its commit gives a reason that nobody measured. `move.upgrade` counts all of this.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from packaging.requirements import InvalidRequirement, Requirement
from packaging.version import Version

from knowngood.domain.builds.build import DEFAULT_PYTHON, Build
from knowngood.domain.builds.plain_names import plain_name
from knowngood.domain.issue import Issue
from knowngood.domain.message import Message, Quoted, clauses
from knowngood.domain.threads import Thread, ThreadIndex, thread_named
from knowngood.domain.verdicts.history import is_release
from knowngood.domain.verdicts.known import Known
from knowngood.domain.verdicts.status import FAILING_PROSPECTS, Prospect, remedy_of
from knowngood.environments.wheels.refusals import release_to_move_to, torch_bounds
from knowngood.environments.wheels.table import WheelTable, holds_on_linux
from knowngood.move.caps.bounds import Declared
from knowngood.move.upgrade.candidates import LEAST, Tally
from knowngood.move.upgrade.ranking import UpgradeAdvice
from knowngood.serialization.message_field import MessageField


class CapStatus(StrEnum):
    """In the order in which they are told."""

    REMOVABLE = "removable"
    NEEDED = "needed"
    NOT_MEASURED = "not_measured"
    DEPENDENCY = "dependency"  # a bound of another package, which holds torch back
    IDLE = "idle"  # no release is above it


@dataclass(frozen=True)
class Origin:
    """The commit that a line is from, by `git blame`; `since` is its day, `before` one where a shallow clone ends."""

    commit: str = ""
    since: str = ""
    subject: str = ""
    body: str = ""


@dataclass(frozen=True)
class Cap:
    """A bound with what is known of it. `why` is the reason that its line or commit gives, in their words. `to` is the
    bound that it can become (empty: none is known). `commands` would settle it.
    """

    status: CapStatus
    said: MessageField
    commands: tuple[str, ...] = ()
    to: str = ""
    file: str = ""
    line: int = 0
    package: str = ""
    bound: str = ""
    since: str = ""
    commit: str = ""
    why: str = ""


def _open(key: str, *commands: str, **values: str | int | Quoted | tuple[str, ...]) -> Cap:
    return Cap(CapStatus.NOT_MEASURED, Message(key, **values), commands)


# -- the reason that somebody wrote down -------------------------------------------------------------------------------

_TROUBLE = re.compile(
    r"(?i)\b(?:fix|break|broke|fail|error|crash|regress|incompat|compat|bug|segfault|hang|wrong|oom|memory|leak|slow|"
    r"workaround|conflict|revert|downgrad|problem|mismatch|avoid|because|due to|unsupported|not|cannot|never)|n't\b"
    r"|[^\W\d_a-z]"  # a language that nobody reads here
)
_SPEAKS = re.compile(r"(?i)\b(?:py)?torch|\btriton|\bpin|\bcap|\bbound|\bconstrain|\brestrict|\bversion|\bdep|\d\.\d")
_PLAIN = re.compile(
    r"add|allow|an|and|at|back|be|bot|bound|build|bump|cap|case|chore|ci|conservative|conservatively|few|"
    r"higher|package|packages|bounds|caps|pins|bumps|constraint|constraints|dependencies|dependency|dep|deps|"
    r"dev|feat|first|for|from|in|initial|is|it|just|last|latest|limit|lock|loosen|lower|make|max|maximum|min|"
    r"minimum|new|next|now|of|on|optional|or|pin|pinned|precaution|project|py|pyproject|python|pytorch|range|"
    r"raise|relax|release|released|remove|require|required|requirement|requirements|restrict|safe|safety|set|"
    r"setup|stable|support|test|tested|tests|the|tighten|till|to|todo|toml|torch|torchaudio|torchvision|"
    r"triton|txt|unpin|until|up|update|upgrade|upper|use|version|versions|wait|we|widen|with"
)
"""Words of which no reason is made."""

_SQUASHED = re.compile(r"\(#\d{1,9}\)$")
_FEWEST_FIGURES = 5  # of a number alone that may be a thread of PyTorch's
_NEAR = re.compile(r"[^\s,;()\[\]<>\"'`]+")


def gives_reason(text: str, *, is_of_line: bool = False) -> bool:
    """Whether a text says more than that there is a bound. What stands on the very line speaks of it; another text does
    where it speaks of versions, or of trouble.
    """
    if not is_of_line and not _SPEAKS.search(text):
        return _TROUBLE.search(text) is not None
    return any(not _PLAIN.fullmatch(word) for word in re.findall(r"[^\W\d_]{2,}", text.lower()))


PAIRED = frozenset(
    {
        "causal-conv1d",
        "fairseq2",
        "flash-attn",
        "intel-extension-for-pytorch",
        "mamba-ssm",
        "torch-cluster",
        "torch-npu",
        "torch-scatter",
        "torch-sparse",
        "torchdata",
        "torchtext",
    }
)
"""Packages whose wheels are made for one torch each, and that no table here has."""

Named = Mapping[Thread, Sequence[str]]
"""Threads with the issues that they are; those of the project itself, and others that nobody here knows, are none."""


def stated_reason(declared: Declared, origin: Origin, index: ThreadIndex) -> tuple[str, Named]:
    """The reason that is given, in its words (empty: none is), and the threads that it names: by their address, as
    `pytorch#151290`, `pytorch-151290`, `#151290`.
    """
    texts = (declared.comment, declared.above, _SQUASHED.sub("", origin.subject), origin.body)
    threads = (
        thread
        for word in _NEAR.findall(" ".join(texts))
        if (thread := thread_named(word, index.projects))
        and ("#" in word or "/" in word or len(thread.number) >= _FEWEST_FIGURES)
    )
    named = {
        thread: index.find(thread)[0] if thread.repository or len(thread.number) >= _FEWEST_FIGURES else ()
        for thread in threads
    }
    reasons = (text for text in texts if gives_reason(text, is_of_line=text == declared.comment))
    return next(reasons, next(filter(None, texts), "") if named else ""), named


# -- what is measured above it -----------------------------------------------------------------------------------------

_OF_BUILD: Mapping[str, Callable[[Build], str]] = {
    "torch": lambda build: build.build_id.release,
    "triton": lambda build: build.triton or "",
}


@dataclass(frozen=True)
class Judge:
    """`advise` ranks the builds above one. `hardware` are the classes that count."""

    known: Known
    table: WheelTable
    index: ThreadIndex
    advise: Callable[[Build], UpgradeAdvice]
    hardware: tuple[str, ...]

    def caps(self, declared: Sequence[Declared], origins: Mapping[tuple[str, int], Origin]) -> Iterator[Cap]:
        """Judge every bound among the requirements of a project."""
        for one in declared:
            origin = origins.get((one.file, one.line), Origin())
            why, named = stated_reason(one, origin, self.index)
            beside = [other for other in declared if other.file == one.file and other.package != one.package]
            for bound in one.bounds if one.package not in PAIRED else ():
                judged = self._by_index(one, bound) or self._by_builds(one, bound, (why, named), beside)
                placed = replace(judged, file=one.file, line=one.line, package=one.package, bound=bound)
                why = why or one.comment or origin.subject
                yield replace(placed, since=origin.since, commit=origin.commit, why=why)

    def _by_index(self, declared: Declared, bound: str) -> Cap | None:
        """None where the bound keeps something out that may have been measured."""
        releases, above = self.table.releases(declared.package), _above(declared, bound, self.table)
        if releases and not above and bound.startswith("!="):
            return _open("cap_nothing", name=f"{declared.package} {bound[2:]}")
        if releases and not above:
            return Cap(CapStatus.IDLE, Message("cap_idle", name=declared.package, found=str(releases[-1].version)))
        settle = f"pip install '{declared.package}=={above[-1]}' && knowngood here" if above else ""
        if declared.package not in _OF_BUILD or not releases:
            asked = releases[-1].specifier("torch", DEFAULT_PYTHON) if releases else None
            name = f"{declared.package} {releases[-1].version}" if releases else declared.package
            other = Message("cap_other" if asked else "cap_unknown", name=name, specifier=str(asked))
            return Cap(CapStatus.NOT_MEASURED, clauses([*self._holding(declared), other]), (settle,))
        if declared.is_conda:
            return _open("cap_conda", settle)
        return None if _holds(declared.marker) else _open("cap_marker", settle, marker=Quoted(declared.marker))

    def _holding(self, declared: Declared) -> Iterator[Message]:
        """Whether torch is held back too, as by torchvision<0.24."""
        releases = ((declared.package, each.version) for each in self.table.releases(declared.package))
        allowed = {one: str(version) for one, version in releases if version in declared.specifier}
        for package, specifier in torch_bounds(allowed, DEFAULT_PYTHON, self.table).items():
            yield Message("cap_holds", name=f"{package} {allowed[package]}", specifier=specifier)

    def _by_builds(self, declared: Declared, bound: str, reason: tuple[str, Named], beside: Sequence[Declared]) -> Cap:
        release_of, above = _OF_BUILD[declared.package], _above(declared, bound, self.table)
        line = [build for build in self.known.every_wheel if is_release(build) and release_of(build)]
        line.sort(key=lambda build: build.build_id)
        higher = [build for build in line if Version(release_of(build)) in above]
        settled = [build for build in higher if (age := self.known.age(build)) and age.settled]
        if cap := self._by_reason(*reason, higher, settled):
            return cap
        inside = [each.version for each in self.table.releases(declared.package) if each.version in declared.specifier]
        newest = max((version for version in inside if version < above[0]), default=above[0])
        lower = [build for build in line if Version(release_of(build)) <= newest and build not in higher]
        if not lower or Version(release_of(lower[-1])).release[:2] != newest.release[:2] or not higher:
            name = f"{declared.package} {newest if higher else above[0]}"
            return _open("cap_nothing", "knowngood discover", name=name)
        if not settled:
            age = self.known.age(higher[0])
            return _open("cap_too_new", name=_named(higher), days=age.days if age else 0, n=age.reported if age else 0)
        held = next(self._held(beside, settled[-1]), None)
        return held or self._by_evidence(lower[-1], settled[-1], f"<{_next(release_of(settled[-1]))}", bound)

    def _by_reason(self, why: str, named: Named, higher: Sequence[Build], settled: Sequence[Build]) -> Cap | None:
        """None where no reason is given, or nothing is left of it: what it names passes above the bound."""
        if lacking := [thread for thread, ids in named.items() if not ids]:
            names = tuple(thread.name for thread in lacking)
            return _open("cap_lacking", *(thread.command for thread in lacking), names=names)
        if why and not named:
            return _open("cap_no_row", f"knowngood try bug.py --builds {','.join(_releases((settled or higher)[-1:]))}")
        for id_ in dict.fromkeys(id_ for ids in named.values() for id_ in ids):
            prospects = {build: self._prospects(self.known.issues[id_], build) for build in higher}
            failing = [build for build, found in prospects.items() if found & FAILING_PROSPECTS]
            passing = [build for build, found in prospects.items() if found == {Prospect.PASSES}]
            if failing:
                fixed = [build for build in passing if build.build_id > failing[-1].build_id]
                fails = Message("cap_row_fails", issue=id_, names=_releases(failing))
                passes = [Message("cap_row_passes", names=_releases(fixed))] if fixed else []
                to = ",".join(dict.fromkeys(f"!={build.minor}.*" for build in failing)) if fixed else ""
                return Cap(CapStatus.NEEDED, clauses([fails, *passes]), to=to)
            if not settled or settled[-1] not in passing:
                unknown = _releases((settled or higher)[-1:])
                return _open(
                    "cap_row_unknown", f"knowngood run --issues {id_} --builds {unknown[0]}", issue=id_, names=unknown
                )
        return None

    def _prospects(self, row: Issue, build: Build) -> set[Prospect]:
        classes = [class_ for class_ in self.hardware if self.known.was_measured(row.id, class_)]
        return {remedy_of(self.known.cell(row, build, class_)) for class_ in classes} - {Prospect.DOES_NOT_APPLY}

    def _held(self, beside: Sequence[Declared], target: Build) -> Iterator[Cap]:
        """The other requirements of the same file that cannot go along, or of which nobody knows it."""
        for other in beside:
            taken = [each for each in self.table.releases(other.package) if each.version in other.specifier]
            asked = [each.specifier("torch", DEFAULT_PYTHON) for each in taken]
            if asked and not any(specifier is None or target.build_id.release in specifier for specifier in asked):
                name = f"{other.package}{other.specifier}"
                yield Cap(CapStatus.NEEDED, Message("cap_together", name=name, specifier=str(asked[-1])))
            if other.package in PAIRED:
                command = f"knowngood wheels {other.package}"
                yield _open("cap_paired", command, name=other.package, found=_named([target]))

    def _by_evidence(self, base: Build, target: Build, to: str, bound: str) -> Cap:
        advice = self.advise(base)
        candidate = next((each for each in advice.candidates if each.build.wheel.id == target.id), None)
        between = {"base": base.build_id.release, "found": target.build_id.release}
        if candidate is None:
            return _open("cap_nothing", f"knowngood upgrade --from {base.id} --all", name=_named([target]))
        if lost := tuple(item.issue.id for item in candidate.lost_for_good):
            return Cap(CapStatus.NEEDED, Message("cap_loses", names=lost, **between))
        settle = (*candidate.untried.commands, *candidate.missing.commands, *advice.base.missing.commands)[:1]
        if advice.base.coverage < LEAST or candidate.assurance < advice.enough or not candidate.applicable:
            unknown = {"n": candidate.counts[Tally.NOT_KNOWN], "m": advice.base.counts[Tally.NOT_KNOWN]}
            return _open("cap_hardly", *settle, **unknown, **between)
        if candidate.unremedied:
            return _open("cap_may_lose", *settle, n=len(candidate.unremedied), **between)
        fails = sum(item.may_be_lost for item in candidate.items)
        classes = tuple(map(plain_name, advice.hardware))
        said = Message(
            "cap_removable" if fails else "cap_none_fails", m=len(candidate.items), n=fails, classes=classes, **between
        )
        return Cap(CapStatus.REMOVABLE, said, to="" if bound.startswith("!=") else to)


def _above(declared: Declared, bound: str, table: WheelTable) -> list[Version]:
    """The releases that the bound keeps out, oldest first: below an upper one none are counted."""
    releases = [each.version for each in table.releases(declared.package) if not each.yanked]
    inside = [version for version in releases if version in declared.specifier]
    least = inside[-1] if inside and not bound.startswith("!=") else Version("0")
    return [each for each in releases if each in declared.without(bound) and each not in inside and each > least]


def _holds(marker: str) -> bool:
    """Whether a marker holds on Linux x86-64 for the Python that most is measured with."""
    try:
        return holds_on_linux(Requirement(f"torch; {marker}" if marker else "torch"), DEFAULT_PYTHON)
    except InvalidRequirement:
        return False


def _releases(builds: Sequence[Build]) -> tuple[str, ...]:
    return tuple(build.build_id.release for build in builds)


def _named(builds: Sequence[Build]) -> str:
    return f"torch {', '.join(_releases(builds))}"


def _next(release: str) -> str:
    major, minor, *_ = Version(release).release
    return f"{major}.{minor + 1}"


# -- bounds of dependencies --------------------------------------------------------------------------------------------


def held_back(
    file: str, packages: Mapping[str, str], asked: Mapping[str, str], torch: str, table: WheelTable
) -> Iterator[Cap]:
    """The packages of a lock, with their versions, that keep it below the newest torch, by what they ask for. `torch`
    is that of the lock.
    """
    newest = table.releases("torch")[-1].version
    for package, specifier in asked.items():
        newer = release_to_move_to(package, packages[package], Version(torch), newest, DEFAULT_PYTHON, table)
        name = f"{package} {newer}" if newer else package
        said = Message(
            "cap_dependency_moves" if newer else "cap_dependency", torch=torch, newest=str(newest), name=name
        )
        name = f"{package} {packages[package]}"
        yield Cap(CapStatus.DEPENDENCY, said, file=file, package=name, bound=f"torch{specifier}")
