"""A script's results as a candidate row: the scaffold of `new-issue` with all that running it told."""

import re
from collections.abc import Iterator
from datetime import date
from pathlib import Path

from knowngood.catalogue import scaffold
from knowngood.catalogue.field_types import TITLE_CHARACTERS
from knowngood.domain.errors import BadRequest
from knowngood.domain.issue import SignatureKind
from knowngood.domain.verdicts.outcome import Ending
from knowngood.measure.scripts.report import Report, environment_of
from knowngood.measure.scripts.rules import Result, likeness, sides_of
from knowngood.settings import Settings

_VARYING = re.compile(r"(?:\$\w+)?(?:/[\w.+-]+)+|\S*\d\S*|'[^']*'|\"[^\"]*\"")
_KINDS = {Ending.SIGNALLED: SignatureKind.SIGNAL, Ending.TIMED_OUT: SignatureKind.HANG}


def keep_as_row(settings: Settings, report: Report, id_: str, today: date) -> str:
    """Write the row and the script beside it; gives what to do next, in a sentence. Raises BadRequest where nothing
    fails.
    """
    failing = [run for each, result in report.rows if result in _WANTED for run in each.runs if run.fails]
    if not failing and all(result is not Result.OTHER_OUTPUT for _, result in report.rows):
        raise BadRequest(f"--keep {id_}: no release fails and no output differs, so that there is nothing to keep")
    kind = _KINDS.get(failing[-1].ending, SignatureKind.MESSAGE) if failing else SignatureKind.WRONG_RESULT
    folder = next(iter(settings.catalogue_folders), Path("repros"))
    title = likeness(failing[-1].line, masks=()) if failing else f"{report.script.name} prints other output"
    found = (
        {"words": pattern_of(failing[-1].line).replace("'''", "..."), "signal": failing[-1].signal} if failing else {}
    )
    claims = "".join(_claims(report, today))
    place = scaffold.new_issue(folder, id_, title[:TITLE_CHARACTERS], kind, claims=claims, **found)
    (place / "bug.py").write_text(report.script.text, encoding="utf-8")
    return (
        f"{place}: a candidate with its signature and what was measured. Move what fails from bug.py into repro.py, "
        f"fill in what is marked (docs/writing-a-row.md), then run `knowngood check {folder}`"
    )


_WANTED = (Result.FAILS, Result.COMES_AND_GOES)


def pattern_of(line: str) -> str:
    """The longest part of an error's line that holds no number, no path and nothing quoted."""
    bare = likeness(line, masks=())
    parts = (part.strip(" \t:,;.()[]") for part in _VARYING.split(bare.partition(": ")[2] or bare))
    return re.escape(max(parts, key=len)).replace(r"\ ", " ")


def _claims(report: Report, today: date) -> Iterator[str]:
    """One for each release that fails, in the form of upstream's: about which, and who says so."""
    sides = sides_of(result for _, result in report.rows)
    source = f"knowngood try {report.script.name}, on {environment_of(report)}"
    for each, result in report.rows:
        if sides.get(result):
            about = f"=={each.build.build_id.release}"
            fields = {"text": report.sentence, "source": source, "says": "affected", "about": about}
            lines = (f"{name} = {scaffold.quoted(value)}\n" for name, value in fields.items())
            yield f"[[claim]]\n{''.join(lines)}dated = {today.isoformat()}\n\n"
