"""Which known issue a pasted failure is: by the signatures that verdicts are made with, else by its words.

A signature is written for one repro on one machine, where its text can mean one thing only. In what a stranger pastes
the same text can be anybody's: `IndexError: tuple index out of range`. So a match whose words are common counts as one
only with a second, independent mark: the traceback runs through the same code as the recorded failures of the issue, or
the text names the operator, package or version that the issue is about. Elsewhere it is told as possible, where a
compiler speaks, or not at all. Which words are common is measured over failures of other kinds.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from packaging.version import InvalidVersion

from knowngood.ask.explain.answer import (
    LONGEST_SHOWN,
    Explanation,
    Match,
    Meaning,
    NearIssue,
    PastedLine,
    Strength,
    Why,
    advise,
    match_of,
    near_issue,
)
from knowngood.ask.explain.messages import KnownMessage, find_messages, meanings_of, shipped_messages
from knowngood.ask.text_index import Part, SearchBudget, TextIndex, words_of
from knowngood.domain.builds.platforms import WINDOWS, why_not_tested
from knowngood.domain.hardware_names import class_named, several_gpus
from knowngood.domain.issue import OPERATOR_PROBE, Device, Issue, SignatureKind, Status, is_within
from knowngood.domain.message import NOTHING, Message, clauses
from knowngood.domain.verdicts.known import Known
from knowngood.domain.verdicts.verdict import FAILING, Verdict
from knowngood.environments.log_cleaning import (
    CleanedPaste,
    VersionMention,
    line_at,
    read_paste,
    starts_of,
    stated_by,
    versions_of,
)
from knowngood.environments.resolve import ResolvedBuild, resolve, resolve_build
from knowngood.environments.wheels.table import wheels_of
from knowngood.store.knowledge.model import Knowledge

Place = tuple[str, str]
"""(file below site-packages, function) of one frame of a traceback; the function is empty where the frame names none.
"""


@dataclass(frozen=True)
class FailureLibrary:
    """The issues, and what follows from their texts and recorded failures; made once per state of the store.

    `courses` are, by issue, what its recorded failures run through: of each the places that few other issues share.
    `titles` are, by issue, the words of its title that few other titles have. `messages` are known beside the issues.
    """

    issues: Mapping[str, Issue]
    texts: TextIndex
    courses: Mapping[str, tuple[frozenset[Place], ...]]
    titles: Mapping[str, frozenset[str]]
    messages: tuple[KnownMessage, ...] = ()


def make_failure_library(issues: Iterable[Issue], failures: Mapping[str, Sequence[str]]) -> FailureLibrary:
    """Make what pastes are compared with. `failures` are, by issue, texts of recorded attempts that ended with its
    signature. Nobody reports a smoke row: its failure is explained by the issues that it stands for, and by the row
    itself only where there is none.
    """
    every = {issue.id: issue for issue in issues}
    parts = {id_: _make_parts(issue, failures.get(id_, ())) for id_, issue in every.items() if not issue.is_smoke}
    run = {id_: [places_in(text) for text in texts] for id_, texts in failures.items() if id_ in every}
    titles = _rare_words(every.values())
    return FailureLibrary(every, TextIndex(parts, words_of), _courses(run), titles, shipped_messages())


_FEW_TITLES = 8  # of some 160


def _rare_words(issues: Iterable[Issue]) -> dict[str, frozenset[str]]:
    titles = {issue.id: _plain_words(issue.title) for issue in issues}
    seen = Counter(word for words in titles.values() for word in words)
    return {id_: frozenset(word for word in words if seen[word] <= _FEW_TITLES) for id_, words in titles.items()}


def _plain_words(text: str) -> set[str]:
    """`lerp_` is lerp."""
    return {word.strip("_") for word in words_of(text)}


def _make_parts(issue: Issue, failures: Sequence[str]) -> Iterable[Part]:
    """List the texts by which an issue is recognised. Its title says most, so it counts twice."""
    texts = (
        issue.title,
        f"{issue.title} {issue.id} {issue.component}",
        issue.summary,
        issue.signature.pattern,
        " ".join(claim.text for claim in issue.claims),
        " ".join(workaround.title for workaround in issue.workarounds),
        "\n".join(_own_lines(failures)),
    )
    return [(text, 0.0) for text in texts]


OWN_LINES = 40


def _own_lines(failures: Sequence[str]) -> Iterable[str]:
    """The end of each failure: its innermost frames and its message."""
    for text in failures:
        yield from text.strip().splitlines()[-OWN_LINES:]


# -- places in code ----------------------------------------------------------------------------------------------------

# A frame as Python, faulthandler, IPython and pytest write it, on Windows too, and in a checkout of torch's source; and
# one of a graph that Dynamo made.
FRAME = re.compile(
    r"(?:(?:site|dist)-packages[\\/]{1,2}|[\\/]pytorch[\\/](?=torch[\\/])|\"(?=torch[\\/]|<eval_with_key>))"
    r"(?P<file>[\w.\\/+-]{1,200}\.py|<eval_with_key>(?=\.\d{1,5}\"))(?:\.\d{1,5})?\"?"
    r"(?:, line \d{1,7},? in (?P<name>[\w<>.]{1,100})|:\d{1,7}, in (?P<qualified>[\w<>.]{1,100})|:\d{1,7}"
    r"|, line \d{1,7}| in (?P<last>[\w<>]{1,100}))"
)
_SHARED_BY = 0.1  # of the issues: a place that more of them pass through tells nothing apart


def places_in(text: str) -> frozenset[Place]:
    """The places in installed packages that the tracebacks of a text run through."""
    return frozenset(map(_place, FRAME.finditer(text)))


def _place(frame: re.Match[str]) -> Place:
    """IPython names a method with its class, Python without."""
    name = frame["name"] or frame["qualified"] or frame["last"] or ""
    return re.sub(r"[\\/]+", "/", frame["file"]), name.rpartition(".")[2]


def _courses(run: Mapping[str, Sequence[frozenset[Place]]]) -> dict[str, tuple[frozenset[Place], ...]]:
    courses = {id_: [places for places in each if places] for id_, each in run.items()}
    shared = Counter(place for each in courses.values() for place in frozenset().union(*each))
    most = max(1.0, _SHARED_BY * sum(1 for each in courses.values() if each))
    telling = {
        id_: frozenset(frozenset(place for place in places if shared[place] <= most) for places in each)
        for id_, each in courses.items()
    }
    return {id_: tuple(places for places in each if places) for id_, each in telling.items()}


class _Course(StrEnum):
    """How the traceback of a paste runs, against those of an issue."""

    SAME = "same"
    NEAR = "near"  # through a place of theirs, or through compilers where none was recorded
    OTHER = "other"


# Where torch turns a function into something else: whoever never comes there has none of the errors made there.
_COMPILERS = (
    "torch/_dynamo/",
    "torch/_functorch/",
    "torch/_higher_order_ops/",
    "torch/_inductor/",
    "torch/_subclasses/",
    "torch/fx/",
    "torch_xla/",
    "triton/",
)
_SAME_SHARE = 0.4  # of the places of one recorded failure


def _course(places: frozenset[Place], issue: str, library: FailureLibrary) -> _Course:
    own = library.courses.get(issue, ())
    share = max((_shared(places, recorded) for recorded in own), default=0.0)
    if share >= _SAME_SHARE:
        return _Course.SAME
    return _Course.NEAR if _is_compiled(places) and (share or not own) else _Course.OTHER


def _is_compiled(places: frozenset[Place]) -> bool:
    return any(file.startswith(_COMPILERS) for file, _ in places)


def _shared(places: frozenset[Place], recorded: frozenset[Place]) -> float:
    """Which part of a recorded failure's places the paste runs through. pytest tells files without functions."""
    files = {file for file, name in places if not name}
    return sum(1 for place in recorded if place in places or place[0] in files) / len(recorded)


