"""Parts that the forms of an answer share: its words and marks, which workaround to show, and safe text.

Titles, sentences and snippets come from catalogues and servers of anybody. Here they lose what would speak to a
terminal or a parser instead of a reader; each form adds the escapes of its own syntax.
"""

import re
from collections.abc import Iterable, Iterator
from shutil import get_terminal_size
from textwrap import wrap
from urllib.parse import quote

from knowngood.domain.builds.plain_names import plain_name
from knowngood.domain.grouping import gathered
from knowngood.domain.verdicts.verdict import Verdict, WorkaroundVerdict
from knowngood.domain.vocabulary import STATUSES, WORKAROUNDS, StatusLabel
from knowngood.gate import rules
from knowngood.gate.decision import Decision, MeasuredWorkaround, Reason, Ruling
from knowngood.gate.policy import Effect
from knowngood.gate.question import FAILURES, UNKNOWN
from knowngood.gate.renderers.json import address
from knowngood.serialization.marks import VerdictMark, in_text

DECISIONS = {
    Decision.PASS: "Pass",
    Decision.BLOCK: "Blocked",
    Decision.INSUFFICIENT: "Cannot say",
}

EFFECTS = {
    Effect.BLOCK: "blocks",
    Effect.INSUFFICIENT: "leaves it open",
    Effect.WARN: "warns",
    Effect.PASS: "passes",
}

# Controls (a terminal obeys them), marks that turn the direction of text (a reader is deceived by them), line ends of
# Unicode, and what neither XML nor UTF-8 can hold.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff\ufffe\uffff]"
)
_LINE_END = re.compile(r"\r\n|\r|\n")
_FENCE = re.compile(r"(?P<indent> {0,3})(?P<run>`{3,}(?=[^`]*$)|~{3,}).*$")


def one_line(text: str) -> str:
    """Text as one line that says nothing to a terminal; what cannot be shown is a replacement character."""
    return _UNSEEN.sub("\ufffd", " ".join(text.split()))


def named(id_: str) -> str:
    """A build or a class as people say it, in one line."""
    return plain_name(one_line(id_))


def all_lines(text: str) -> list[str]:
    """The lines of a text with their indentation, each safe to print; blank ones at both ends are gone."""
    lines = [_UNSEEN.sub("\ufffd", line).rstrip() for line in _LINE_END.split(text)]
    while lines and not lines[0]:
        del lines[0]
    while lines and not lines[-1]:
        del lines[-1]
    return lines


def wrapped(text: str, first: str = "", later: str = "") -> list[str]:
    """Lines of at most 96 columns, and of no more than the terminal has. Words are never broken: an address or an id
    stays in one piece.
    """
    width = max(_NARROWEST, min(_WIDEST, get_terminal_size((_WIDEST, 0)).columns))
    return wrap(
        text, width, initial_indent=first, subsequent_indent=later, break_long_words=False, break_on_hyphens=False
    )


_NARROWEST, _WIDEST = 40, 96


def headline(ruling: Ruling) -> str:
    """The answer in one line."""
    return f"{DECISIONS[ruling.decision]}: {one_line(ruling.why)}"


def active_reasons(ruling: Ruling) -> tuple[Reason, ...]:
    """The reasons that do something, worst first. None where no tested build was found: all would say just that."""
    return tuple(reason for reason in ruling.reasons if reason.effect is not Effect.PASS) if ruling.build else ()


def group_alike(reasons: Iterable[Reason], *, by_issue: bool = False) -> list[tuple[Reason, ...]]:
    """Group the reasons to print together: what was not measured, for the same cause to the same effect. Others stay
    alone, or with those of the same issue that say the same of other hardware.
    """
    groups: dict[object, list[Reason]] = {}
    for place, reason in enumerate(reasons):
        is_alike = reason.measured_at is None and not reason.workarounds
        alone = (reason.issue, reason.verdict) if by_issue else place
        groups.setdefault((reason.effect, reason.verdict, reason.why) if is_alike else alone, []).append(reason)
    return [tuple(group) for group in groups.values()]


def is_explained(ruling: Ruling, reasons: Iterable[Reason]) -> bool:
    """Whether one of these reasons carries the decision; else the answer has to say it by itself."""
    refusing = {Effect.BLOCK, Effect.INSUFFICIENT}
    if ruling.refusals:
        return False
    return ruling.decision is Decision.PASS or any(reason.effect in refusing for reason in reasons)


