"""The issues that a text means: ids in the forms people write them, components, packages, severities.

An id is meant by itself, in any case, and by its report: `pytorch/xla#8464`, `#8464`, `8464` or the thread's address.
One report may be several issues here; then all of them are meant. `all` means every issue, where issues are chosen.
A watch list is a team's choice of issues under a name.
"""

import difflib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from difflib import get_close_matches

from packaging.utils import canonicalize_name

from knowngood.domain.errors import BadRequest, KnownGoodError, UnknownIssue
from knowngood.domain.grouping import grouped
from knowngood.domain.issue import Issue, LinkKind, Severity


@dataclass(frozen=True)
class Watch:
    """A choice of issues: everything named here together. `packages` are names whose issues need them beside torch."""

    issues: tuple[str, ...] = ()
    components: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    severity: Severity | None = None
    lists: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        return not (self.issues or self.components or self.packages or self.severity or self.lists)


_THREAD = re.compile(r"^(?:https?://)?github\.com/([\w.-]+/[\w.-]+)/(?:issues|pull|discussions)/(\d+)", re.IGNORECASE)
_SHORT = re.compile(r"^(?:[\w.-]+/)?([\w.-]+)#(\d+)$")
REQUIREMENT_NAME = re.compile(r"^\s*([A-Za-z0-9][A-Za-z0-9._-]*)")

ALL = "all"

_SHOWN_CHARACTERS = 80
_SHOWN_UNKNOWN = 3  # looking for near names takes milliseconds each, and a request may hold thousands


@dataclass(frozen=True)
class Names:
    """Ids of issues by what may be written for them: `ids` and `components` in small letters, `packages` canonical,
    `numbers` of the reports (`8464`).
    """

    ids: Mapping[str, tuple[str, ...]]
    components: Mapping[str, tuple[str, ...]]
    packages: Mapping[str, tuple[str, ...]]
    numbers: Mapping[str, tuple[str, ...]]


def names_of(issues: Mapping[str, Issue]) -> Names:
    return Names(
        ids=_ids_by(issues, lambda issue: {issue.id.casefold(), *_reports(issue)}),
        components=_ids_by(issues, lambda issue: {issue.component.casefold()}),
        packages=_ids_by(issues, _packages),
        numbers=_ids_by(issues, lambda issue: {issue.id.rpartition("-")[2]}),
    )


def _ids_by(issues: Mapping[str, Issue], words: Callable[[Issue], set[str]]) -> Mapping[str, tuple[str, ...]]:
    """Ids in their order by each of the words that an issue has."""
    pairs = ((word, issue.id) for issue in issues.values() for word in words(issue))
    return {
        word: tuple(sorted(id_ for _, id_ in matches)) for word, matches in grouped(pairs, lambda pair: pair[0]).items()
    }


def _reports(issue: Issue) -> set[str]:
    return {short for link in issue.links if link.kind is LinkKind.REPORT and (short := _as_short(link.url))}


def _as_short(text: str) -> str:
    """`org/repo#123` in small letters for a thread's address; empty for any other text."""
    match = _THREAD.match(text)
    return f"{match[1]}#{match[2]}".casefold() if match else ""


def _packages(issue: Issue) -> set[str]:
    packages = issue.packages
    texts = [*packages.requirements, *(text for texts in packages.per_release.values() for text in texts)]
    return {canonicalize_name(match[1]) for text in texts if (match := REQUIREMENT_NAME.match(text))}


def meant_by(text: str, names: Names) -> tuple[str, ...]:
    """The ids that `text` means; empty where it means no issue of this catalogue."""
    written = text.strip()
    folded = _as_short(written) or written.casefold()
    ids = names.ids.get(folded)
    if ids is None and (short := _SHORT.match(folded)):
        ids = names.ids.get(f"{short[1]}-{short[2]}")
    number = folded.removeprefix("#")
    return ids or (names.numbers.get(number, ()) if number.isdecimal() else ())


def is_all(text: str) -> bool:
    return text.strip().casefold() == ALL