# -- signatures --------------------------------------------------------------------------------------------------------

# What torch, Triton and Python say for countless reasons. A signature that matched nothing but one of these names no
# issue by itself. Each stands here because a failure of another kind says it too (tests/ask/explain/threads).
_ANYBODYS = tuple(
    re.compile(text, re.DOTALL)
    for text in (
        r"(?:IndexError: )?tuple index out of range",
        r"NameError: name 's\d+' is not defined",
        r"KeyError: '\w+'",
        r"can only concatenate tuple \(not \"int\"\) to tuple",
        r"cannot import name 'triton_key' from 'triton\.compiler\.compiler",
        r"shape '\[[-\d, ]+\]' is invalid for input of size \d+",
        r"view size is not compatible with input tensor's size and stride",
        r"accessing tensor output of CUDAGraphs that has been overwritten by a subsequent run",
        r"call a compiled backward function within vmap/grad/vjp|Cannot access \w+(?: \w+)? of \w+",
        r"expected \[4\.0, 4\.0\], got",
        r"Cannot call numel\(\) on tensor with symbolic sizes/strides",
        r"Cannot view a tensor with shape.*",
        r"NoValidChoicesError: No choices to select",
        r"Unsupported: (?!.{0,400}(?:once_differentiable|\.backward\b)).{0,400}(?:in skipfiles|autograd/function\.py)",
        r"call_function UserDefinedClassVariable.*",
        r"out of resource: [\w\s,]+\sRequired: \d+,?\s+Hardware limit: ?\d+",
        r"(?:Fatal Python error: )?Floating point exception",
        r"Found a custom \(non-ATen\) operator whose output has alias annotations",
        r"FlexAttention does not support backward on CPU",
        r"as_strided_scatter: sizes .{0,200} out of bounds for storage",
        r"self\.stride\(-1\) must be 1 to view",
    )
)
# The same of what means something once a compiler says it: a kernel of Inductor's is nobody's own C++.
_OUTSIDE_COMPILERS = tuple(
    re.compile(text)
    for text in (
        r"invalid type argument of unary .\*.",
        r"error: .tmp\d+. was not declared in this scope",
    )
)
_SAID_BY_COMPILERS = re.compile(
    r"torch\.compile|torch\._(?:dynamo|inductor)|InductorError|BackendCompilerFailed|_functorch|triton\.compiler|"
    r"name 's\d+' is not defined"
)
_NAME = re.compile(r"\b[A-Za-z]\w*_\w+|\b[a-z]\w*\(\w+\)")  # nested_compile_region, view(dtype)
_WORDS_OF_TITLE = 3
_VERSION_OF_TITLE = re.compile(r"\b(torch|Triton) (\d{1,2}\.\d{1,2})")
_FEWEST_WORDS = 3

