"""The meaning of a text: one answer for the page, the API and `knowngood find`.

Total: whatever the text is, there is an answer. Where nothing fits, it says so and has no hits.
"""

import re
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import ClassVar

from knowngood.ask.reading import HitKind, Names, Reading, component_key, one_line, pasted, plain, read
from knowngood.ask.text_index import Findings, SearchBudget, TextIndex, parts_of, terms_of
from knowngood.domain.builds.build import DEFAULT_PYTHON, Build
from knowngood.domain.errors import UnknownBuild, UnknownIssue
from knowngood.domain.hardware_names import NamedHardware, class_named, hardware_named
from knowngood.domain.issue import Issue
from knowngood.domain.issue_selectors import find_issue
from knowngood.domain.message import NOTHING, Message, Quoted
from knowngood.domain.threads import USUAL, Relation, Thread, ThreadIndex
from knowngood.domain.verdicts.known import Known
from knowngood.domain.verdicts.matrix import Columns, choose_columns, telling_class
from knowngood.domain.verdicts.verdict import CONCLUSIVE, FAILING, Cell
from knowngood.environments.service import (
    NoSuchBuild,
    pasted_build,
    worst_gpu,
)
from knowngood.environments.wheels.table import wheels_of
from knowngood.query.evaluate import View, columns_left, matching, of_issues
from knowngood.query.fields import ALIASES, FIELDS
from knowngood.query.parser import And, BadQuery, Query, Text, parse
from knowngood.serialization.message_field import MessageField, ReaderMessageField
from knowngood.web.urls import (
    ENVIRONMENT,
    ERRORS,
    asking,
    compare_address,
    issue_address,
    matrix_address,
    page_of_build,
    upgrade_address,
)

MOST_HITS = 50


@dataclass(frozen=True)
class Hit:
    """`name` is an issue's id, a build's, a hardware class, a query, or a thread (`pytorch/pytorch#999999`). `url` is a
    page here, of a `thread` the one on GitHub. `told` says why it is here or what to do, and `command`, to be run in a
    shell, does it (empty: there is none). Of an issue, `history` is where it fails, and `verdict` that on the build
    that the text names, empty where it names none.
    """

    __pydantic_config__: ClassVar = {"json_schema_serialization_defaults_required": True}  # none is ever left out

    kind: HitKind
    name: str
    title: ReaderMessageField
    told: ReaderMessageField = field(default_factory=lambda: NOTHING)
    history: MessageField = NOTHING
    url: str = ""
    command: str = ""
    verdict: str = ""


@dataclass(frozen=True)
class SearchAnswer:
    """Hits stand best first. `sure`: the first is what is meant, and nothing else may be; `leads_to` is then its page.
    `read_as` has the words that were taken for others, `note` what could not be done as asked. `build` and `hardware`
    are those that the text names, empty where it names none. `total` counts hits beyond the limit too.
    """

    __pydantic_config__: ClassVar = {"json_schema_serialization_defaults_required": True}

    asked: str
    sure: bool = False
    leads_to: str = ""
    read_as: Mapping[str, str] = field(default_factory=dict)
    note: ReaderMessageField = field(default_factory=lambda: NOTHING)
    build: str = ""
    hardware: str = ""
    total: int = 0
    hits: tuple[Hit, ...] = ()


def _answer(
    text: str,
    hits: Sequence[Hit],
    *,
    is_sure: bool = False,
    read_as: Mapping[str, str] | None = None,
    note: Message = NOTHING,
    build: str = "",
    hardware: str = "",
) -> SearchAnswer:
    leads_to = hits[0].url if is_sure else ""
    return SearchAnswer(text, is_sure, leads_to, read_as or {}, note, build, hardware, len(hits), tuple(hits))


class SearchIndex:
    """The words and names of a search that follow from a catalogue's issues alone."""

    def __init__(self, issues: Mapping[str, Issue]) -> None:
        self.words = TextIndex({issue.id: parts_of(issue) for issue in issues.values()}, terms_of)
        self.threads = ThreadIndex(issues.values())
        self.names = Names(
            self.threads.projects,
            {component_key(issue.component): issue.component for issue in issues.values()},
            {issue.requires.package for issue in issues.values()} - {""},
        )


