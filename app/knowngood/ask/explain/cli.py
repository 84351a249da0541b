"""`knowngood explain`: which known issue a traceback or a log is, from what is known here."""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import click

from knowngood.ask.explain.answer import Explanation, Match, Meaning, NearIssue, Strength
from knowngood.ask.explain.explaining import explain_paste
from knowngood.ask.explain.matcher import make_failure_library
from knowngood.cli.exit_codes import Exit
from knowngood.cli.knowledge import Ground, ground_here
from knowngood.cli.lazy import command
from knowngood.cli.options import ANY_SIGNER, PUBLIC_KEY, SNAPSHOT_FILE, argument, flag, text
from knowngood.domain.errors import BadRequest, UnknownBuild
from knowngood.domain.message import english
from knowngood.domain.verdicts.verdict import WorkaroundVerdict
from knowngood.environments.log_cleaning import LONGEST
from knowngood.gate.renderers.json import as_json as write_value
from knowngood.serialization.marks import MARKS

_MOST_BYTES = 64 << 20  # of a file that is read at all
_SEEN_SHOWN = 6


@command(
    "Say which issue a pasted failure is, where it was seen, and what helps on your build.\n\n"
    "Ends 0 where an issue is recognised, or a message of an installation, 3 where none is surely (the nearest are "
    "named), 2 where the text cannot be read, 4 where the store cannot be used. The text is not stored.",
    argument("file", "A file with a traceback or a log, or - for standard input.", default="-"),
    text("--build", "Your build, where the text does not tell it.", "BUILD"),
    flag("--json", "as_json", help_="Print JSON, as POST /api/v1/errors answers."),
    SNAPSHOT_FILE,
    PUBLIC_KEY,
    ANY_SIGNER,
    example="explain training.log --build 2.6.0+cu124",
)
def explain(*, file: str, build: str, as_json: bool, snapshot: str, public_keys: Sequence[str]) -> Exit:
    body = _explain(_read(file), build, ground_here(snapshot, public_keys))
    if as_json:
        click.echo(json.dumps(body, ensure_ascii=False, indent=2, default=write_value))
    else:
        click.echo("\n".join(_lines(body)))
    return Exit.OK if body.known else Exit.INSUFFICIENT


def _read(file: str) -> str:
    """The reader of a text cuts one that is longer than a paste may be; a far longer one is refused."""
    try:
        with sys.stdin.buffer if file == "-" else Path(file).open("rb") as stream:
            data = stream.read(_MOST_BYTES + 1)
    except OSError as error:
        raise BadRequest(f"{file} cannot be read: {error.strerror}") from None
    if len(data) > _MOST_BYTES:
        raise BadRequest(
            f"{file} is larger than {_MOST_BYTES >> 20} MiB, and {LONGEST:,} characters of it would be read; "
            "cut it (tail -n 2000)"
        )
    if not data.strip():
        raise BadRequest(f"{file} is empty; give a traceback or a log")
    if b"\0" in data:
        raise BadRequest(
            f"{file} holds a NUL byte; this is no text file (PowerShell's > writes UTF-16: save it as UTF-8)"
        )
    return data.decode(errors="replace")


def _explain(text: str, build: str, ground: Ground) -> Explanation:
    own = _stored_failures() if ground.has_store else {}
    knowledge = ground.knowledge
    library = make_failure_library(knowledge.known.issues.values(), {**ground.recorded.failures, **own})
    try:
        return explain_paste(text, library, knowledge, build)
    except UnknownBuild as error:
        raise BadRequest(f"build: {error}") from None


def _stored_failures() -> Mapping[str, Sequence[str]]:
    from knowngood.ask.explain.store import failures_in
    from knowngood.cli.context import opened
    from knowngood.settings import read_settings

    return failures_in(opened(read_settings()))


# -- words -------------------------------------------------------------------------------------------------------------