_WRONG_RESULT = "WrongResult"
_REPRO_WORDS = "expected "
_BLANK = re.compile(r"(?<!\\) ")
_WRONG_REACH = 4_000  # characters after the name of the exception in which its message stands
_MOST_WRONG = 20

_EXIT = r"exit(?:ed)?(?: with)?(?: code| status)?:? ?"
_SIGNALS = {
    "SIGABRT": rf"Aborted|SIGABRT|Abort trap|{_EXIT}(?:-6|134)\b|signal 6\b|double free or corruption|"
    r"(?:malloc|free|realloc|munmap_chunk)\(\): |corrupted (?:size|double-linked)",
    "SIGFPE": rf"[Ff]loating [Pp]oint [Ee]xception|SIGFPE|{_EXIT}(?:-8|136)\b|signal 8\b",
    "SIGSEGV": rf"[Ss]egmentation fault|\bsegfault|SIGSEGV|\bSEGV\b|{_EXIT}(?:-11|139)\b|signal 11\b",
}

_ABOUT = 3  # lines before and after the lit one
_MOST_LIT = 6


@dataclass(frozen=True)
class _Paste:
    pasted: CleanedPaste
    text: str
    starts: Sequence[int]
    places: frozenset[Place]
    words: tuple[str, ...]
    versions: tuple[VersionMention, ...]


_Ranked = tuple[Match, tuple[bool, bool, int]]
"""A match, and its rank: sure before possible, the same course before none, then the signature that says more."""