def unanswered_issues(ruling: Ruling) -> tuple[str, ...]:
    """The issues that are watched on an environment of which no tested build was found."""
    return () if ruling.build else tuple(dict.fromkeys(one_line(reason.issue) for reason in ruling.reasons))


def settled_reasons(ruling: Ruling) -> tuple[Reason, ...]:
    """Reasons that pass although the issue shows, nothing is known, or something is left: ignored, worked around,
    allowed by the policy, not covered.
    """
    passing = (reason for reason in ruling.reasons if reason.effect is Effect.PASS and ruling.build)
    return tuple(reason for reason in passing if not _is_plain(reason))


def why_it_passes(reason: Reason) -> str:
    """The words of a settled reason: a pass that does not cover all says itself that it is one."""
    return one_line(reason.why) if reason.not_covered else f"passes: {one_line(reason.why)}"


def plain_passes(ruling: Ruling) -> dict[VerdictMark, list[str]]:
    """Issues with nothing more to tell, by their mark: what passes, then what does not apply or concerns others."""
    passing = (reason for reason in ruling.reasons if reason.effect is Effect.PASS and _is_plain(reason))
    in_order = sorted(passing, key=lambda reason: reason.verdict is not Verdict.NOT_AFFECTED)
    by_mark = gathered((mark_of(reason), reason.issue) for reason in in_order)
    return {mark: list(dict.fromkeys(issues)) for mark, issues in by_mark.items()}


def _is_plain(reason: Reason) -> bool:
    return reason.verdict in {Verdict.NOT_AFFECTED, Verdict.NOT_APPLICABLE} and not reason.not_covered


def mark_of(reason: Reason) -> VerdictMark:
    """VerdictMark and word, as on the pages."""
    mark = in_text(reason.verdict)
    match reason.verdict:
        case Verdict.AFFECTED:
            term = STATUSES[StatusLabel(reason.sign)]
            return VerdictMark(term.symbol, term.word)
        case Verdict.NOT_APPLICABLE if reason.concerns_others:
            return VerdictMark(mark.sign, one_line(reason.why))
        case _:
            return mark


def sign_of(reason: Reason) -> str:
    """∆ where it fails with wrong numbers and no error, ✕ where it fails otherwise, ? where that is not known."""
    if reason.verdict in FAILURES:
        return "∆" if reason.silent else "✕"
    return "?" if reason.verdict in UNKNOWN else mark_of(reason).sign


def age_in_words(reason: Reason) -> str:
    """How fresh the evidence is; empty where there is none."""
    if reason.age_days is None:
        return ""
    days = {0: "today", 1: "1 day ago"}.get(reason.age_days, f"{reason.age_days} days ago")
    return f"measured {days}" + (", stale" if reason.stale else "")


def particulars(reason: Reason) -> Iterator[str]:
    """The verdict, where and when it was measured, and how severe it is, in a few words each."""
    parts = (
        mark_of(reason).word,
        f"{reason.severity} severity" + (": wrong numbers, no error" if reason.silent else ""),
        named(reason.hardware),
        age_in_words(reason),
        *(f"inferred from {named(ground.build)}" for ground in reason.grounds),
        "one run" if reason.runs == 1 else "",
        "new" if reason.is_new else "",
        reason.caveat,
    )
    return filter(None, parts)


def fix_in_words(reason: Reason) -> str:
    """`fixed in torch 2.8.0`; `torch 2.12.1 passes (2.12.0 not run)` where releases before it were not run."""
    first, unrun = release_of(reason.first_fixed), one_line(reason.fixed_in).partition("] ")[2]
    says = (f"torch {first} passes {unrun}" if unrun else f"fixed in torch {first}") if first else ""
    return "; ".join(part for part in (says, *map(one_line, reason.fix_doubts)) if part)


def release_of(build: str) -> str:
    """`2.8.0` of `torch-2.8.0+cu128`."""
    return named(build).removeprefix("torch ").partition(" ")[0]


_THREAD = re.compile(r"https://github\.com/([\w.-]+/[\w.-]+)/(?:issues|pull|discussions)/(\d+)")


