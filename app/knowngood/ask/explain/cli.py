"""`knowngood explain`: which known issue a traceback or a log is, from what is known here."""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import click

from knowngood.ask.explain.answer import Explanation, Match, Meaning, Strength, TriedWorkaround
from knowngood.ask.explain.explaining import explain_paste
from knowngood.ask.explain.matcher import make_failure_library
from knowngood.cli.exit_codes import Exit
from knowngood.cli.knowledge import Ground, ground_here
from knowngood.cli.lazy import command
from knowngood.cli.options import ANY_SIGNER, PUBLIC_KEY, SNAPSHOT_FILE, argument, flag, text
from knowngood.domain.builds.plain_names import plain_name
from knowngood.domain.errors import BadRequest, UnknownBuild
from knowngood.domain.message import english
from knowngood.domain.verdicts.verdict import WorkaroundVerdict
from knowngood.environments.log_cleaning import LONGEST
from knowngood.gate.renderers.common import snippet_parts, wrapped
from knowngood.gate.renderers.json import as_json as write_value
from knowngood.gate.renderers.text import by_class, fitting, snippet_in_short
from knowngood.serialization.marks import MARKS

_MOST_BYTES = 64 << 20  # of a file that is read at all
_NAMED, _LINE_SHOWN, _ROOM = 3, 160, 4
_OR = {Strength.SURE: "Or", Strength.POSSIBLE: "Its words fit this too"}


@command(
    "Say which issue a traceback or log shows, where it was seen, and what helps on your build.\n\n"
    "Exit codes: 0 it recognises an issue, or a known installation error; 3 it recognises none for sure, and "
    "names the nearest; 2 the text cannot be read; 4 the store cannot be used. The text is not stored.",
    argument("file", "A file with a traceback or a log, or - for standard input.", default="-"),
    text("--build", "Your build, if the text does not name it.", "BUILD"),
    flag("--json", "as_json", help_="Print JSON, as POST /api/v1/errors answers."),
    SNAPSHOT_FILE,
    PUBLIC_KEY,
    ANY_SIGNER,
    example="explain training.log --build 2.6.0+cu124",
)
def explain(*, file: str, build: str, as_json: bool, snapshot: str, public_keys: Sequence[str]) -> Exit:
    body = explain_here(_read(file), build, ground_here(snapshot, public_keys))
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
        raise BadRequest(f"{file} cannot be read: {error.strerror}; give a file, or - and the text as input") from None
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


def explain_here(text: str, build: str, ground: Ground) -> Explanation:
    """By what comes with this release, and by the own store where there is one."""
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
    """The answer, what to do, the grounds, and the way to the rest."""
    yield from (line for message in body.wheel for line in wrapped(english(message)))
    meanings = list(body.meanings)
    if body.sure:
        yield from _match(body.sure, body.build)
    elif meanings and (body.known or not body.matches):
        yield from _meaning(meanings.pop(0))
    else:
        yield from _unknown(body)
    others = [match for match in body.matches if match is not body.sure] if body.known else []
    for match in others[:_NAMED]:
        yield from wrapped(f"{_OR[match.strength]} {match.issue}: {match.title}.", later="  ")
        yield from (line for cure in helping(match)[:1] for line in snippet_in_short(cure.body, cure.title))
    for meaning in meanings:
        yield from [*wrapped(f"{_OR[meaning.strength]}: {meaning.title}.", later="  "), f"    {meaning.command}"]
    for issue in body.untried:
        yield f"The signature of {issue} took too long to look for in so large a text; give the traceback alone."
    if body.left_out:
        yield f"{body.left_out:,} characters of the middle were left out."
    if read := ", ".join(f"{version.name} {plain_name(version.value)}" for version in body.versions):
        yield from wrapped(f"Read in it: {read}.", later="  ")
    if body.note:
        yield from wrapped(f"{'Assumed' if body.build else 'Your build'}: {english(body.note)}.", later="  ")


def _meaning(meaning: Meaning) -> Iterator[str]:
    first = meaning.title if meaning.strength is Strength.SURE else f"Perhaps: {meaning.title} (possible)"
    yield from [*wrapped(f"{first}."), "", f"    {meaning.command}", ""]
    decides = f"{meaning.symbol}: {english(meaning.exports)}." if meaning.symbol else meaning.fact
    for words in (meaning.cause, decides, meaning.unless):
        yield from wrapped(words)
    yield from wrapped(f"Recognised by: {meaning.line[:_LINE_SHOWN]}", later="  ")
    yield from wrapped(f"As said in {', '.join(meaning.sources)}; not run here.")


def _match(match: Match, build: str | None) -> Iterator[str]:
    yield from [*wrapped(f"This is {match.issue}: {match.title}."), *wrapped(english(match.to_do))]
    cures = helping(match)
    for is_code, lines in snippet_parts(cures[0].body) if cures else ():
        yield from ["", *(f"    {line}".rstrip() for line in lines), ""] if is_code else wrapped(" ".join(lines))
    if cures[1:]:
        yield from ["or", *fitting((list(snippet_in_short(cure.body, cure.title)) for cure in cures[1:]), _ROOM)[0]]
    here = match.here if match.here != match.cures_on else None
    if here:
        once = ", 1 run" if here.runs == 1 else ""
        found = f"{MARKS[here.verdict].word}{once} ({english(here.reason)})"
        yield from wrapped(f"On {plain_name(here.build)}: {found}.", later="  ")
    elif match.cures_on and match.cures_on.build != build:
        yield from wrapped(f"Run on {plain_name(match.cures_on.build)}, not measured where you are.")
    yield from [f"{match.caveat}."] if match.caveat else []
    lit = [f"line {line.number}: {line.text[:_LINE_SHOWN]}" for line in match.around if line.lit]
    yield from wrapped(f"Recognised by {'; '.join([*lit[:1], match.why])}.", later="  ")
    yield from by_class(match.history)
    yield f"More: knowngood issue {match.issue}{f' --build {build}' if build else ''}"


def helping(match: Match) -> list[TriedWorkaround]:
    """Those that work, else those that help in part; where nobody tried any, all."""
    kinds = (WorkaroundVerdict.EFFECTIVE, WorkaroundVerdict.PARTIAL)
    by_kind = ([cure for cure in match.workarounds if cure.verdict is kind] for kind in kinds)
    return next(filter(None, by_kind), [] if match.cures_on else list(match.workarounds))


def _unknown(body: Explanation) -> Iterator[str]:
    """Candidates, and what to do, whatever was found."""
    for match in body.matches[:_NAMED]:
        yield from wrapped(f"Perhaps {match.issue}: {match.title} (possible): {match.why}.", later="  ")
    if body.matches:
        yield from wrapped(english(body.matches[0].to_do))
        return
    yield "Not known here: no issue and no known message of an installation says this."
    if near := "; ".join(f"{issue.issue} ({issue.title})" for issue in (body.silent or body.nearest)[:_NAMED]):
        silent = "You write of wrong results, which raise nothing. " if body.silent else ""
        yield from wrapped(f"{silent}Nearest by words, none a match: {near}.", later="  ")
    yield "Give the whole traceback, from its first line, with the output of: python -m torch.utils.collect_env"
    yield "To make it known: knowngood new-issue pytorch-NUMBER --title TITLE"
