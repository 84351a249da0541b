"""Issues and environments for a terminal and a log: plain text, the answer first."""

import shlex
from collections.abc import Iterable, Iterator, Sequence
from urllib.parse import parse_qsl, urlsplit

from knowngood.ask.lookup.service import EnvironmentAnswer, IssueAnswer
from knowngood.ask.phrases import HitKind
from knowngood.ask.search.service import Hit, SearchAnswer
from knowngood.domain.issue import Issue, Link
from knowngood.domain.message import english
from knowngood.domain.verdicts.claims import doubts_about
from knowngood.domain.verdicts.known import Known
from knowngood.domain.verdicts.verdict import Verdict
from knowngood.gate.decision import Reason, Ruling
from knowngood.gate.question import FAILURES
from knowngood.gate.renderers.common import (
    best_workaround,
    fix_in_words,
    mark_of,
    not_tried,
    one_line,
    particulars,
    snippet_parts,
    wrapped,
)
from knowngood.gate.renderers.text import fact_lines, help_lines, workaround_lines

_INDENT = "    "


def issue_text(answer: IssueAnswer) -> str:
    issue, ruling = answer.issue, answer.ruling
    lines = [*_heading(issue), "", *_summary(issue), "", "Lifespan, by what was measured:", *_lifespan(answer), ""]
    lines += [_whose(answer), *_facts(ruling, with_build=not answer.is_example)]
    for reason in ruling.reasons if ruling.build else ():
        lines += ["", *_reason_lines(reason)]
        lines += _elsewhere(reason)
    if not ruling.build:
        lines += wrapped(f"not known on this environment; nearest tested: {', '.join(ruling.nearest) or 'none'}")
    return "\n".join([*lines, "", f"Each cell with its reason: knowngood matrix {issue.id}"]) + "\n"


def _reason_lines(reason: Reason) -> Iterator[str]:
    sign, _ = mark_of(reason)
    yield from wrapped(f"{sign:<3} {' · '.join(particulars(reason))}", later=_INDENT)
    yield from wrapped(one_line(reason.why), _INDENT, _INDENT)
    yield from help_lines(reason)


def _elsewhere(reason: Reason) -> Iterator[str]:
    if reason.elsewhere:
        yield from wrapped(f"workaround not tried here; works on {one_line(reason.works_on)}:", _INDENT, _INDENT)
        yield from workaround_lines(reason.elsewhere)


def _heading(issue: Issue) -> Iterator[str]:
    yield from wrapped(f"{issue.id} · {one_line(issue.title)}", later=_INDENT)
    silent = ": wrong numbers, no error" if issue.silent else ""
    yield f"{_INDENT}{one_line(issue.component)} · {issue.severity} severity{silent}"
    if issue.report:
        yield f"{_INDENT}upstream: {_thread(issue.report)}"
    if issue.caveat:
        yield f"{_INDENT}{issue.caveat}"
    for left in issue.left:
        how = f"measured as {left.variant}" if left.variant else f"not covered: {left.why_not}"
        where = f" on torch {left.applies_to}" if left.applies_to else ""
        yield from wrapped(one_line(f"left wrong{where}: {left.what} ({how})"), _INDENT, _INDENT * 2)


def _thread(link: Link) -> str:
    """A state is upstream's word of one day."""
    seen = f" when it was looked at on {link.seen}" if link.seen else ""
    return one_line(link.url) + (f" ({link.state}{seen})" if link.state else " (its state was not looked up)")


def _summary(issue: Issue) -> Iterator[str]:
    """The first paragraph; the page has all of them."""
    _, lines = next(snippet_parts(issue.summary.strip().split("\n\n")[0]), (False, []))
    yield from wrapped(one_line(" ".join(lines)))


