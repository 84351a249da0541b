"""The meaning of a text: one answer for the page, the API and `knowngood find`.

Total: whatever the text is, there is an answer. Where nothing fits, it says so and has no hits.
"""

import re
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches

import regex

from knowngood.ask.search.notation import HitKind, ParsedText, one_line, plain, read
from knowngood.ask.search.pasted import pasted
from knowngood.ask.search.word_index import WordIndex
from knowngood.domain.builds.build import DEFAULT_PYTHON, Build
from knowngood.domain.builds.build_names import BuildNames
from knowngood.domain.errors import UnknownBuild, UnknownIssue
from knowngood.domain.hardware_names import NamedHardware, class_named, hardware_named
from knowngood.domain.issue import Issue
from knowngood.domain.issue_selectors import find_issue
from knowngood.domain.naming.threads import USUAL, Relation, Thread, ThreadIndex
from knowngood.domain.verdicts.known import Known
from knowngood.environments.service import (
    NO_BUILD,
    SEVERAL_GPUS_WORDS,
    NoSuchBuild,
    pasted_build,
    worst_gpu,
)
from knowngood.move.upgrade.candidates import Message
from knowngood.query.evaluate import of_issues
from knowngood.query.fields import ALIASES, FIELDS
from knowngood.query.parser import BadQuery, Query, parse
from knowngood.web.urls import (
    ERRORS,
    asking,
    build_address,
    compare_address,
    issue_address,
    matrix_address,
    upgrade_address,
)

MOST_HITS = 50


@dataclass(frozen=True)
class Hit:
    """`name` is what programs tell it by: an issue, a build, a class, a query. `title` is None for an issue, which has
    its own. `told` says why it is here or what to do, `command` is what does it. `query` is that of a part of the
    matrix, without its hardware; empty where the matrix is asked for by ids.
    """

    kind: HitKind
    name: str
    address: str
    title: Message | None = None
    told: Message | None = None
    issue: Issue | None = None
    command: str = ""
    query: str = ""


@dataclass(frozen=True)
class SearchAnswer:
    """`hits` stand best first. It `is_sure` where the first is what is meant, and nothing else may be. `read_as` are
    words that were taken for others, `note` says what could not be done as it was asked. `build` and `hardware` are
    those that the text names, empty where it names none. A query that cannot be read `is_unreadable`: `note` says why,
    and the hits are those of its words.
    """

    asked: str
    hits: tuple[Hit, ...] = ()
    is_sure: bool = False
    read_as: Mapping[str, str] = field(default_factory=dict)
    note: Message | None = None
    build: str = ""
    hardware: str = ""
    is_unreadable: bool = False

    @property
    def leads_to(self) -> str:
        """The address of what is meant, where that is sure."""
        return self.hits[0].address if self.is_sure else ""


@dataclass(frozen=True)
class SearchIndex:
    """All that follows from a catalogue's issues alone."""

    words: WordIndex
    threads: ThreadIndex
    signatures: tuple[tuple[str, "regex.Pattern[str]"], ...]


def make_search_index(issues: Mapping[str, Issue]) -> SearchIndex:
    signatures = tuple(
        (issue.id, regex.compile(issue.signature.pattern, regex.MULTILINE))
        for issue in issues.values()
        if issue.signature.pattern and not issue.is_smoke and not issue.silent
    )
    return SearchIndex(WordIndex(issues.values()), ThreadIndex(issues.values()), signatures)


class SearchIndexes:
    """The index of the catalogue as it was last read; made anew when an issue has changed. For many threads."""

    def __init__(self) -> None:
        self._making = threading.Lock()
        self._issues: Mapping[str, Issue] | None = None
        self._index: SearchIndex | None = None

    def of(self, issues: Mapping[str, Issue]) -> SearchIndex:
        with self._making:
            if self._index is None or (self._issues is not issues and self._issues != issues):
                self._index = make_search_index(issues)
            self._issues = issues
            return self._index


