"""Sentences of the rules (reasons, histories, notes of workarounds) for readers of Chinese.

Rules speak English alone, so that JSON, commands, exports and the store's own history say one thing. A page translates
their sentences by the forms below, which cover all that rules say: what a place holds is translated by the same forms
where it is a sentence itself; versions and names stay, and what a process said (a line of its log, an exception) is
marked as the English that it is.
"""

import re
from collections.abc import Iterator
from functools import lru_cache

from markupsafe import Markup, escape

from knowngood.domain.vocabulary import ANSWERS, VERDICTS, WORKAROUNDS
from knowngood.web.html import i18n
from knowngood.web.html.i18n import Language, say

# `attempt(s)` and `is(are)` stand for either; the most telling forms come first, for a later one may match too.
FORM_WORDS = (
    "{lead} {build} ({hardware}): {said}.",
    "On {build} ({hardware}) it {said}.",
    "{hardware}: {said}.",
    "{said}; control passed; path seen ({proof})",
    "{said}; control passed",
    "{said}; path seen ({proof})",
    "inferred from {ground} (these Pythons agreed in {n} of {m} cells): {said}",
    "inferred from {ground} (independent of the device; agreed in {n} of {m} cells): {said}",
    "{build} (these Pythons agreed in {n} of {m} cells)",
    "{hardware} (independent of the device; agreed in {n} of {m} cells)",
    "{said}; one run; this issue is flaky: {n} more would say",
    "one run; this issue is flaky: {n} more would say",
    "{n} passes needed: fails in {k} of {m} runs on {version}; {runs} run",
    "{said}; as reported ({variant}) it {clause}",
    "fails on Python {names} and passes on Python {others}",
    "passes as reported; not covered: {quote}; {said}",
    "the rest of the issue is not covered",
    "{said}; inferred from {ground}",
    "inferred from {ground}",
    "with every variant ({n}): {said}",
    "with {names}: {said}",
    "on {names}: {said}",
    "varies by machine: {said}",
    "passed and failed: {said}",
    "not every time: {said}",
    "the baseline passes, with it: {said}",
    "makes it loud: {said}",
    "a loud failure becomes silent wrong numbers",
    "the baseline here is {verdict}",
    "does not apply to this build: {said}",
    "this workaround is for torch {versions}",
    "helps with {names}; {said}",
    "fails with {names}; {said}",
    "no answer with {variant} ({said}); {more}",
    "helps with {names}",
    "fails with {names}",
    "no answer with {variant} ({said})",
    "not tried with {names} ({why})",
    "not tried with {names}",
    "{k} of {n} attempt(s) ended with the issue's own signature; {m} ended otherwise: {said}",
    "{k} of {n} attempt(s) ended with the issue's own signature, others passed",
    "{k} of {n} attempt(s) ended with the issue's own signature",
    "{k} of {n} attempt(s) passed; path proven ({proof})",
    "passed; path proven ({proof})",
    "ended with the issue's own signature",
    "failed otherwise: {text}",
    "did not end within {seconds} s, but the control took {n} s itself",
    "did not end within {seconds} s",
    "died by {signal} without the issue's signature",
    "exited by itself with {n}",
    "exited by itself with 0 before the arm returned, which proves nothing",
    "ended without a word of how",
    "package {name} is not in the environment; name it under [packages] of the issue",
    "torch could not be imported: the process ended first ({ending})",
    "torch could not be imported: {text}",
    "not the build asked for: {text}",
    "out of memory: {text}",
    "disk full: {text}; free space and run again",
    "no such build with {name}: {text}",
    "no such build: {text}",
    "returned, but {said}",
    "no CUDA tensor was seen to enter the {variant}: what ran on the CPU says nothing of this GPU",
    "no CUDA tensor was seen to enter {names}: what ran on the CPU says nothing of this GPU",
    "nothing shows that it exercised {names} (seen: {text})",
    "nothing shows that it exercised {names}",
    "nothing shows that {names} ran compiled; compiling it failed (seen: {others})",
    "nothing shows that {names} ran compiled; compiling it failed",
    "nothing shows that {names} ran compiled (seen: {others})",
    "nothing shows that {names} ran compiled",
    "compiling {names} failed, and something went on without",
    "{names}, compiled, raised, and something went on without",
    "ran, but nothing stands beside its values: the control was not run with {variant}",
    "ran, but its values differ from the control's: {values} (and {n} more)",
    "ran, but its values differ from the control's: {values}",
    "control not run: without it neither a failure nor a pass says anything",
    "control failed: {said}",
    "control gave no answer: {said}",
    "{n} attempt(s) of a worker whose results were voided",
    "not measured with {names} yet",
    "not run yet",
    "applies to torch {versions}; this is {found}",
    "applies to Python {versions}; this is {found}",
    "needs CUDA, and this build has none",
    "needs a CUDA GPU; {hardware} has none (measure it on a GPU worker)",
    "needs compute capability {version} or newer; {hardware} is older",
    "concerns the CPU path: see cpu-x86_64",
    "has no answer of its own with {name}: see {hardware}",
    "this processor has no {name} (its widest vector ISA: {variant}); measure it on a machine that has",
    "{variant} {clause} and {name} {answer} on {names}",
    "{variant} and {name} say the same on {names}",
    "used more memory than this worker allows an arm",
    "started more processes than this worker allows an arm",
    "wrote more to disk than this worker allows an arm, or than its disk had left",
    "passes on all {n} with an answer",
    "passes on all {n} measured",
    "passes on {release}, the one with an answer",
    "passes on {release}, the one measured",
    "fails on all {n} with an answer",
    "fails on all {n} measured",
    "fails on {release}, the one with an answer",
    "fails on {release}, the one measured",
    "Pythons disagree on {n} release(s)",
    "fails differently on {n} release(s)",
    "no release answered yet",
    "taken as Linux x86-64",
    "as on {hardware}: {said}",
    "{n} workaround helps",
    "{n} workarounds help",
    "fails since {interval}",
    "fails in {first} to {last}",
    "fails in {first}",
    "fails up to {last}",
    "fixed in {interval}",
    "older not known",
    "newer than {release} not known",
    "{n} later not run",
    "{n} inside not run",
    "is listed for Python {found} and not for {wanted}",
    "has Triton {found} in place of its own {wanted}; pin Triton to want that",
    "is built for CUDA {found}, and which driver runs that is not on file here",
    "is built for CUDA {found}, which needs driver {wanted} or newer, and {driver} is there",
    "has no {package} that is built for it (PyPI, asked {asked})",
    "holds no code for {gpu}",
    "this wheel holds no code for {gpu}",
    "the first tested build that does is {found}",
    "the newest tested build that does is {found}",
    "no tested build is known to",
    "not known whether this wheel has code for {gpu}",
    "several kinds of GPU are named ({gpus}), and the worst counts",
    "where you are: {said}",
    "has no CUDA, and {hardware} has; name a CPU class to want that",
    "has no CUDA, and {hardware} is wanted",
    "has no {found}, and {wanted} is wanted",
    "has {found}, and {wanted} is wanted",
    "Python is not stated; of those that it may be the catalogue has this build for {found} alone",
    "Python is not stated: it may be {found} or {last}",
    "issues of these packages are not watched, because {said}: {packages}",
    "the packages beside torch are not known: give the environment, say which it has, or name the issues",
    "the environment does not have them",
    "the project does not ask for them by itself; whether its dependencies bring them is not known",
    "{build} names no CUDA variant; taken as that of the default index, {found}",
    "{names} and {n} more {answer}",
    "{n} issues: {said}",
    "{issue}: {said}",
    "measured for the first time: {said}",
    "workaround {name} is no longer needed on {n} cell(s)",
    "workaround {name} stopped working ({verdict}) on {n} cell(s)",
    "workaround {name} works now on {n} cell(s)",
    "workaround {name} helps in part now on {n} cell(s)",
    "{clause} on {n} cell(s)",
    "{n} more workaround(s)",
    "{n} workaround(s)",
    "workarounds to be verified anew",
    "does harm there: {said}",
    "does harm there",
    "helps now, and does not there: {said}",
    "helps now, and does not there",
    "{state} upstream, seen on {day}; here it {said}",
    "{state} upstream; here it {said}",
    "but upstream says that {names} is(are) affected ({source}; {seen})",
    "but upstream says that {names} is(are) fixed ({source}; {seen})",
    "but later it {said}",
    "{names} pass(es) here",
    "{names} fail(s) here",
    "not measured here",
    "the rest was not measured",
    "not needed from {release} on ({aside}), {said}: {names}",
    "not needed from {release} on, {said}: {names}",
    "{name} cures no build that was measured: {names}",
    "{name} is marked as a decoy, and helps on {names}",
    "passes on {names}: nothing shows that its repro can fail",
    '"{quote}" but {said}',
    '"{quote}" {said}',
    "cured {names}, and helped with some variants on {partly}, and not {others}",
    "cured {names}, and helped with some variants on {partly}",
    "cured {names}, and not {others}",
    "helped with some variants on {names}, and did not cure {others}",
    "helped with some variants on {names}",
    "did not cure {names}",
    "cured {names}",
)
"""Every form has its Chinese in the catalogue of the interface's words."""