def _lifespan(answer: IssueAnswer) -> Iterator[str]:
    for hardware, history in answer.histories.items():
        yield from wrapped(f"{one_line(hardware)}: {english(history.sentence)}", "  ", _INDENT)
        for doubt in doubts_about(answer.issue, history):
            yield from wrapped(one_line(english(doubt)), _INDENT, _INDENT)
    if not answer.histories:
        yield "  not measured yet"


def _whose(answer: IssueAnswer) -> str:
    ruling = answer.ruling
    if not answer.is_example:
        return f"In this environment ({one_line(ruling.asked)}):"
    is_affected = any(reason.verdict in FAILURES for reason in ruling.reasons)
    which = "the newest build that is affected" if is_affected else "affected on no measured build; the newest one"
    return f"On {ruling.build} ({which}; -r FILE or --build asks about yours):"


def _facts(ruling: Ruling, *, with_build: bool) -> Iterator[str]:
    """An example's build was chosen here: what would have to be assumed of a stated one says nothing."""
    if with_build:
        yield from fact_lines([("build", ruling.build or "not tested"), *(("note", note) for note in ruling.notes)])


def environment_text(answer: EnvironmentAnswer) -> str:
    ruling = answer.ruling
    lines = [*fact_lines(_facts_of(answer)), ""]
    if not ruling.build:
        return "\n".join([*lines, "What fails here is not known: no tested build is this environment."]) + "\n"
    failing = answer.of(*FAILURES)
    unknown = answer.of(Verdict.NOT_RUN, Verdict.INCONCLUSIVE, Verdict.NO_BUILD)
    issues = len(_ids(failing))
    if any(refusal.hardware for refusal in ruling.refusals):
        return "\n".join([*lines, "Nothing is known to run on this GPU."]) + "\n"
    lines += [f"{issues} issue fails here:" if issues == 1 else f"{issues} issues fail here, worst first:"]
    for reason in failing:
        lines += ["", *_failing(reason)]
    lines += ["", *_listed("not known here", unknown), *_listed("pass", answer.of(Verdict.NOT_AFFECTED))]
    for reason in (reason for reason in answer.of(Verdict.NOT_AFFECTED) if reason.not_covered):
        lines += wrapped(f"{one_line(reason.issue)} {one_line(reason.why)}", _INDENT, _INDENT)
    absent = _ids(answer.of(Verdict.NOT_APPLICABLE))
    lines += [f"{len(absent)} do not apply, or concern packages that are not known to be here"] if absent else []
    return "\n".join([*lines, "", "More of one: knowngood issue ID"]) + "\n"


_REFUSED = {"gpu_not_served": "GPU", "driver_too_old": "GPU", "no_wheel": "no wheel", "pair_refused": "conflict"}


def _facts_of(answer: EnvironmentAnswer) -> Iterator[tuple[str, str]]:
    ruling, resolved = answer.ruling, answer.resolved
    yield from ((_REFUSED[refusal.code], refusal.why) for refusal in ruling.refusals)
    yield "asked", ruling.asked
    yield "build", ruling.build or "not tested"
    yield "nearest", ", ".join(ruling.nearest) + ", not used" if ruling.nearest else ""
    yield "hardware", ", ".join(ruling.hardware)
    concerned = ", ".join(f"{name} {version}".strip() for name, version in answer.packages.items())
    named = f"{len(resolved.packages)} beside torch; issues here concern {concerned or 'none of them'}"
    yield "packages", named if resolved.packages else "nothing is known of those beside torch"
    held = (f"{name} {resolved.packages[name]} asks for torch{bound}" for name, bound in answer.holding.items())
    yield "held by", "; ".join(held)
    yield from (("note", note) for note in ruling.notes)