def find_issues(written: Iterable[str], issues: Mapping[str, Issue]) -> tuple[Issue, ...]:
    """The issues that are meant, in the order of `issues`; with `all` every one. Raises UnknownIssue."""
    texts = list(dict.fromkeys(written))
    if any(map(is_all, texts)):
        return tuple(issues.values())
    ids = {text for text in texts if text in issues}
    if len(ids) < len(texts):
        names = names_of(issues)
        ids_by_text = {text: meant_by(text, names) for text in texts}
        if unknown := _unknown(ids_by_text):
            raise UnknownIssue(_no_such("issue", unknown), _near(unknown, names.ids))
        ids = {id_ for each in ids_by_text.values() for id_ in each}
    return tuple(issue for id_, issue in issues.items() if id_ in ids)


def find_issue(written: str, issues: Mapping[str, Issue]) -> Issue:
    """Find the one issue that is meant. Raises UnknownIssue, also where there are several."""
    if is_all(written):
        raise UnknownIssue(f'"{_shown(written)}" is every issue here; name one')
    first, *more = find_issues([written], issues)
    if more:
        ids = [issue.id for issue in (first, *more)]
        raise UnknownIssue(f'"{_shown(written)}" is more than one issue here', ids, what="candidates")
    return first


def nearest(wanted: str, known: Iterable[str], limit: int = 3, *, longest: int = _SHOWN_CHARACTERS) -> list[str]:
    """The known names most like what was written: the same number first, then alike letters."""
    pool, wanted = sorted(known), wanted[:longest]
    number = "".join(character for character in wanted if character.isdigit())
    numbered = [name for name in pool if len(number) > 2 and number in name]  # noqa: PLR2004 - shorter ones say nothing
    alike = difflib.get_close_matches(wanted, pool, n=limit, cutoff=0.5)
    return list(dict.fromkeys([*numbered, *alike]))[:limit]


def watched_issues(
    watch: Watch, issues: Mapping[str, Issue], names: Names
) -> tuple[tuple[Issue, ...], tuple[str, ...]]:
    """The watched issues by id, and notes on what was named and is needed by none of them.

    Everything that the watch names counts, not only what all of it names. Raises BadRequest for lists that name
    nothing, and for ids and components that are not of this catalogue: a misspelt one would watch nothing, unnoticed.
    A package that no issue here needs is noted, because teams watch all they use.
    """
    if watch.lists and watch == Watch(lists=watch.lists):
        raise BadRequest(f"the watch list {', '.join(map(_shown, watch.lists))} names nothing")
    if any(map(is_all, watch.issues)):
        ids = set(issues)
    else:
        ids = _require_ids("issue", watch.issues, {text: meant_by(text, names) for text in watch.issues}, names.ids)
    by_component = {text: names.components.get(text.strip().casefold(), ()) for text in watch.components}
    if by_component:
        ids |= _require_ids("component", watch.components, by_component, {issue.component for issue in issues.values()})
    by_package = {text: names.packages.get(canonicalize_name(text.strip()), ()) for text in watch.packages}
    ids |= {id_ for matches in by_package.values() for id_ in matches}
    if least := watch.severity:
        ids |= {issue.id for issue in issues.values() if is_at_least(issue.severity, least)}
    notes = tuple(
        f"no issue here needs the package {_shown(text)}" for text, matches in by_package.items() if not matches
    )
    return tuple(issues[id_] for id_ in sorted(ids)), notes


def _require_ids(
    what: str, texts: Sequence[str], ids_by_text: Mapping[str, Sequence[str]], known: Iterable[str]
) -> set[str]:
    if unknown := _unknown({text: ids_by_text[text] for text in texts}):
        names = sorted(known)
        near = _near(unknown, names)
        raise BadRequest(
            _no_such(what, unknown)
            + (f"; nearest: {', '.join(near)}" if near else f"; there are {len(names)}: {', '.join(names[:3])}, ...")
        )
    return {id_ for ids in ids_by_text.values() for id_ in ids}


def _unknown(ids_by_text: Mapping[str, Sequence[str]]) -> list[str]:
    return [text for text, ids in ids_by_text.items() if not ids]


def _near(unknown: Sequence[str], known: Iterable[str]) -> list[str]:
    pool = list(known)
    return list(dict.fromkeys(name for text in unknown[:_SHOWN_UNKNOWN] for name in nearest(text, pool)))