def upstream_name(reason: Reason) -> str:
    """`pytorch/pytorch#151290` of a thread on GitHub; any other address as it is."""
    thread = reason.upstream or ""
    match = _THREAD.match(thread)
    return f"{match[1]}#{match[2]}" if match else one_line(thread)


def best_workaround(reason: Reason) -> MeasuredWorkaround | None:
    """The workaround to show: the first that was measured to help here and is not in place already."""
    helping = (workaround for workaround in reason.workarounds if workaround.verdict == WorkaroundVerdict.EFFECTIVE)
    return next((workaround for workaround in helping if workaround.id not in reason.applied), None)


def cure_in_words(workaround: MeasuredWorkaround) -> str:
    return f"{one_line(workaround.how)}, {one_line(workaround.id)}: {one_line(workaround.title)}"


def not_tried(reason: Reason) -> str:
    """The words for a failure without a workaround to show; empty where its mark says it all."""
    if reason.sign is not StatusLabel.UNTRIED and not reason.works_on:
        return ""
    return rules.not_tried(one_line(reason.works_on))


def other_workarounds(reason: Reason) -> str:
    """The findings on the other workarounds: `also works: a, b; does not help: c`."""
    shown = best_workaround(reason)
    words: dict[str, list[str]] = {}
    for verdict, term in WORKAROUNDS.items():
        ids = [
            one_line(workaround.id)
            for workaround in reason.workarounds
            if workaround.verdict == verdict and workaround is not shown
        ]
        if ids:
            words["also works" if verdict == WorkaroundVerdict.EFFECTIVE and shown else term.word] = ids
    return "; ".join(f"{word}: {', '.join(ids)}" for word, ids in words.items())


def counts_in_words(ruling: Ruling) -> str:
    """`1 blocks, 2 leave it open, 10 pass, 3 do not apply`, the worst first, of what occurs."""
    absent = [
        reason for reason in ruling.reasons if reason.effect is Effect.PASS and reason.verdict is Verdict.NOT_APPLICABLE
    ]
    others = sum(1 for reason in absent if reason.concerns_others)
    numbers = {effect: ruling.counts.get(effect, 0) for effect in reversed(Effect)}
    numbers[Effect.PASS] -= len(absent)
    many = {Effect.BLOCK: "block", Effect.INSUFFICIENT: "leave it open", Effect.WARN: "warn", Effect.PASS: "pass"}
    counts = [(n, EFFECTS[effect], many[effect]) for effect, n in numbers.items()]
    counts += [
        (others, "concerns another class or package", "concern other classes or packages"),
        (len(absent) - others, "does not apply", "do not apply"),
    ]
    return ", ".join(f"{n} {single if n == 1 else more}" for n, single, more in counts if n)


def build_page(ruling: Ruling, base: str) -> str:
    """The address of the page with all cells of the build; empty without a server or a tested build."""
    return address(base, f"/builds/{quote(ruling.build, safe='')}") if base and ruling.build else ""


def snippet_parts(snippet: str) -> Iterator[tuple[bool, list[str]]]:
    """A snippet's Markdown as runs of lines, of each whether it is code or prose around it. A fence that is never
    closed runs to the end, as in CommonMark.
    """
    lines: list[str] = []
    fence: re.Match[str] | None = None
    for line in all_lines(snippet):
        if fence and _closes(line, fence["run"]):
            yield True, lines
            fence, lines = None, []
        elif fence:
            lines.append(line[min(len(fence["indent"]), len(line) - len(line.lstrip(" "))) :])
        elif fence := _FENCE.match(line):
            yield from _prose(lines)
            lines = []
        else:
            lines.append(line)
    yield from [(True, lines)] if fence else _prose(lines)


def code_of(snippet: str) -> list[str]:
    """The lines of the first code in a snippet's Markdown; none where it is prose alone."""
    return next((lines for is_code, lines in snippet_parts(snippet) if is_code), [])


def _closes(line: str, run: str) -> bool:
    mark = line.strip(" ")
    return len(line) - len(line.lstrip(" ")) < 4 and len(mark) >= len(run) and set(mark) == {run[0]}  # noqa: PLR2004


def _prose(lines: list[str]) -> Iterator[tuple[bool, list[str]]]:
    text = all_lines("\n".join(lines))
    if text:
        yield False, text