def search(text: str, known: Known, index: SearchIndex) -> SearchAnswer:
    match pasted(text):
        case HitKind.ERROR:
            title = Message("This is an error: it is held against the signatures of all issues")
            return SearchAnswer("", (Hit(HitKind.ERROR, "", ERRORS, title),), is_sure=True)
        case HitKind.ENVIRONMENT:
            return _of_environment(text, known)
        case _:
            return _Question(text, known, index).answer()


# -- an environment that was pasted ------------------------------------------------------------------------------------


def _of_environment(text: str, known: Known) -> SearchAnswer:
    try:
        found = pasted_build(text, known.builds, known.tested)
    except NoSuchBuild as error:
        near = tuple(_build_hit(known.builds[id_], "") for id_ in error.nearest)
        return SearchAnswer("", near, note=Message(NO_BUILD, why=str(error)))
    build, gpu = found.build or "", worst_gpu(found, known)
    title = Message("Your environment is {build}", build=build)
    hit = Hit(HitKind.ENVIRONMENT, build, asking("/", mine=build, gpu=gpu), title)
    class_ = class_named(gpu, known.hardware)
    note = Message(SEVERAL_GPUS_WORDS, gpus=", ".join(found.gpus), gpu=gpu) if len(found.gpus) > 1 else None
    told = class_ if class_ in known.hardware else ""
    return SearchAnswer("", (hit,), is_sure=note is None, note=note, build=build, hardware=told)


# -- a question --------------------------------------------------------------------------------------------------------

_NAMED_FIELD = re.compile(r"(?<![\w:])-?([A-Za-z_]{2,20}):(?!:)(?=[^\s/])")
_CALL = re.compile(r"\b(?:all|none|exists|count|seq)\([^)]*\)")
_HARDWARE = re.compile(r"(?:^|\s)hardware:(\"[^\"]{1,60}\"|[^\s\"]{1,60})")
_ALIKE = 0.7
_COMPONENT_ALIKE = 0.85
_MENDINGS = 6
_MINOR = re.compile(r"(\d{1,3}\.\d{1,4})(~py\d{2,3})?")
_SAYS_ERROR = re.compile(r"\w(?:Error|Exception|Unsupported)\b|: \S|\berror\b|'[^']+'", re.IGNORECASE)
_SIGNATURE_S, _SIGNATURES_S = 0.5, 2.0  # of one, and of all: a line takes 4 ms of one, and what takes more is told
_FEWEST_LETTERS = 12  # of a message: shorter ones are anybody's
_ENOUGH = 0.5  # of the words
_MOST_NAMED = 20  # issues that an address names one by one