def _lower(text: str) -> str:
    return text[0].lower() + text[1:]


_TERMS = (*ANSWERS.values(), *VERDICTS.values(), *WORKAROUNDS.values())
# The catalogue has each word once: not its plural, not as a clause, and no names of verdicts.
_WORDS = {
    **{said: term.word for term in _TERMS for said in (term.as_plural, term.as_clause, term.lead, _lower(term.lead))},
    **{name: term.word for name, term in VERDICTS.items()},
}

_PLACE = re.compile(r"{(\w+)}")
_HELD = {  # by the name of a place; every other holds anything
    **dict.fromkeys(("k", "m", "n"), r"[0-9]+"),
    **dict.fromkeys(("first", "last", "release", "hardware", "variant", "name", "gpu"), r"[^\s;:]+"),
    **dict.fromkeys(("found", "wanted"), r"[^;]+"),
    "packages": r"[^:;]+",
    "interval": r"[(\[][^()\[\]]+[)\]]",
    **dict.fromkeys(("names", "partly", "others"), r"[^();:]+"),
    "issue": r"[a-z][\w-]*-[0-9]+",
    "state": r"open|closed",
    "build": r"\S+",
    "lead": "|".join(lead for term in _TERMS for lead in (re.escape(term.lead), re.escape(_lower(term.lead)))),
}
_QUOTED = frozenset(
    {"text", "values", "why", "ending", "quote", "source"}
)  # what a process, or whoever wrote the issue, said in English
_SENTENCES = frozenset({"said", "clause", "answer", "more", "verdict", "aside", "seen", "state", "lead"})
_WORD = frozenset({"clause", "answer", "verdict", "state", "lead"})
_NAMES = frozenset({"names", "partly", "others"})