def recognise(library: FailureLibrary, text: str, budget: SearchBudget) -> Explanation:
    """Explain a pasted failure as far as it goes without cells and builds (`complete`). Total: anything is a paste."""
    pasted = read_paste(text)
    lines = [line.lstrip() for line in pasted.lines]
    whole, words, versions = "\n".join(lines), tuple(telling_words(pasted.lines)), versions_of(pasted)
    paste = _Paste(pasted, whole, starts_of(lines), places_in(whole), words, versions)
    found, unread = find_messages(whole, library.messages, budget)
    ranked, untried = _matches(paste, library, budget)
    likeness = {
        near.name: near.score for near in library.texts.nearest(paste.words, [match.issue for match, _ in ranked])
    }
    ranked.sort(key=lambda pair: (*pair[1], -likeness.get(pair[0].issue, 0.0), pair[0].issue))
    matches = tuple(match for match, _ in ranked)
    meanings = meanings_of(found, versions, (match.issue for match in matches))
    is_known = _is_known(matches, meanings)
    silent = () if is_known or meanings else _silent(paste, library)
    shown = {*(match.issue for match in matches), *(near.issue for near in silent)}
    return Explanation(
        is_known,
        versions,
        meanings=meanings,
        matches=matches,
        nearest=() if is_known or meanings else _nearest(paste, library, shown),
        silent=silent,
        untried=(*unread, *untried),
        lines=len(set(pasted.places)) if whole.strip() else 0,
        left_out=pasted.left_out,
    )


def _is_known(matches: Iterable[Match], meanings: Iterable[Meaning]) -> bool:
    return Strength.SURE in {*(match.strength for match in matches), *(meaning.strength for meaning in meanings)}


def _first_notes(explanation: Explanation, resolved: ResolvedBuild, known: Known) -> tuple[Message, ...]:
    """The notes before any match: that the wheel holds no code for one of the GPUs that a text names, or that nobody
    knows whether it does; and that torch brings no Triton for Windows where it is missed.
    """
    wheel, classes = known.builds.get(resolved.build or ""), (class_named(gpu, ()) for gpu in resolved.gpus)
    notes = [known.against(wheel, class_, resolved.driver) for class_ in classes] if wheel or resolved.nearest else []
    missed = [version for version in explanation.versions if version.name == "working Triton"]
    no_triton = [Message("no_triton")] if missed and WINDOWS in resolved.platforms else []
    return (*filter(None, notes), *several_gpus(resolved.gpus), *no_triton)


def complete(
    explanation: Explanation, issues: Mapping[str, Issue], knowledge: Knowledge, build: str = ""
) -> Explanation:
    """Add the build that the versions describe, or the one that is named, and what is measured; sure matches come
    first. An issue that is ruled out stays possible at most. `issues` are those that the text was compared with. Raises
    UnknownBuild for a name that is no build id.
    """
    known = knowledge.known
    resolved = resolve(stated_by(explanation.versions), known.build_names, knowledge.tested, wheels_of(known))
    if build:
        named = resolve_build(
            build, known.build_names, knowledge.tested, wheels_of(known), platforms=resolved.platforms
        )
        resolved = replace(named, gpus=resolved.gpus, driver=resolved.driver)
    elsewhere = bool(why_not_tested(resolved.platforms))
    weakened = [_weakened(match, issues[match.issue], explanation, resolved, known) for match in explanation.matches]
    matches = [advise(match, issues[match.issue], resolved.build, known, elsewhere=elsewhere) for match in weakened]
    return replace(
        explanation,
        known=_is_known(matches, explanation.meanings),
        build=resolved.build,
        asked=resolved.description,
        note=clauses(resolved.remarks) if resolved.remarks else NOTHING,
        wheel=_first_notes(explanation, resolved, known),
        matches=tuple(sorted(matches, key=lambda match: match.strength is not Strength.SURE)),
    )


def _weakened(match: Match, issue: Issue, explanation: Explanation, resolved: ResolvedBuild, known: Known) -> Match:
    if _is_ruled_out(issue, explanation):
        return replace(match, strength=Strength.POSSIBLE, why=Why.RULED_OUT)
    passes = match.strength is Strength.SURE and _passes_on(issue, resolved, known)
    return replace(match, strength=Strength.POSSIBLE, why=Why.PASSES_THERE) if passes else match