def _no_such(what: str, unknown: Sequence[str]) -> str:
    named = ", ".join(f'"{_shown(text)}"' for text in unknown[:_SHOWN_UNKNOWN])
    more = f" and {len(unknown) - _SHOWN_UNKNOWN} more" if len(unknown) > _SHOWN_UNKNOWN else ""
    return f"no {what} is called {named}{more} here"


def _shown(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}..."


SEVERITY_RANK = {severity: rank for rank, severity in enumerate(Severity)}


def read_severity(text: str) -> Severity | None:
    """None for an empty text. Raises BadRequest."""
    if text and text not in list(Severity):
        raise BadRequest(f'"{text[:40]}" is no severity; known: {", ".join(Severity)}')
    return Severity(text) if text else None


def is_at_least(severity: Severity, least: Severity) -> bool:
    return SEVERITY_RANK[severity] >= SEVERITY_RANK[least]


def speaks_of(issue: Issue, words: str) -> bool:
    """Whether all of the words stand in an issue's id, title or component."""
    text = f"{issue.id} {issue.title} {issue.title_zh} {issue.component}".casefold()
    return all(term in text for term in words.casefold().split())


# -- Watch lists: what a team keeps under a name -----------------------------------------------------------------------

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}\Z")
HARDWARE_FORM = re.compile(r"(cpu|cuda)-[a-z0-9_]{1,30}\Z")
_PACKAGE = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,98}[A-Za-z0-9])?\Z")
_MOST_NAMES = 2000
_LONGEST_DESCRIPTION = 500


class BadWatchList(KnownGoodError):
    """A watch list that is empty, or names something that does not exist."""


class UnknownWatchList(KnownGoodError):
    """A name that no watch list has."""


class WatchListTaken(KnownGoodError):
    """Another version is there than the one that a change was made for."""


@dataclass(frozen=True)
class WatchListContent:
    """The content of a list; each change of it is a version. `hardware` are the classes that count (none: all
    measured).
    """

    watch: Watch = field(default_factory=Watch)
    hardware: tuple[str, ...] = ()
    description: str = ""


@dataclass(frozen=True)
class WatchList:
    """A list as it is now. Its `owner`, and holders of `admin`, may change it."""

    name: str
    owner: str
    version: int
    changed_at: datetime
    changed_by: str
    content: WatchListContent


def checked_name(name: str) -> str:
    if not _NAME.match(name):
        raise BadWatchList(
            f'"{name[:80]}" is no name for a watch list; use up to 64 small letters, digits, dots, dashes '
            "and underscores, such as vision-team"
        )
    return name


def checked(content: WatchListContent, issues: Mapping[str, Issue]) -> WatchListContent:
    """The content with each name once. Raises BadWatchList, or BadRequest for issues and components there are not.

    Packages need not be known: the first issue that needs one may come tomorrow.
    """
    watch = content.watch
    if watch.lists:
        raise BadWatchList("a watch list cannot name other lists; name its issues, components or packages")
    if watch.is_empty:
        raise BadWatchList("a watch list without issues, components, packages or severity watches nothing")
    if sum(map(len, (watch.issues, watch.components, watch.packages, content.hardware))) > _MOST_NAMES:
        raise BadWatchList(f"a watch list holds at most {_MOST_NAMES} names; watch a component instead")
    if len(content.description) > _LONGEST_DESCRIPTION or not content.description.isprintable():
        raise BadWatchList(f"description: one line of at most {_LONGEST_DESCRIPTION} characters")
    watched_issues(watch, issues, names_of(issues))
    _refuse_malformed("package", watch.packages, _PACKAGE)
    _refuse_malformed("hardware class", content.hardware, HARDWARE_FORM)
    named = replace(watch, issues=once(watch.issues), components=once(watch.components), packages=once(watch.packages))
    return replace(content, watch=named, hardware=once(content.hardware))


def _refuse_malformed(what: str, names: Iterable[str], form: re.Pattern[str]) -> None:
    for name in names:
        if not form.match(name):
            raise BadWatchList(f'"{name[:100]}" is no {what}')


def or_near(name: str, known: Iterable[str]) -> str:
    near = get_close_matches(name[:100], list(known), n=3, cutoff=0.4)
    return f"; nearest: {', '.join(near)}" if near else ""


def once(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))