def rule_sentence(text: str, language: Language) -> Markup:
    """`text` as HTML in the reader's language. Where no form is known it stays, marked as English."""
    if language is not Language.CHINESE or not text:
        return escape(text)
    found = in_chinese(text)
    return _english(text) if found is None else found


@lru_cache(maxsize=8192)
def in_chinese(text: str) -> Markup | None:
    """None where the text is of no form that is known."""
    said = _one_form(text)
    if said is None:
        said = _in_parts(text)
    if said is None and text[:1].isupper():  # a page begins a sentence with a capital
        return in_chinese(_lower(text))
    return said


def _one_form(text: str) -> Markup | None:
    for words, form in _FORMS:
        found = form.fullmatch(text)
        told = _filled(words, found.groupdict()) if found else None
        if told is not None:
            return told
    return None


def _filled(words: str, places: dict[str, str]) -> Markup | None:
    """None where a place that has to be a sentence is none."""
    told: dict[str, Markup] = {}
    for name, text in places.items():
        if name in _SENTENCES:
            inner = _clause(text) if name in _WORD else in_chinese(text)
            if inner is None and name != "said":
                return None
            told[name] = _english(text) if inner is None else inner
        else:
            told[name] = _names(text) if name in _NAMES else _english(text) if name in _QUOTED else escape(text)
    return Markup(i18n.CHINESE.gettext(words)).format(**told)  # noqa: S704 - the catalogue's own words


