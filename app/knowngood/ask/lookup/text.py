"""Issues and environments for a terminal and a log: plain text, the answer first."""

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from urllib.parse import parse_qsl, urlsplit

from knowngood.ask.lookup.service import EnvironmentAnswer, IssueAnswer, has_workaround
from knowngood.ask.reading import HitKind
from knowngood.ask.search.service import Hit, SearchAnswer
from knowngood.cli.encoding import SCREEN
from knowngood.domain.issue import Issue, Link
from knowngood.domain.message import clauses, english
from knowngood.domain.verdicts.claims import doubts_about
from knowngood.domain.verdicts.known import Known
from knowngood.domain.verdicts.verdict import Verdict
from knowngood.domain.vocabulary import many
from knowngood.gate.decision import Reason
from knowngood.gate.question import FAILURES, UNKNOWN
from knowngood.gate.renderers.common import (
    age_in_words,
    best_workaround,
    fix_in_words,
    mark_of,
    named,
    not_tried,
    one_line,
    sign_of,
    snippet_parts,
    wrapped,
)
from knowngood.gate.renderers.text import (
    by_class,
    fact_lines,
    fitting,
    help_lines,
    note_lines,
    snippet_in_short,
    workaround_lines,
)

_INDENT = "    "


def issue_text(answer: IssueAnswer, *, in_full: bool = True) -> str:
    """The answer for the environment and what to do there, then what the issue is, and where it fails; all of it, or
    as much as fits on a screen.
    """
    issue, ruling = answer.issue, answer.ruling
    about = [["", *_heading(issue)], list(_lifespan(answer)), list(_summary(issue))]
    first, found = [*wrapped(one_line(_issue_first(answer))), *_left(issue)], list[list[str]]()
    for reason in ruling.reasons if ruling.build else ():
        help_ = [*help_lines(reason), *_elsewhere(reason)] if not found or reason.verdict in FAILURES else []
        found.append(["", *help_, *_grounds(reason)])
    for id_, cost in answer.costs.items():
        about.append(wrapped(one_line(f"{id_}: {english(cost.in_words)}"), _INDENT, _INDENT * 2))
    blocks = [*found, *about] if in_full else [*found[:1], *about, *found[1:]]
    last = [*([] if answer.is_example else note_lines(ruling.notes)), "Each cell: --json"]
    lines, shown = fitting(blocks, len(blocks) * SCREEN * SCREEN if in_full else SCREEN - len(first) - len(last))
    return "\n".join([*first, *lines, *last]) + ("" if shown == len(blocks) else ". Everything: --all") + "\n"


def _issue_first(answer: IssueAnswer) -> str:
    """The answer in one sentence: what the issue does there, and what fixes it."""
    ruling = answer.ruling
    reason = next((one for one in ruling.reasons if one.verdict in FAILURES), next(iter(ruling.reasons), None))
    if not ruling.build or reason is None:
        facts = "".join(f"{_begun(refusal.why)}. " for refusal in ruling.refusals)
        near = ", ".join(map(named, ruling.nearest)) or "none"
        return f"{facts}Not known on this environment ({ruling.asked}); nearest tested: {near}."
    word = mark_of(reason).word
    where = f"on {named(ruling.build)}"
    if answer.is_example:
        is_affected = reason.verdict in FAILURES
        which = "the newest build that is affected" if is_affected else "affected on no measured build; the newest one"
        where = f"{where} ({which}; -r FILE or --build asks about yours)"
    fix = fix_in_words(reason)
    return f"{_begun(word)}{',' if ',' in word else ''} {where}{f'; {fix}' if fix else ''}."


def _grounds(reason: Reason) -> Iterator[str]:
    grounds = " · ".join([one_line(reason.why), named(reason.hardware), *filter(None, [age_in_words(reason)])])
    yield from wrapped(f"{sign_of(reason):<3} {grounds}", later=_INDENT)


def _elsewhere(reason: Reason) -> Iterator[str]:
    if reason.elsewhere:
        yield from wrapped(f"workaround not verified here; works on {named(reason.works_on)}:", _INDENT, _INDENT)
        yield from workaround_lines(reason.elsewhere)


def _heading(issue: Issue) -> Iterator[str]:
    yield from wrapped(f"{issue.id} · {one_line(issue.title)}", later=_INDENT)
    silent = ": wrong numbers, no error" if issue.silent else ""
    yield f"{_INDENT}{one_line(issue.component)} · {issue.severity} severity{silent}"
    if issue.report:
        yield f"{_INDENT}upstream: {_thread(issue.report)}"
    if issue.caveat:
        yield f"{_INDENT}{issue.caveat}"