def _is_ruled_out(issue: Issue, explanation: Explanation) -> bool:
    """Whether no stated torch, no stated Python or no stated Triton is one that the issue can be on, or the issue needs
    CUDA where torch has none. An issue of use names the Triton that it begins with in its title.
    """
    first = _first_triton(issue)
    can_be = {"torch": issue.requires.torch, "Python": issue.requires.python, "Triton": first and f">={first}"}
    stated = {
        name: [version.value for version in explanation.versions if version.name == name] for name in (*can_be, "CUDA")
    }
    is_for_cpu = stated["CUDA"] == ["None"] or {torch.partition("+")[2] for torch in stated["torch"]} == {"cpu"}
    return (issue.requires.device is Device.CUDA and is_for_cpu) or not all(
        _is_any_within(specifier, stated[name]) for name, specifier in can_be.items()
    )


def _first_triton(issue: Issue) -> str:
    named = (version for name, version in _VERSION_OF_TITLE.findall(issue.title) if name == "Triton")
    return next(named, "") if issue.status is Status.USAGE else ""


def _is_any_within(specifier: str, versions: Sequence[str]) -> bool:
    """True where they say nothing: none is stated, or one that is no version."""
    try:
        return not versions or any(is_within(specifier, version) for version in versions)
    except InvalidVersion:
        return True


def _passes_on(issue: Issue, resolved: ResolvedBuild, known: Known) -> bool:
    """Whether it was measured to pass on the very build that is stated, and fails there on no class."""
    build = known.builds.get(resolved.build or "")
    if build is None or resolved.is_assumed or (_first_triton(issue) and not build.is_mismatched):
        return False
    cells = [known.cell(issue, build, class_) for class_ in known.classes_of(issue.id)]
    passed = any(cell.verdict is Verdict.NOT_AFFECTED and cell.basis is None for cell in cells)
    return passed and not any(cell.verdict in FAILING for cell in cells)


def _matches(paste: _Paste, library: FailureLibrary, budget: SearchBudget) -> tuple[list[_Ranked], list[str]]:
    ranked, untried = [], []
    for issue in library.issues.values():
        try:
            candidate = _match(paste, issue, library, budget)
        except TimeoutError:
            untried.append(issue.id)
            continue
        if candidate is not None:
            ranked.append(candidate)
    return [pair for pair in ranked if not library.issues[pair[0].issue].is_smoke] or ranked, untried


def _match(paste: _Paste, issue: Issue, library: FailureLibrary, budget: SearchBudget) -> _Ranked | None:
    """An issue without a pattern is carried by its failure alone, which a text does not show."""
    if not issue.signature.pattern:
        return None
    span = _span(paste.text, issue, budget)
    operator = None if span else _operator_of_a_crash(paste.text, issue)
    span = span or operator
    if span is None:
        return None
    matched = paste.text[slice(*span)]
    course = _course(paste.places, issue.id, library)
    weighed = (Strength.POSSIBLE, Why.SAME_OPERATOR) if operator else _weigh(issue, span, course, paste, library)
    if weighed is None:
        return None
    strength, why = weighed
    first, last = (line_at(paste.text, paste.starts, at) for at in (span[0], max(span[0], span[1] - 1)))
    line = "\n".join(paste.pasted.lines[first : last + 1]).strip()[:LONGEST_SHOWN]
    match = match_of(issue, strength, why, line, _around(paste.pasted, first, last))
    return match, (strength is not Strength.SURE, course is not _Course.SAME, -len(words_of(matched)))


def _span(text: str, issue: Issue, budget: SearchBudget) -> tuple[int, int] | None:
    """Find the span of the signature in a text. The words of a wrong result are our repro's own, and so is its
    exception's name. Markdown and mail wrap long messages: where a signature has a blank a line may end.
    """
    pattern = _BLANK.sub(r"\\s", issue.signature.pattern)
    if issue.signature.kind is not SignatureKind.WRONG_RESULT:
        hit = budget.search(pattern, text)
        if hit is None or not hit.group().startswith(_REPRO_WORDS):
            return hit.span() if hit else None
    for name in _named(text):
        hit = budget.search(pattern, text, name, name + _WRONG_REACH)
        if hit:
            return hit.span()
    return None