def _lines(body: Explanation) -> Iterator[str]:
    yield from (f"Note: {english(message)}" for message in body.wheel)
    yield _verdict(body)
    yield from (f"  {version.name} {version.value}   ({version.line})" for version in body.versions)
    yield (
        f"Build: {body.build}" + (f" ({english(body.note)})" if body.note else "")
        if body.build
        else f"Build: {english(body.note)}"
    )
    for meaning in body.meanings:
        yield ""
        yield from _meaning(meaning)
    for match in body.matches:
        yield ""
        yield from _match(match, body.build)
    for issue in body.untried:
        yield f"The signature of {issue} took too long to look for in so large a text; give the traceback alone."
    if body.left_out:
        yield f"{body.left_out:,} characters of the middle were left out."
    yield ""
    if body.sure:
        yield f"What to do: {english(body.sure.to_do)}"
    elif not body.meanings:
        yield from _unknown(body)


def _verdict(body: Explanation) -> str:
    if body.known:
        return f"We know this one: {body.sure.issue if body.sure else body.meanings[0].title}"
    may_be = body.matches or body.meanings
    return "It may be one of these; the words are common." if may_be else "We do not know this one."


def _meaning(meaning: Meaning) -> Iterator[str]:
    yield meaning.title + ("" if meaning.strength is Strength.SURE else "  (possible)")
    yield f"  > {meaning.line}"
    if meaning.symbol:
        yield f"  {meaning.symbol}: {english(meaning.exports)}"
    yield f"  {meaning.cause}"
    yield f"    {meaning.command}"
    yield f"  {meaning.fact}"
    if meaning.unless:
        yield f"  {meaning.unless}"
    yield f"  as said in {', '.join(meaning.sources)}; not run here"


def _match(match: Match, build: str | None) -> Iterator[str]:
    yield f"{match.issue}  {match.title}" + ("" if match.strength == "sure" else "  (possible)")
    if match.report_url:
        yield f"  upstream: {match.report_url}"
    if match.caveat:
        yield f"  {match.caveat}"
    yield f"  {match.why}"
    yield from (f"  > {line.number}: {line.text}" for line in match.around if line.lit)
    yield from (f"  {hardware}: {english(history)}" for hardware, history in match.history.items())
    if match.seen:
        more = f" and {len(match.seen) - _SEEN_SHOWN} more" if len(match.seen) > _SEEN_SHOWN else ""
        yield f"  seen on {', '.join(f'{cell.build} ({cell.hardware})' for cell in match.seen[:_SEEN_SHOWN])}{more}"
    else:
        yield "  not seen on any build here yet"
    if build and match.here is None:
        yield f"  nobody has measured it on {build}"
    elif match.here and match.here != match.cures_on:
        once = ", 1 run" if match.here.runs == 1 else ""
        yield f"  on {match.here.build}: {MARKS[match.here.verdict].word}{once} ({english(match.here.reason)})"
    if match.cures_on:
        known = f"inferred from {inferred}" if (inferred := match.cures_on.inferred_from) else "measured"
        there = "" if match.cures_on.build == build else ", not measured where you are"
        yield f"  workarounds as {known} on {match.cures_on.build} ({match.cures_on.hardware}){there}:"
    elif match.workarounds:
        yield "  workarounds, not measured:"
    for cure in match.workarounds:
        partly = f" ({english(cure.note)})" if cure.verdict is WorkaroundVerdict.PARTIAL else ""
        yield f"    {cure.verdict}: {cure.title}{partly}"
        if cure.verdict is WorkaroundVerdict.EFFECTIVE or match.cures_on is None:
            yield from (f"      {line}" for line in cure.body.strip().splitlines())


def _unknown(body: Explanation) -> Iterator[str]:
    """Ends with what to do, whatever was found."""
    if body.silent:
        yield "You write of wrong results; such issues raise nothing. The nearest of them by their words:"
        yield from map(_near, body.silent)
    if body.nearest:
        yield "Nearest by words (BM25; none of these is a match):"
        yield from map(_near, body.nearest)
    if body.matches:
        yield f"What to do: {english(body.matches[0].to_do)}"
    elif not (body.silent or body.nearest):
        yield "What to do: paste the whole traceback, from its first line, with what torch.utils.collect_env prints."
    yield 'To make it known: knowngood new-issue pytorch-NUMBER --title "WHAT BREAKS" (see repros/README.md)'


def _near(near: NearIssue) -> str:
    thread = f"  {near.report_url}" if near.report_url else ""
    return f"  {near.score:.2f}  {near.issue}  {near.title}  [{' '.join(near.words[:6])}]{thread}"