def _left(issue: Issue) -> Iterator[str]:
    for left in issue.left:
        how = f"measured as {left.variant}" if left.variant else f"not covered: {left.why_not}"
        where = f" on torch {left.applies_to}" if left.applies_to else ""
        yield from wrapped(one_line(f"left wrong{where}: {left.what} ({how})"), _INDENT, _INDENT * 2)


def _thread(link: Link) -> str:
    """A state is upstream's word of one day."""
    seen = f", looked at on {link.seen}" if link.seen else ""
    return one_line(link.url) + (f" ({link.state}{seen})" if link.state else " (its state was not looked up)")


def _summary(issue: Issue) -> Iterator[str]:
    """The first paragraph; the page has all of them."""
    _, lines = next(snippet_parts(issue.summary.strip().split("\n\n")[0]), (False, []))
    yield from wrapped(one_line(" ".join(lines)))


def _lifespan(answer: IssueAnswer) -> Iterator[str]:
    """Where it fails, with what upstream says otherwise."""
    histories = answer.histories.items()
    yield from by_class(
        {class_: clauses([one.sentence, *doubts_about(answer.issue, one)]) for class_, one in histories}
    )
    if not histories:
        yield "not measured yet"


def environment_text(answer: EnvironmentAnswer, *, in_full: bool = False) -> str:
    """The answer, what it holds for, then what fails, worst first: as much of it as fits on a screen, or all of it."""
    ruling = answer.ruling
    first = [*wrapped(one_line(_first(answer))), "", *_facts_of(answer)]
    notes = list(note_lines(ruling.notes))
    if not ruling.build or any(refusal.hardware for refusal in ruling.refusals):
        return "\n".join([*first, *notes]) + "\n"
    rest = [*_counted(answer), *notes]
    full = [*first, *(line for reason in answer.of(*FAILURES) for line in ("", *_failing(reason)))]
    full += ["", *_others(answer), *rest, "More of one: knowngood issue ID"]
    if in_full or len(full) <= SCREEN:
        return "\n".join(full) + "\n"
    failing = answer.failing
    lines, shown = fitting(map(list, map(_in_short, failing)), SCREEN - len(first) - len(rest) - len(["", "", "left"]))
    left = [f"{len(failing) - shown} more: --all. More of one: knowngood issue ID"] if shown < len(failing) else []
    return "\n".join([*first, "", *lines, *left, "", *rest] if failing else [*first, "", *rest]) + "\n"


def _first(answer: EnvironmentAnswer) -> str:
    """The answer in one sentence, with the numbers that decide."""
    ruling = answer.ruling
    several = f"{len(ruling.refusals)} facts of wheels rule this environment out" if len(ruling.refusals) > 1 else ""
    refused = _begun(several or "; ".join(refusal.why for refusal in ruling.refusals))
    if not ruling.build:
        return f"{refused and f'{refused}. '}What fails here is not known: no tested build is this environment."
    if any(refusal.hardware for refusal in ruling.refusals):
        return f"{refused}. Nothing is known to run on this GPU."
    failing, unknown = answer.failing, answer.counts["not_known"]
    sentence = f"no known issue fails here, and {unknown} are not known"
    if not (failing or answer.counts["passing"]):
        sentence = f"what fails here is not known: none of {unknown} issues was run on this hardware"
    if failing:
        where = "here" if answer.counts["run"] else "here, by what the CPU does: nothing was run on this hardware"
        sentence = (
            f"{many(len(failing), 'known issue')} {'fails' if len(failing) == 1 else 'fail'} {where}, "
            f"{answer.counts['silent']} with wrong numbers and no error, "
            f"{sum(map(has_workaround, failing))} with a workaround that works here; {unknown} are not known"
        )
    return f"{refused}. Apart from that {sentence}." if refused else f"{_begun(sentence)}."


def _begun(sentence: str) -> str:
    """With a capital, unless it begins with a package and its version: `torch 2.8.0 has no wheel`."""
    return sentence if re.match(r"\S+ \d", sentence) else f"{sentence[:1].upper()}{sentence[1:]}"


def _in_short(reason: Reason) -> Iterator[str]:
    """The issue, and what to do about it."""
    yield from wrapped(f"{sign_of(reason):<3} {one_line(reason.title)} ({one_line(reason.issue)})", later=_INDENT)
    helps = best_workaround(reason)
    if helps:
        yield from snippet_in_short(helps.snippet, f"workaround {helps.how}: {helps.title}")
    elif to_do := [part for part in (not_tried(reason), fix_in_words(reason)) if part]:
        yield from wrapped("; ".join(to_do), _INDENT * 2, _INDENT * 2)