def _named(text: str) -> Iterable[int]:
    """Each start of the exception's name, so far as somebody reads them."""
    position = -1
    for _ in range(_MOST_WRONG):
        position = text.find(_WRONG_RESULT, position + 1)
        if position < 0:
            return
        yield position


def _weigh(
    issue: Issue, span: tuple[int, int], course: _Course, paste: _Paste, library: FailureLibrary
) -> tuple[Strength, Why] | None:
    """Say how much it proves that the signature stands there, and why; None where it proves nothing."""
    matched = " ".join(paste.text[slice(*span)].split())
    if issue.signature.kind is SignatureKind.WRONG_RESULT:
        return Strength.SURE, Why.REPRO
    if course is _Course.SAME:
        return Strength.SURE, Why.SAME_WAY
    if _is_common(matched, paste.places):
        rest = f"{paste.text[: span[0]]}\n{paste.text[span[1] :]}"
        titled = (_plain_words(rest) - _plain_words(matched)) & library.titles[issue.id]
        if len(titled) >= _WORDS_OF_TITLE or _is_marked(issue, matched, rest, paste.versions):
            return Strength.SURE, Why.MARKED
        speaks = course is _Course.NEAR or (not _is_compiled(paste.places) and _SAID_BY_COMPILERS.search(paste.text))
        return (Strength.POSSIBLE, Why.COMMON_WORDS) if speaks else None
    if issue.signature.kind in {SignatureKind.SIGNAL, SignatureKind.HANG}:
        # A text shows how a process died, where it is a log; that it hung it cannot show.
        return (Strength.SURE, Why.SAME_END) if _died(issue, paste.text) else (Strength.POSSIBLE, Why.OTHER_END)
    return Strength.SURE, Why.OWN_WORDS


def _died(issue: Issue, text: str) -> bool:
    return any(re.search(_SIGNALS.get(signal, signal), text) for signal in issue.signature.signals)


def _operator_of_a_crash(text: str, issue: Issue) -> tuple[int, int] | None:
    """Find the operator that the issue is about in the text of a process that died as the issue's does. The
    signature of many crashes is a frame of the repro's own, which no other text has.
    """
    if issue.signature.kind is not SignatureKind.SIGNAL or not _died(issue, text):
        return None
    exercised = {exercise for arm in issue.arms for exercise in arm.exercises if exercise.startswith(OPERATOR_PROBE)}
    operators = (exercise.rpartition("::")[2].replace("_", "_?") for exercise in sorted(exercised))
    names = [*map(re.escape, _NAME.findall(issue.title)), *operators]
    named = (re.search(rf"(?<![\w/\\-]){name}(?!\w)", text, re.IGNORECASE) for name in names)
    return next((hit.span() for hit in named if hit), None)


def _is_common(matched: str, places: frozenset[Place]) -> bool:
    if any(pattern.fullmatch(matched) for pattern in _OUTSIDE_COMPILERS):
        return not _is_compiled(places)
    return len(matched.split()) < _FEWEST_WORDS or any(pattern.fullmatch(matched) for pattern in _ANYBODYS)


def _is_marked(issue: Issue, matched: str, rest: str, versions: Sequence[VersionMention]) -> bool:
    """Whether the rest of a text names what the issue is about: its package or an operator of its title, else, where it
    has neither, the release that the title names.
    """
    package = issue.requires.package
    names = {package, package.replace("-", "_"), *_NAME.findall(issue.title)} - {""}
    if own := [name for name in names if name not in matched]:
        return any(re.search(rf"(?<![\w/\\-]){re.escape(name)}", rest) for name in own)  # a file's name says less
    titled = _VERSION_OF_TITLE.findall(issue.title)
    return any((version.name, ".".join(version.value.split(".")[:2])) in titled for version in versions)


def _around(pasted: CleanedPaste, first: int, last: int) -> tuple[PastedLine, ...]:
    """The lit lines with a few about them; of a signature over many lines the last is lit, which says most."""
    lit = range(first, last + 1) if last - first < _MOST_LIT else range(last, last + 1)
    shown = range(max(0, lit.start - _ABOUT), min(len(pasted.lines), lit.stop + _ABOUT))
    return tuple(PastedLine(pasted.places[at], pasted.lines[at][:LONGEST_SHOWN], at in lit) for at in shown)