class SearchIndexes:
    """The index of the catalogue as it was last read; made anew when an issue has changed. For many threads."""

    def __init__(self) -> None:
        self._making = threading.Lock()
        self._made: tuple[Mapping[str, Issue], SearchIndex] | None = None

    def of(self, issues: Mapping[str, Issue]) -> SearchIndex:
        with self._making:
            made = self._made
            is_right = made is not None and (made[0] is issues or made[0] == issues)
            self._made = issues, made[1] if made and is_right else SearchIndex(issues)
            return self._made[1]


def titled(
    answer: SearchAnswer, issues: Mapping[str, Issue], title_of: Callable[[Issue], str], limit: int
) -> SearchAnswer:
    """The first hits of the answer, with the titles of issues as `title_of` has them."""
    hits = (
        replace(hit, title=Message("title", title=title_of(issues[hit.name]))) if hit.kind is HitKind.ISSUE else hit
        for hit in answer.hits[:limit]
    )
    return replace(answer, hits=tuple(hits))


def search(text: str, known: Known, index: SearchIndex) -> SearchAnswer:
    """The answer to a text, whatever it is."""
    match pasted(text):
        case HitKind.ERROR:
            return _answer("", [Hit(HitKind.ERROR, "", Message("is_an_error"), url=ERRORS)], is_sure=True)
        case HitKind.ENVIRONMENT:
            return _of_environment(text, known)
        case _:
            return _Question(text, known, index).answer()


# -- an environment that was pasted ------------------------------------------------------------------------------------


def _of_environment(text: str, known: Known) -> SearchAnswer:
    try:
        resolved = pasted_build(text, known.build_names, known.tested, wheels_of(known))
    except NoSuchBuild as error:
        near = [_build_hit(known.builds[id_], "") for id_ in error.nearest]
        return _answer("", near, note=Message("no_build_here", why=error.why))
    build, gpu = resolved.build or "", worst_gpu(resolved, known)
    url, class_ = asking(ENVIRONMENT, build=build, hardware=gpu), class_named(gpu, known.hardware)
    hit = Hit(HitKind.ENVIRONMENT, build, Message("environment_is", build=build), url=url)
    several = len(resolved.gpus) > 1
    note = Message("worst_gpu_counts", gpus=resolved.gpus, gpu=gpu) if several else NOTHING
    hardware = class_ if class_ in known.hardware else ""
    return _answer("", [hit], is_sure=not several, note=note, build=build, hardware=hardware)


# -- a question --------------------------------------------------------------------------------------------------------

_NAMED_FIELD = re.compile(r"(?<![\w:])-?([A-Za-z_]{2,20}):(?!:)(?=[^\s/])")
_CALL = re.compile(r"\b(?:all|none|exists|count|seq)\([^)]*\)")
_HARDWARE = re.compile(r"(?:^|\s)hardware:(\"[^\"]{1,60}\"|[^\s\"]{1,60})")
_ALIKE = 0.7
_COMPONENT_ALIKE = 0.85
_MENDINGS = 6
_MINOR = re.compile(r"(\d{1,3}\.\d{1,4})(~py\d{2,3})?")
_SAYS_ERROR = re.compile(r"\w(?:Error|Exception|Unsupported)\b|: \S|\berror\b|'[^']+'", re.IGNORECASE)
_FEWEST_LETTERS = 12  # of a message: shorter ones are anybody's
_CARRIED = Message("in_these_words")
_MOST_NAMED = 20  # issues that an address names one by one