class _Question:
    def __init__(self, text: str, known: Known, index: SearchIndex) -> None:
        self._text = plain(text)
        self._raw = one_line(text)
        self._known = known
        self._index = index
        self._names = BuildNames(known.builds)

    def answer(self) -> SearchAnswer:
        if not self._text:
            return SearchAnswer("")
        try:
            hit = self._issue_hit(find_issue(self._text, self._known.issues))
            return SearchAnswer(self._text, (hit,), is_sure=True)
        except UnknownIssue:
            pass
        if self._looks_like_query():
            return self._of_query()
        asked = read(self._raw, self._index.threads.projects)
        if asked.thread is not None:
            return self._of_thread(asked, asked.thread)
        return self._of_names(asked)

    # a query of the query language

    def _looks_like_query(self) -> bool:
        known = (*FIELDS, *ALIASES)
        written = (found[1].casefold() for found in _NAMED_FIELD.finditer(self._raw))
        return bool(_CALL.search(self._raw)) or any(get_close_matches(one, known, 1, _ALIKE) for one in written)

    def _of_query(self) -> SearchAnswer:
        text, hardware = self._raw, None
        if (named := _HARDWARE.search(text)) and (hardware := hardware_named(named[1].strip('"'))):
            text = f"{text[: named.start()]} {text[named.end() :]}".strip()
        text, fault = _mended(text)
        if fault is not None:
            note = Message("This is no query that can be read: {fault}", fault=fault)
            words = _NAMED_FIELD.sub(" ", text)
            found = self._of_names(read(words, {}))
            return replace(found, asked=self._text, note=note, is_sure=False, is_unreadable=True)
        hit = self._query_hit(text, hardware)
        is_as_written = text == self._raw or hardware is not None
        read_as = {} if is_as_written else {self._raw: text}
        return SearchAnswer(self._text, (hit,), is_sure=is_as_written and self._is_measured(hardware), read_as=read_as)

    def _is_measured(self, hardware: NamedHardware | None) -> bool:
        return hardware is None or self._class_of(hardware) in self._known.hardware

    def _class_of(self, hardware: NamedHardware | None) -> str:
        """Of a GPU of any class the first that was measured."""
        if hardware is None:
            return ""
        measured = next((one for one in self._known.hardware if one.startswith("cuda-")), "cuda-sm_90")
        return measured if hardware.is_any_gpu else hardware.hardware

    def _query_hit(self, query: str, hardware: NamedHardware | None, issues: Sequence[str] = ()) -> Hit:
        class_, shown = self._class_of(hardware), self._shown_class(hardware)
        name = f"{query} on {class_}" if class_ else query
        title = Message("The matrix of {query}", query=name) if query else Message("The matrix on {on}", on=class_)
        told = None
        if class_ and not shown:
            told = Message("Nobody has measured {hardware} here yet: the matrix shows other hardware.", hardware=class_)
        address = matrix_address(q=query, issues=",".join(issues), hardware=shown)
        return Hit(HitKind.QUERY, name, address, title, told, query="" if issues else query)

    # a thread

    def _of_thread(self, asked: ParsedText, thread: Thread) -> SearchAnswer:
        ids, relation = self._index.threads.find(thread)
        builds = [build for text in asked.builds for build in self._builds_of(text)[:1]]
        build, hardware = builds[0].id if builds else "", self._shown_class(asked.hardware)
        if not ids and not thread.repository:
            thread = replace(thread, repository=USUAL)
        told = Message(_RELATION_WORDS[relation], thread=thread.name)
        hits = [replace(self._issue_hit(self._known.issues[id_], build, hardware), told=told) for id_ in ids]
        is_sure = len(hits) == 1 and relation is not Relation.EVIDENCE
        if not ids:
            near = (self._known.issues[id_] for id_ in self._index.threads.near(thread.number))
            hits = [_absent(thread), *map(self._issue_hit, near)]
        elif relation is Relation.EVIDENCE and thread.repository:
            hits.append(_absent(thread))
        return SearchAnswer(self._text, tuple(hits), is_sure=is_sure, build=build, hardware=hardware)

    def _shown_class(self, hardware: NamedHardware | None) -> str:
        class_ = self._class_of(hardware)
        return class_ if class_ in self._known.hardware else ""

    # builds, hardware, conditions and words

    def _of_names(self, asked: ParsedText) -> SearchAnswer:
        words, conditions = asked.words, asked.conditions
        named = bool(asked.builds or asked.hardware or asked.versions)
        if conditions and not named and (words or not self._selects(conditions)):
            words, conditions = tuple(self._text.split()), ()
        asked = replace(asked, words=words, conditions=conditions)
        found = [self._builds_of(text) for text in asked.builds]
        if any(not one for one in found):
            return self._of_unknown_build(asked)
        firsts = [one[0] for one in found]
        issues = self._of_words(asked.words, firsts[0] if firsts else None, asked.hardware)
        hits = [*self._of_builds(asked, firsts, found), *self._of_place(asked, firsts, issues)]
        is_alone = not (firsts or asked.words or asked.conditions or asked.versions)
        if asked.hardware and (is_alone or not self._is_measured(asked.hardware)):
            hits = [self._hardware_hit(asked.hardware), *([] if is_alone else hits)]
        is_pair = len(firsts) == 2 and asked.purpose is not HitKind.UPGRADE  # noqa: PLR2004 - a comparison is of two
        is_sure = (len(hits) == 1 or is_pair) and not issues.hits and self._is_measured(asked.hardware)
        return SearchAnswer(
            self._text,
            (*hits, *issues.hits)[:MOST_HITS],
            is_sure=is_sure or (not hits and issues.is_sure),
            read_as=issues.read_as,
            note=(self._unmeasured(asked) if firsts or asked.words else None) or issues.note,
            build=firsts[0].id if firsts else "",
            hardware=self._shown_class(asked.hardware),
        )

    def _selects(self, conditions: Sequence[str]) -> bool:
        """Whether any issue may be meant."""
        is_meant = of_issues(parse(" ".join(conditions)))
        return any(map(is_meant, self._known.issues.values()))

    def _of_builds(self, asked: ParsedText, firsts: Sequence[Build], found: Sequence[Sequence[Build]]) -> Iterator[Hit]:
        """Answers where builds are asked for by themselves: one, its like, two to compare, one to go on from."""
        hardware = self._shown_class(asked.hardware)
        if len(firsts) > 1:
            a, b = firsts[0].id, firsts[1].id
            title = Message("Compare {a} with {b}", a=a, b=b)
            yield Hit(HitKind.COMPARE, f"{a} {b}", compare_address(a, b, hardware=hardware), title)
            yield self._upgrade_hit(firsts[0], hardware)
        elif firsts and asked.purpose is HitKind.UPGRADE:
            yield self._upgrade_hit(firsts[0], hardware)
        elif firsts and not (asked.hardware or asked.words or asked.conditions):
            yield from (_build_hit(build, hardware) for build in found[0])

    def _of_place(self, asked: ParsedText, firsts: Sequence[Build], issues: SearchAnswer) -> Iterator[Hit]:
        """The part of the matrix that is meant by builds, hardware, conditions and words together."""
        component = self._component(asked.words)
        is_part = asked.hardware or asked.conditions or asked.versions or component or (firsts and asked.words)
        if not is_part or len(firsts) > 1 or (firsts and asked.purpose):
            return
        words = " ".join(asked.words)
        # A query names a release as it is, a variant by its id.
        places = [f"build:{self._names.find(text).id if '+' in text or '~' in text else text}" for text in asked.builds]
        others = [f"{name}:{value}" for name, value in asked.versions.items() if name in FIELDS]
        text = f"component:{component}" if component and not places else words
        query = " ".join([*places, *others, *dict.fromkeys(asked.conditions), *([text] if text else [])])
        ids = [hit.name for hit in issues.hits if hit.kind is HitKind.ISSUE]
        if words and not component and not self._stand_in_title(words):
            without = " ".join([*places, *others, *dict.fromkeys(asked.conditions)])
            if not ids:
                return
            yield replace(
                self._query_hit(without, asked.hardware, ids[:_MOST_NAMED]),
                name=f"{query} on {self._class_of(asked.hardware)}" if asked.hardware else query,
            )
        elif _reads(query):
            yield self._query_hit(query, asked.hardware)
        if firsts:
            hardware = self._shown_class(asked.hardware)
            yield self._upgrade_hit(firsts[0], hardware, ids[:_MOST_NAMED] if words else ())
            yield _build_hit(firsts[0], hardware)

    def _stand_in_title(self, words: str) -> bool:
        """As bare words of a query are looked for."""
        terms = words.casefold().split()
        return any(
            all(term in f"{one.id} {one.title} {one.title_zh} {one.component}".casefold() for term in terms)
            for one in self._known.issues.values()
        )

    def _component(self, words: Sequence[str]) -> str:
        """The component that the words are, as a query names it; empty where they are none."""
        text = " ".join(words).casefold()
        components = {issue.component.casefold(): issue.component for issue in self._known.issues.values()}
        near = get_close_matches(text, components, 1, _COMPONENT_ALIKE) if text else []
        if not near:
            return ""
        return f'"={near[0]}"' if re.search(r"[\s|,()\"]", near[0]) else f"={near[0]}"

    def _upgrade_hit(self, build: Build, hardware: str, issues: Sequence[str] = ()) -> Hit:
        title = Message("Where to go from {build}", build=build.id)
        told = Message("The build to upgrade to, what it fixes and breaks, and the note for the pull request.")
        address = upgrade_address(build.id, hardware=hardware, issues=",".join(issues))
        return Hit(HitKind.UPGRADE, build.id, address, title, told)

    def _hardware_hit(self, named: NamedHardware) -> Hit:
        class_ = self._class_of(named)
        known = self._known
        title = Message("{name} is of the hardware class {hardware}", name=named.name, hardware=class_)
        if named.name == class_:
            title = Message("The hardware class {hardware}", hardware=class_)
        told = self._told_of_class(class_)
        if class_ in known.hardware:
            return Hit(HitKind.HARDWARE, class_, matrix_address(hardware=class_), title, told)
        command = "knowngood run --builds default --issues all"
        return Hit(HitKind.HARDWARE, class_, matrix_address(), title, told, command=command)

    def _told_of_class(self, class_: str) -> Message:
        """How much is measured there, and by the wheels' lists which torch may run there at all."""
        known = self._known
        holding, lacking = known.wheels_for(class_)
        days = [f"{one.read_at:%Y-%m-%d}" for one in (*holding, *lacking) if class_.startswith("cuda-")]
        return Message(
            (_MEASURED_WORDS if class_ in known.hardware else _UNMEASURED_WORDS)[bool(days)],
            n=sum(1 for id_ in known.issues if known.was_measured(id_, class_)),
            all=len(known.issues),
            measured=", ".join(known.hardware) or "-",
            gpu=class_.removeprefix("cuda-"),
            holding=", ".join(one.torch for one in holding) or "-",
            lacking=", ".join(one.torch for one in lacking) or "-",
            first=min(days, default=""),
            last=max(days, default=""),
        )

    def _unmeasured(self, asked: ParsedText) -> Message | None:
        class_ = self._class_of(asked.hardware)
        if not class_ or class_ in self._known.hardware:
            return None
        return Message("Nobody has measured {hardware} here yet.", hardware=class_)

    def _builds_of(self, text: str) -> tuple[Build, ...]:
        """The builds a text names, the one that is meant first; a minor release has all its patches."""
        if minor := _MINOR.fullmatch(text):
            python = f"3.{minor[2][4:]}" if minor[2] else DEFAULT_PYTHON
            line = {build.build_id.public_version for build in self._known.builds.values() if build.minor == minor[1]}
            names = [f"{version}{minor[2] or ''}" for version in sorted(line, reverse=True)]
            found = [build for name in names for build in self._builds_of(f"torch-{name}") if build.python == python]
            return tuple(dict.fromkeys(found))
        try:
            return (self._names.find(text.removeprefix("torch-")),)
        except UnknownBuild:
            return ()

    def _of_unknown_build(self, asked: ParsedText) -> SearchAnswer:
        text = next(text for text in asked.builds if not self._builds_of(text))
        try:
            self._names.find(text)
            near: Sequence[str] = ()
        except UnknownBuild as error:
            near = error.nearest
        note = Message("No build here is torch {build}.", build=text)
        hits = tuple(_build_hit(self._known.builds[id_], "") for id_ in near if id_ in self._known.builds)
        return SearchAnswer(self._text, hits, note=note)

    # words

    def _of_words(self, words: Sequence[str], build: Build | None, hardware: NamedHardware | None) -> SearchAnswer:
        if not words:
            return SearchAnswer(self._text)
        found = self._index.words.find(words)
        best = max((one.matched for one in found), default=0.0)
        kept = [one for one in found if one.matched >= max(_ENOUGH, best - _ENOUGH / 2)]
        read_as = kept[0].corrected if kept and not kept[0].is_exact else {}
        ids_with_signature, late = self._held_against_signatures()
        told = {id_: Message("Its signature is in these words.") for id_ in ids_with_signature}
        ids = list(dict.fromkeys([*told, *(one.issue for one in kept)]))
        at = build.id if build else "", self._shown_class(hardware)
        hits = tuple(replace(self._issue_hit(self._known.issues[id_], *at), told=told.get(id_)) for id_ in ids)
        is_sure = len(hits) == 1 and bool(kept) and kept[0].is_exact
        note = None
        if late:
            note = Message(
                "These signatures took too long to look for: {issues}.", issues=", ".join(late[:_MOST_NAMED])
            )
        return SearchAnswer(self._text, hits, is_sure=is_sure and not late, read_as=read_as, note=note)

    def _held_against_signatures(self) -> tuple[Sequence[str], Sequence[str]]:
        """Issues whose signature stands in a message of one line, and those of which nobody knows: it took too long."""
        found, late = list[str](), list[str]()
        if len(self._raw) < _FEWEST_LETTERS or not _SAYS_ERROR.search(self._raw):
            return found, late
        until = time.thread_time() + _SIGNATURES_S
        for id_, pattern in self._index.signatures:
            try:
                left = min(_SIGNATURE_S, max(until - time.thread_time(), 0.0))
                found.extend([id_] if pattern.search(self._raw, timeout=left, concurrent=True) else [])
            except TimeoutError:
                late.append(id_)
        return found, late

    def _issue_hit(self, issue: Issue, build: str = "", hardware: str = "") -> Hit:
        return Hit(HitKind.ISSUE, issue.id, issue_address(issue.id, build, hardware), issue=issue)