# -- words -------------------------------------------------------------------------------------------------------------

_SAYS_WHAT = re.compile(
    r"(?:Error|Exception|Unsupported|Warning)\b|\b(?:error|fatal|failed|failure|assert\w*|abort\w*|segmentation|"
    r"expected|mismatch\w*|wrong|incorrect|cannot|not supported)\b",
    re.IGNORECASE,
)
# What programs print that go on well, or print beside whatever goes wrong: it is no part of any failure.
_HARMLESS = re.compile(
    r"No CUDA runtime is found|Set TORCH_LOGS=|Set TORCHDYNAMO_VERBOSE=|You can suppress this exception and fall back|"
    r"^\s*(?:import torch\._dynamo|torch\._dynamo\.config\.suppress_errors = True)$|"
    r"CUDA kernel errors might be asynchronously reported|For debugging consider passing CUDA_LAUNCH_BLOCKING|"
    r"Compile with `TORCH_USE_CUDA_DSA`|Not enough SMs to use max_autotune_gemm|TensorFloat32 tensor cores|"
    r"(?:huggingface/)?tokenizers: The current process just got forked|\bTOKENIZERS_PARALLELISM\b"
)
_INNERMOST = 12  # frames whose names tell something
_MOST_LINES = 60
_LEAST_SCORE = 0.1
_LEAST_WORDS = 3
_NAMED = 5

_WRONG_NUMBERS = re.compile(
    r"\b(?:wrong|incorrect|different|differs?|inconsistent|corrupt\w*|garbage|silent(?:ly)?|mismatch\w*|diverg\w*|nans?|"
    r"accuracy|inaccurate)\b|not\s+(?:close|equal|allclose)|allclose|assert_close|assert_allclose|"
    r"max(?:imum)?[ _]?diff|Mismatched elements|"
    "错误结果|结果错误|结果不对|数值|精度|不一致",
    re.IGNORECASE,
)
_LEAST_SILENT_SCORE = 0.05


def telling_words(lines: Sequence[str]) -> list[str]:
    """The words of the lines of a log that say what went wrong, and the names of its innermost frames; all words of a
    text of a few lines.
    """
    lines = [line for line in lines if not _HARMLESS.search(line)]
    if len(lines) > _MOST_LINES:
        telling = [line for line in lines if _SAYS_WHAT.search(line)]
        frames = [line for line in lines if "site-packages/" in line or "dist-packages/" in line]
        lines = [*telling[-_MOST_LINES:], *frames[-_INNERMOST:]] or lines[-_MOST_LINES:]
    return words_of("\n".join(lines))


def _nearest(paste: _Paste, library: FailureLibrary, shown: Collection[str]) -> tuple[NearIssue, ...]:
    """The issues whose words are most like the text's, where any are like it at all. Those in `shown` are left out, and
    those about a package that the text does not name.
    """
    plain = paste.text.casefold()
    packages = {issue.id: issue.requires.package.partition("-")[0] for issue in library.issues.values()}
    candidates = (
        likeness
        for likeness in library.texts.nearest(paste.words)
        if likeness.name not in shown and packages[likeness.name] in plain
    )
    near = [
        likeness for likeness in candidates if likeness.score >= _LEAST_SCORE and len(likeness.words) >= _LEAST_WORDS
    ]
    return tuple(
        near_issue(library.issues[likeness.name], likeness.score, likeness.words) for likeness in near[:_NAMED]
    )


def _silent(paste: _Paste, library: FailureLibrary) -> tuple[NearIssue, ...]:
    """Issues that raise nothing cannot be found by a message; where the words speak of wrong numbers, the nearest."""
    if not _WRONG_NUMBERS.search(paste.text):
        return ()
    silent = [issue.id for issue in library.issues.values() if issue.silent]
    near = [
        likeness for likeness in library.texts.nearest(paste.words, silent) if likeness.score >= _LEAST_SILENT_SCORE
    ]
    return tuple(
        near_issue(library.issues[likeness.name], likeness.score, likeness.words) for likeness in near[:_NAMED]
    )