_AND_MORE = re.compile(r"(.+) and ([0-9]+) more")


def _names(text: str) -> Markup:
    """A list as `history.listed` writes it."""
    more = _AND_MORE.fullmatch(text)
    names = (more[1] if more else text).replace(" and ", ", ").replace(", ", "、")
    return escape(say("{names} and {n} more", Language.CHINESE, names=names, n=more[2]) if more else names)


def _clause(text: str) -> Markup | None:
    """A word of the vocabulary: `passes`, `differ by Python`, or a verdict by its name."""
    words = _WORDS.get(text, text)
    told = i18n.CHINESE.gettext(words)
    return escape(told) if told != words else None


def _in_parts(text: str) -> Markup | None:
    """A sentence with an aside, and sentences beside one another."""
    if text.endswith(")") and (at := _opening(text)) > 1 and text[at - 1] == " ":
        head, aside = in_chinese(text[: at - 1]), in_chinese(text[at + 1 : -1])
        if head is not None and aside is not None:
            return Markup("{}（{}）").format(head, aside)  # noqa: RUF001 - Chinese
    for between, chinese in _BETWEEN:
        first, found, rest = _split(text, between)
        if found:
            head, tail = in_chinese(first), in_chinese(rest)
            if head is not None and tail is not None:
                return Markup("{}{}{}").format(head, chinese, tail)
    return _release_clause(text)


_BETWEEN = ((" · ", " · "), ("; ", "；"), (", ", "，"))  # noqa: RUF001 - Chinese


def _opening(text: str) -> int:
    """Where the parenthesis begins that ends the text."""
    depth = 0
    for at in range(len(text) - 1, -1, -1):
        depth += {")": 1, "]": 1, "(": -1, "[": -1}.get(text[at], 0)  # an interval may be (2.5, 2.6]
        if depth == 0:
            return at
    return -1


def _split(text: str, between: str) -> tuple[str, str, str]:
    """At the first `between` that stands in no parentheses."""
    depth = 0
    for at, character in enumerate(text):
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(character, 0)
        if depth == 0 and text.startswith(between, at):
            return text[:at], between, text[at + len(between) :]
    return text, "", ""


_RELEASES = re.compile(r"((?:[\d.]+(?:, )?)+) (.+)")


def _release_clause(text: str) -> Markup | None:
    """`2.5.0, 2.5.1 not run`."""
    found = _RELEASES.fullmatch(text)
    answer = _clause(found[2]) if found else None
    return None if found is None or answer is None else Markup("{} {}").format(found[1].replace(", ", "、"), answer)


def _english(text: str) -> Markup:
    return Markup('<span lang="en">{}</span>').format(text)


def _parts(words: str) -> Iterator[str]:
    end = 0
    for place in _PLACE.finditer(words):
        yield _literal(words[end : place.start()])
        yield f"(?P<{place[1]}>{_HELD.get(place[1], '.+?')})"
        end = place.end()
    yield _literal(words[end:])


def _literal(words: str) -> str:
    found = re.escape(words)
    for either, pattern in _EITHER.items():
        found = found.replace(re.escape(either), pattern)
    return found


_EITHER = {"(s)": "s?", "(es)": "(?:es)?", "is(are)": "(?:is|are)"}
_FORMS = tuple((words, re.compile("".join(_parts(words)), re.DOTALL)) for words in FORM_WORDS)