def _failing(reason: Reason) -> Iterator[str]:
    sign, word = mark_of(reason)
    yield from wrapped(f"{sign:<3} {one_line(reason.issue)} · {one_line(reason.title)}", later=_INDENT)
    inferred = "".join(f"inferred from {one_line(ground.build)}" for ground in reason.grounds)
    once = "one run" if reason.runs == 1 else ""
    silent = ": wrong numbers, no error" if reason.silent else ""
    words = (word, f"{reason.severity} severity{silent}", one_line(reason.hardware), inferred, once, reason.caveat)
    yield from wrapped(" · ".join(part for part in words if part), _INDENT, _INDENT)
    helps = best_workaround(reason)
    to_do = [
        f"workaround {one_line(helps.how)}: {one_line(helps.id)}" if helps else not_tried(reason),
        fix_in_words(reason),
    ]
    yield from wrapped("; ".join(part for part in to_do if part), _INDENT, _INDENT)


def _listed(words: str, reasons: Sequence[Reason]) -> list[str]:
    ids = _ids(reasons)
    return wrapped(f"{len(ids)} {words}: {', '.join(ids)}", later=_INDENT) if ids else []


def _ids(reasons: Iterable[Reason]) -> list[str]:
    return list(dict.fromkeys(one_line(reason.issue) for reason in reasons))


_COMMANDS = {
    HitKind.BUILD: "knowngood env --build {0}",
    HitKind.HARDWARE: "knowngood matrix --hardware {0}",
    HitKind.COMPARE: "knowngood compare {0} {1}",
    HitKind.UPGRADE: "knowngood upgrade --from {0}",
    HitKind.ERROR: "knowngood explain FILE",
    HitKind.ENVIRONMENT: "knowngood env --build {0}",
}


def search_text(answer: SearchAnswer, issues: Sequence[Issue], known: Known, text: str) -> str:
    """The answer to a search: first what is no issue, each with the command that answers it, then the issues."""
    lines = wrapped(english(answer.note)) if answer.note else []
    lines += [f'"{one_line(word)}" was read as "{one_line(meant)}"' for word, meant in answer.read_as.items()]
    for hit in answer.hits:
        if hit.kind is not HitKind.ISSUE:
            lines += _meant(hit, answer)
    for issue in issues:
        silent = ", silent" if issue.silent else ""
        lines += wrapped(f"{issue.id} · {one_line(issue.title)}", later=_INDENT)
        lines.append(f"{_INDENT}{one_line(issue.component)} · {issue.severity} severity{silent}")
        classes = dict.fromkeys(sorted(cell.hardware for cell in known.stored(issue.id)))
        histories = [(class_, known.history(issue.id, class_)) for class_ in classes]
        for class_, history in histories:
            lines += (
                wrapped(f"{class_}: {english(history.sentence)}", _INDENT, _INDENT + "  ") if history.measured else ()
            )
    if not issues and not answer.hits:
        lines.append(f'nothing here is about "{one_line(text)}"; `knowngood find --help` says what may be asked')
    elif issues:
        many = "1 issue" if len(issues) == 1 else f"{len(issues)} issues"
        lines += ["", f"{many}; more of one: knowngood issue ID"]
    elif query_of(answer.hits[0]):
        lines.append("no issue matches")
    return "\n".join(lines) + "\n"


def _meant(hit: Hit, answer: SearchAnswer) -> Iterator[str]:
    command = hit.command or _COMMANDS.get(hit.kind, "").format(*hit.name.split())
    if query := query_of(hit):
        on = f" --hardware {answer.hardware}" if answer.hardware else ""
        command = f"knowngood matrix --query {shlex.quote(query)}{on}"
    if not command:
        return
    yield from wrapped(one_line(". ".join(english(part) for part in (hit.title, hit.told) if part)), later=_INDENT)
    yield f"{_INDENT}{one_line(command)}"


def query_of(hit: Hit) -> str:
    """The query of a part of the matrix, without its hardware; empty where the matrix is asked for by ids."""
    parameters = dict(parse_qsl(urlsplit(hit.url).query)) if hit.kind is HitKind.QUERY else {}
    return "" if "issues" in parameters else parameters.get("q", "")