def _counted(answer: EnvironmentAnswer) -> Iterator[str]:
    """The numbers of all that does not fail."""
    parts = {
        "take more memory": answer.counts["bigger"],
        "do more work": answer.counts["more_work"],
        "take longer": answer.counts["slower"],
        "pass": answer.counts["passing"],
        "not known": answer.counts["not_known"],
        "of the answers come from the CPU": answer.counts["from_cpu"],
        "do not apply, or concern packages that are not known to be here": len(_ids(answer.of(Verdict.NOT_APPLICABLE))),
    }
    yield from wrapped(" · ".join(f"{n} {words}" for words, n in parts.items() if n))


def _others(answer: EnvironmentAnswer) -> Iterator[str]:
    """The ids of what is not known and of what passes, and what a pass does not cover."""
    passing = answer.of(Verdict.NOT_AFFECTED)
    yield from [*_listed("not known here", answer.of(*UNKNOWN)), *_listed("pass", passing)]
    for reason in (reason for reason in passing if reason.not_covered):
        yield from wrapped(f"{one_line(reason.issue)} {one_line(reason.why)}", _INDENT, _INDENT)


def _facts_of(answer: EnvironmentAnswer) -> Iterator[str]:
    """The environment as it was understood, and what holds its torch."""
    ruling, resolved = answer.ruling, answer.resolved
    if len(ruling.refusals) > 1:
        for refusal in ruling.refusals:
            yield from wrapped(one_line(refusal.why), "✕   ", _INDENT)
    on = ", ".join(map(named, ruling.hardware))
    yield from wrapped(one_line(" · ".join([ruling.asked, named(ruling.build or "not tested"), on])))
    concerned = ", ".join(f"{name} {version}".strip() for name, version in answer.packages.items())
    beside = f"{len(resolved.packages)} besides torch; issues here concern {concerned or 'none of them'}"
    held = (f"{name} {resolved.packages[name]} asks for torch{bound}" for name, bound in answer.holding.items())
    facts = [
        ("nearest", ", ".join(map(named, ruling.nearest)) + ", not used" if ruling.nearest else ""),
        ("packages", beside if resolved.packages else ""),
        ("held by", "; ".join(held)),
        ("by uv", one_line(english(answer.resolution))),
    ]
    yield from fact_lines(facts)


def _failing(reason: Reason) -> Iterator[str]:
    word = mark_of(reason).word
    yield from wrapped(f"{sign_of(reason):<3} {one_line(reason.issue)} · {one_line(reason.title)}", later=_INDENT)
    inferred = "".join(f"inferred from {named(ground.build)}" for ground in reason.grounds)
    once = "one run" if reason.runs == 1 else ""
    silent = ": wrong numbers, no error" if reason.silent else ""
    where = named(reason.hardware)
    words = (word, f"{reason.severity} severity{silent}", where, inferred, once, reason.caveat)
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
    HitKind.ERROR: "knowngood explain FILE",
    HitKind.ENVIRONMENT: "knowngood env --build {0}",
}


def search_text(answer: SearchAnswer, issues: Sequence[Issue], known: Known, text: str) -> str:
    """The answer to a search: first what is no issue, each with the command that answers it, then the issues."""
    lines = wrapped(english(answer.note)) if answer.note else []
    lines += [f'"{one_line(word)}" was read as "{one_line(meant)}"' for word, meant in answer.read_as.items()]
    blocks = []
    for issue in issues:
        silent = "∆" if issue.silent else " "
        classes = dict.fromkeys(sorted(cell.hardware for cell in known.stored(issue.id)))
        histories = {class_: known.history(issue.id, class_) for class_ in classes}
        measured = {class_: history.sentence for class_, history in histories.items() if history.measured}
        title = wrapped(f"{silent}   {one_line(issue.title)} ({issue.id})", later=_INDENT)
        blocks.append([*title, *(f"{_INDENT}{line}" for line in by_class(measured))])
    others = [line for hit in answer.hits if hit.kind is not HitKind.ISSUE for line in _meant(hit, answer)]
    shown, n = fitting(blocks, SCREEN - len(lines) - len(others[:_OTHERS]) - 2)
    if not issues and not answer.hits:
        lines.append(f'nothing here is about "{one_line(text)}"; `knowngood find --help` says what may be asked')
    elif issues:
        left = f"; {len(issues) - n} more of them: --json" if n < len(issues) else ""
        lines += [f"{many(len(issues), 'issue')}{left}. More of one: knowngood issue ID", *shown]
    elif query_of(answer.hits[0]):
        lines.append("no issue matches")
    return "\n".join([*lines, *others[:_OTHERS]]) + "\n"


_OTHERS = 9  # lines on builds, hardware and commands that answer


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