_MEASURED_WORDS = (
    "{n} of {all} issues are measured there.",
    (
        "{n} of {all} issues are measured there. Of the wheels tested here these hold code for {gpu}: {holding}; these "
        "hold none: {lacking} (read in them from {first} to {last})."
    ),
)
_UNMEASURED_WORDS = (
    "Nobody has measured this class here yet; measured are {measured}. On a machine that has it this measures:",
    (
        "Of the wheels tested here these hold code for {gpu}: {holding}; these hold none: {lacking} (read in them from "
        "{first} to {last}). Nobody has measured this class here yet; measured are {measured}. On a machine that has "
        "it this measures:"
    ),
)
_RELATION_WORDS = {
    Relation.NAMED_BY: "{thread} is this issue.",
    Relation.REPORT: "{thread} reports this issue.",
    Relation.FIX: "{thread} is the fix of this issue.",
    Relation.EVIDENCE: "{thread} is linked from this issue.",
}


def _mended(text: str) -> tuple[str, str | None]:
    """A query with each misspelt word mended, and what is wrong with it where that cannot be done."""
    for _ in range(_MENDINGS):
        try:
            parse(text)
        except BadQuery as error:
            if not (error.column and error.nearest):
                return text, str(error)
            start = error.column - 1
            text = f"{text[:start]}{error.nearest}{text[start + error.length :]}"
        else:
            return text, None
    return text, "too much of it is misspelt"


def _reads(query: str) -> Query | None:
    try:
        return parse(query)
    except BadQuery:
        return None


def _build_hit(build: Build, hardware: str) -> Hit:
    title = Message("torch {torch} on Python {python}", torch=build.torch, python=build.python)
    told = Message("CUDA {cuda}, Triton {triton}", cuda=build.cuda or "-", triton=build.triton or "-")
    return Hit(HitKind.BUILD, build.id, build_address(build.id, hardware), title, told)


def _absent(thread: Thread) -> Hit:
    """A thread that no issue here has to do with: where to read it, and the command that would add it."""
    return Hit(
        HitKind.THREAD,
        thread.name,
        thread.address,
        Message("{thread} is not in the catalogue", thread=thread.name),
        Message("Read the thread on GitHub. Whoever can show it adds it with:"),
        command=thread.command,
    )