class _Question:
    def __init__(self, text: str, known: Known, index: SearchIndex) -> None:
        self._text = plain(text)
        self._raw = one_line(text)
        self._known = known
        self._index = index
        self._builds = known.build_names

    def answer(self) -> SearchAnswer:
        if not self._text:
            return _answer("", ())
        try:
            issue = find_issue(self._text, self._known.issues)
        except UnknownIssue:
            is_names = not self._looks_like_query()
            return self._of_reading(read(self._raw, self._index.names)) if is_names else self._of_query()
        return _answer(self._text, [self._issue_hit(issue.id)], is_sure=True)

    # a query of the query language

    def _looks_like_query(self) -> bool:
        known = (*FIELDS, *ALIASES)
        written = (match[1].casefold() for match in _NAMED_FIELD.finditer(self._raw))
        return bool(_CALL.search(self._raw)) or any(get_close_matches(name, known, 1, _ALIKE) for name in written)

    def _of_query(self) -> SearchAnswer:
        text, hardware = self._raw, None
        if (named := _HARDWARE.search(text)) and (hardware := hardware_named(named[1].strip('"'))):
            text = f"{text[: named.start()]} {text[named.end() :]}".strip()
        text, fault = _mended(text)
        if fault is not None:
            answer = self._of_reading(replace(read(_NAMED_FIELD.sub(" ", text), Names()), thread=None))
            note = Message("unreadable_query", fault=fault)
            return replace(answer, asked=self._text, note=note, sure=False, leads_to="")
        class_ = self._class_of(hardware)
        is_as_written = text == self._raw or hardware is not None
        is_sure = is_as_written and (not class_ or class_ in self._known.hardware)
        read_as = {} if is_as_written else {self._raw: text}
        return _answer(self._text, [self._query_hit(text, class_)], is_sure=is_sure, read_as=read_as)

    def _class_of(self, hardware: NamedHardware | None) -> str:
        """The hardware class; for a GPU of any class, the first one that was measured."""
        if hardware is None:
            return ""
        measured = next((class_ for class_ in self._known.hardware if class_.startswith("cuda-")), "cuda-sm_90")
        return measured if hardware.is_any_gpu else hardware.hardware

    def _shown(self, class_: str) -> str:
        """The class where it was measured: no page shows another."""
        return class_ if class_ in self._known.hardware else ""

    def _query_hit(self, query: str, class_: str, issues: Sequence[str] = (), words: str = "") -> Hit:
        """The part of the matrix that a query selects, or of it these `issues`, which the `words` found."""
        on = f" on {class_}" if class_ else ""
        title = Message(f"matrix_of{'_on' * bool(class_)}" if query else "matrix_on", query=query, on=class_)
        shown = self._shown(class_)
        remark = Message("class_unmeasured_matrix", hardware=class_) if class_ and not shown else NOTHING
        url = matrix_address(q=query, issues=",".join(issues), hardware=shown)
        return Hit(HitKind.QUERY, f"{query} {words}".strip() + on, title, remark, url=url)

    # a thread

    def _of_thread(self, reading: Reading, thread: Thread) -> SearchAnswer:
        ids, relation = self._index.threads.find(thread)
        builds = [build for text in reading.builds for build in self._builds_of(text)[:1]]
        build, hardware = builds[0].id if builds else "", self._shown(self._class_of(reading.hardware))
        if not ids and not thread.repository:
            thread = replace(thread, repository=USUAL)
        remark = Message(f"thread_{relation.name.lower()}", thread=thread.name)
        hits = [self._issue_hit(id_, build, hardware, remark) for id_ in ids]
        is_sure = len(hits) == 1 and relation is not Relation.EVIDENCE
        if not ids:
            hits = [_absent(thread), *map(self._issue_hit, self._index.threads.near(thread.number))]
        elif relation is Relation.EVIDENCE and thread.repository:
            hits.append(_absent(thread))
        return _answer(
            self._text,
            hits,
            is_sure=is_sure and not reading.driver,
            note=Message("driver_and_issues", driver=reading.driver) if reading.driver else NOTHING,
            build=build,
            hardware=hardware,
        )

    # builds, hardware, conditions and words

    def _of_reading(self, reading: Reading) -> SearchAnswer:
        if reading.thread is not None:
            return self._of_thread(reading, reading.thread)
        is_placed = bool(reading.builds or reading.hardware or reading.versions or reading.driver)
        if (
            reading.conditions
            and not is_placed
            and (reading.words or not self._selects(parse(" ".join(reading.conditions))))
        ):
            reading = replace(reading, words=tuple(self._text.split()), conditions=())
        families = {text: self._builds_of(text) for text in reading.builds}
        unknown = [text for text, family in families.items() if not family]
        if len(unknown) > len(reading.packages):  # a version beside a package may be the package's
            return self._of_unknown_build(unknown[0])
        return self._of_names(replace(reading, builds=tuple(text for text in reading.builds if families[text])))

    def _of_names(self, reading: Reading) -> SearchAnswer:
        """Known words narrow the part of the matrix that is meant; a guess at a word does not."""
        families = [self._builds_of(text) for text in reading.builds]
        firsts = [family[0] for family in families]
        class_ = self._class_of(reading.hardware)
        build, hardware = firsts[0].id if firsts else "", self._shown(class_)
        findings = self._index.words.find(reading.words, reading.packages)
        issues, late = self._of_words(reading.words, findings, build, hardware)
        component = self._component(reading)
        guesses = {self._text: component} if component and findings.known != reading.words else {}
        is_narrowed = issues or self._selects(_in_title(findings.known))
        narrow = replace(reading, words=reading.words if component else findings.known if is_narrowed else ())
        hits, note = self._of_place(narrow, families, class_, component, [hit.name for hit in issues])
        is_alone = not (firsts or narrow.words or reading.conditions or reading.versions)
        if reading.hardware and (is_alone or class_ != hardware):
            hits = [self._hardware_hit(reading.hardware), *([] if is_alone else hits)]
        if reading.driver:
            hits.insert(reading.purpose is HitKind.UPGRADE, _wheels_hit(reading.driver, firsts, class_))
        is_pair = len(firsts) == 2 and reading.purpose is not HitKind.UPGRADE  # noqa: PLR2004 - a comparison is of two
        is_sure = (len(hits) == 1 or (is_pair and not reading.driver)) and not issues and class_ == hardware
        is_sure = is_sure and len(findings.known) == len(reading.words)
        is_elsewhere = class_ != hardware and (firsts or reading.words)
        is_unheard = hits and reading.words and not narrow.words and not issues
        notes = (
            Message("class_unmeasured", hardware=class_) if is_elsewhere else NOTHING,
            *(late, note),
            Message("nothing_about", asked=" ".join(reading.words)) if is_unheard else NOTHING,
        )
        return _answer(
            self._text,
            [*hits, *issues][:MOST_HITS],
            is_sure=is_sure or (not hits and len(issues) == 1 and findings.is_exact and late == NOTHING),
            read_as=findings.guesses or guesses,
            note=next((note for note in notes if note != NOTHING), NOTHING),
            build=build,
            hardware=hardware,
        )

    def _selects(self, query: Query) -> bool:
        """Whether any issue may be meant."""
        return any(map(of_issues(query), self._known.issues.values()))

    def _of_place(
        self, reading: Reading, families: Sequence[Sequence[Build]], class_: str, component: str, ids: Sequence[str]
    ) -> tuple[list[Hit], Message]:
        """Builds by themselves (one, its like, two to compare, one to go on from), and the part of the matrix that is
        meant by builds, hardware, conditions and words together, if it has a row.
        """
        firsts = [family[0] for family in families]
        hardware, named = self._shown(class_), (ids if reading.words else ())[:_MOST_NAMED]
        upgrade = [self._upgrade_hit(build, reading, class_, named) for build in firsts[:1]]
        if len(firsts) > 1:
            return [self._compare_hit(reading, firsts, hardware), *upgrade], NOTHING
        if reading.purpose is HitKind.UPGRADE and firsts:
            return upgrade, NOTHING
        is_alone = not (reading.hardware or reading.words or reading.conditions or reading.driver)
        hits = [_build_hit(build, hardware) for build in families[0]] if firsts and is_alone else []
        is_part = reading.hardware or reading.conditions or reading.versions or component or (firsts and not is_alone)
        if not is_part or (firsts and reading.purpose):
            return hits, NOTHING
        # A query names a release as it is, a variant by its id.
        places = [f"build:{self._builds.find(text).id if set('+~') & set(text) else text}" for text in reading.builds]
        others = [f"{name}:{value}" for name, value in reading.versions.items() if name in FIELDS]
        query = " ".join([*places, *others, *dict.fromkeys(reading.conditions)])
        words = " ".join(reading.words)
        if component and not places:
            words = f'component:"={component}"' if re.search(r"[\s|,()\"]", component) else f"component:={component}"
        if component or self._selects(_in_title(reading.words)):
            query, words, named = f"{query} {words}".strip(), "", ()
        hit = self._query_hit(query, class_, named, words)
        has_rows = self._has_rows(query, named, hardware)
        hits += [hit] if has_rows else []
        hits += [*upgrade, *(_build_hit(build, hardware) for build in firsts)]
        return hits, NOTHING if has_rows else Message("no_issue_for", query=hit.name)

    def _has_rows(self, query: str, ids: Collection[str], hardware: str) -> bool:
        """Whether the matrix has a row of it: a link that is offered leads to something."""
        known = self._known
        try:
            parsed = parse(query)
            left = columns_left(parsed, tuple(known.builds.values()))
        except BadQuery:
            return False
        builds = choose_columns(left, known.tested, Columns.RELEASES) or left
        classes = (hardware,) if hardware else known.hardware

        def lines_of(issue: Issue) -> list[list[Cell]]:
            return [[known.cell(issue, build, class_) for build in builds] for class_ in classes]

        may_match = of_issues(parsed)
        rows = (issue for issue in known.issues.values() if (not ids or issue.id in ids) and may_match(issue))
        return any(matching(parsed, [row], View(builds, known.as_of), lines_of) for row in rows)

    def _component(self, reading: Reading) -> str:
        """The component that the words are, in small letters; empty where they are none. Where nothing else is named it
        may be misspelt.
        """
        components = self._index.names.components
        is_placed = reading.builds or reading.hardware or reading.conditions or reading.versions
        alike = 1.0 if is_placed else _COMPONENT_ALIKE
        near = get_close_matches(component_key(" ".join(reading.words)), components, 1, alike)
        return components[near[0]].casefold() if near else ""

    def _compare_hit(self, reading: Reading, firsts: Sequence[Build], hardware: str) -> Hit:
        a, b = firsts[0].id, firsts[1].id
        url = compare_address(
            a, b, hardware=hardware, component=reading.components[0] if len(reading.components) == 1 else ""
        )
        return Hit(HitKind.COMPARE, f"{a} {b}", Message("compare_builds", a=a, b=b), url=url)

    def _upgrade_hit(self, build: Build, reading: Reading, class_: str, issues: Sequence[str] = ()) -> Hit:
        """For the components and packages that are named, else for the `issues` that the words found. For a GPU that
        nobody measured, the page says what it can by the wheels' lists; it takes other hardware as it was measured. A
        Python that the text leaves open stays open, as for `knowngood upgrade`.
        """
        start = build.id if "~py" in reading.builds[0] else build.id.removeprefix("torch-")
        packages = [package for package in reading.packages if package in self._index.names.packages]
        url = upgrade_address(
            start,
            hardware=class_ if class_.startswith("cuda-") else self._shown(class_),
            driver=reading.driver,
            component=",".join(reading.components),
            package=",".join(packages),
            has=",".join(reading.packages),
            issues="" if reading.components or packages else ",".join(issues),
        )
        command = f"knowngood upgrade --from {start}{reading.driver and f' --driver {reading.driver}'}"
        title = Message("upgrade_from", build=build.id)
        return Hit(HitKind.UPGRADE, build.id, title, Message("upgrade_says"), url=url, command=command)

    def _hardware_hit(self, named: NamedHardware) -> Hit:
        class_ = self._class_of(named)
        title = Message(
            "hardware_class" if named.name == class_ else "name_of_class", name=named.name, hardware=Quoted(class_)
        )
        shown = self._shown(class_)
        return Hit(
            HitKind.HARDWARE,
            class_,
            title,
            self._describe_class(class_),
            url=matrix_address(hardware=shown),
            command="" if shown else "knowngood run --builds default --issues all",
        )

    def _describe_class(self, class_: str) -> Message:
        """Say how much is measured on a class, and by the wheels' lists which torch may run there at all."""
        known = self._known
        holding, lacking = known.wheels_for(class_)
        days = [f"{wheel.read_at:%Y-%m-%d}" for wheel in (*holding, *lacking) if class_.startswith("cuda-")]
        wheels: dict[str, str | tuple[str, ...]] = {
            "gpu": class_.removeprefix("cuda-"),
            "holding": tuple(wheel.torch for wheel in holding) or "-",
            "lacking": tuple(wheel.torch for wheel in lacking) or "-",
            "first": min(days, default=""),
            "last": max(days, default=""),
        }
        if class_ in known.hardware:
            n = sum(1 for id_ in known.issues if known.was_measured(id_, class_))
            return Message("measured_on_gpu" if days else "measured_on_class", n=n, all=len(known.issues), **wheels)
        return Message("measure_gpu" if days else "measure_class", measured=tuple(known.hardware) or "-", **wheels)

    def _builds_of(self, text: str) -> tuple[Build, ...]:
        """The builds a text names, the one that is meant first; a minor release has all its patches."""
        if minor := _MINOR.fullmatch(text):
            python = f"3.{minor[2][4:]}" if minor[2] else DEFAULT_PYTHON
            line = {build.build_id.public_version for build in self._known.builds.values() if build.minor == minor[1]}
            names = [f"{version}{minor[2] or ''}" for version in sorted(line, reverse=True)]
            builds = [build for name in names for build in self._builds_of(f"torch-{name}") if build.python == python]
            return tuple(dict.fromkeys(builds))
        try:
            return (self._builds.find(text.removeprefix("torch-")),)
        except UnknownBuild:
            return ()

    def _of_unknown_build(self, text: str) -> SearchAnswer:
        try:
            self._builds.find(text)
            near: Sequence[str] = ()
        except UnknownBuild as error:
            near = error.nearest
        hits = [_build_hit(self._known.builds[id_], "") for id_ in near if id_ in self._known.builds]
        return _answer(self._text, hits, note=Message("no_torch_here", build=text.replace("~py3", " on Python 3.")))

    # words

    def _of_words(
        self, words: Sequence[str], findings: Findings, build: str, hardware: str
    ) -> tuple[list[Hit], Message]:
        """The issues whose signature is in the line, then those that its words are about; and a note of signatures that
        took too long.
        """
        if not words:
            return [], NOTHING
        carried, late = self._match_signatures()
        ids = list(dict.fromkeys([*carried, *findings.names]))[:MOST_HITS]
        hits = [self._issue_hit(id_, build, hardware, _CARRIED if id_ in carried else NOTHING) for id_ in ids]
        return hits, Message("signatures_too_slow", issues=tuple(late[:_MOST_NAMED])) if late else NOTHING

    def _match_signatures(self) -> tuple[Sequence[str], Sequence[str]]:
        """Find the issues whose signature a one-line message contains, and those whose search took too long."""
        carried, late = list[str](), list[str]()
        if len(self._raw) < _FEWEST_LETTERS or not _SAYS_ERROR.search(self._raw):
            return carried, late
        budget = SearchBudget(time.thread_time)
        for issue in self._known.issues.values():
            if issue.signature.pattern and not issue.is_smoke and not issue.silent:
                try:
                    carried += [issue.id] if budget.search(issue.signature.pattern, self._raw) else []
                except TimeoutError:
                    late.append(issue.id)
        return carried, late

    def _issue_hit(self, id_: str, build: str = "", hardware: str = "", remark: Message = NOTHING) -> Hit:
        known, issue = self._known, self._known.issues[id_]
        cell = cell_of(issue, build, hardware, known)
        return Hit(
            kind=HitKind.ISSUE,
            name=id_,
            title=Message("title", title=issue.title),
            told=remark,
            history=_history(issue, known),
            url=issue_address(id_, build, hardware),
            verdict=cell.verdict if cell else "",
        )


def cell_of(issue: Issue, build: str, hardware: str, known: Known) -> Cell | None:
    """The issue's cell on the build and the hardware that a text names; of several hardware classes one on which it
    fails stands for it.
    """
    classes = ([hardware] if hardware else known.hardware) if build else ()
    cells = [known.cell(issue, known.builds[build], class_) for class_ in classes]
    return min(cells, key=lambda cell: (cell.verdict not in FAILING, cell.verdict not in CONCLUSIVE), default=None)


def _history(issue: Issue, known: Known) -> Message:
    measured = tuple(class_ for class_ in known.hardware if known.measured(issue.id, class_))
    if not measured:
        return NOTHING
    class_ = measured[0] if len(measured) == 1 else telling_class(known.stored(issue.id), measured)
    return Message("on_class_whole", hardware=class_, said=known.history_sentence(issue, class_))


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


def _in_title(words: Sequence[str]) -> Query:
    """Bare words, as a query looks for them."""
    return And(tuple(map(Text, words)))


def _build_hit(build: Build, hardware: str) -> Hit:
    title = Message("torch_on_python", torch=build.torch, python=build.python)
    remark = Message("cuda_and_triton", cuda=build.cuda or "-", triton=build.triton or "-")
    return Hit(HitKind.BUILD, build.id, title, remark, url=page_of_build(build, hardware))


def _absent(thread: Thread) -> Hit:
    """A thread that no issue here has to do with: where to read it, and the command that would add it."""
    title = Message("thread_absent", thread=thread.name)
    return Hit(HitKind.THREAD, thread.name, title, Message("add_thread"), url=thread.address, command=thread.command)


def _wheels_hit(driver: str, builds: Sequence[Build], class_: str) -> Hit:
    """A driver decides which wheels run; no cell of the matrix depends on one."""
    release, (_, _, gpu) = builds[0].build_id.release if builds else "", class_.partition("cuda-")
    url = asking("/wheels", release=release, hardware=gpu, driver=driver)
    command = f"knowngood wheels torch{release and f'=={release}'} --driver {driver}{gpu and f' --gpu {gpu}'}"
    return Hit(HitKind.WHEELS, driver, Message("wheels_for_driver", driver=driver), url=url, command=command)
