"""`knowngood check` and `new-issue`: the files of the catalogue."""

from collections.abc import Sequence
from pathlib import Path

import click

from knowngood.catalogue import scaffold
from knowngood.catalogue.hostile_text import slow_signatures
from knowngood.catalogue.loader import read_what_is_sound
from knowngood.catalogue.text_files import CatalogueProblems, FileProblem
from knowngood.catalogue.warnings.rows import row_warnings
from knowngood.cli.exit_codes import Exit
from knowngood.cli.lazy import command
from knowngood.cli.options import PATH, argument, flag, option
from knowngood.cli.output import out
from knowngood.domain.issue import Comparison, SignatureKind
from knowngood.settings import read_settings


@command(
    "Validate the whole catalogue at once; problems and warnings come with file and line.",
    argument("folders", "Folders of issues. Default: the shipped ones.", nargs=-1, type=PATH),
    flag("--strict", help_="Also end with 1 if there are warnings without a waiver."),
    example="check repros",
)
def check(folders: Sequence[Path], *, strict: bool) -> Exit:
    places = list(folders or read_settings().folders)
    problems: list[FileProblem] = []
    catalogue = read_what_is_sound(places, problems)
    rows = {issue.id for issue in catalogue.issues} | {problem.file.parent.name for problem in problems}
    problems += slow_signatures(places, catalogue.issues)
    try:
        found_warnings = row_warnings(places, sorted(rows))
    except CatalogueProblems as error:
        problems += error.problems
        found_warnings = ()
    for problem in sorted(set(problems)):
        out.print(str(problem), markup=False, soft_wrap=True)
    if not problems and not catalogue.issues and not catalogue.builds:
        out.print(f"{', '.join(map(str, places))}: no issue and no builds.toml stands here", soft_wrap=True)
        return Exit.FINDING
    warnings = [warning for warning in found_warnings if not warning.reason]
    for warning in warnings:
        out.print(f"warning: {warning}", markup=False, soft_wrap=True)
    waived = len(found_warnings) - len(warnings)
    counts = f"({len(warnings)} warnings, {waived} waived with a reason)"
    if problems:
        out.print(f"{len(set(problems))} problems {counts}")
        return Exit.FINDING
    out.print(f"{len(catalogue.issues)} issues and {len(catalogue.builds)} builds, no problems {counts}")
    rules = [rule.compare for issue in catalogue.issues for rule in issue.observed.values()]
    if rules:
        ignored = rules.count(Comparison.IGNORE)
        others = f"{len(rules) - ignored} in a way of their own"
        out.print(f"{ignored} observed values are not compared with the control's, {others}", soft_wrap=True)
    return Exit.FINDING if warnings and strict else Exit.OK


@command(
    "Scaffold an issue; `knowngood check` then says what is left to write.",
    argument("id_", "<project>-<number>, such as pytorch-151290.", metavar="ID"),
    option("--title", required=True, help="What breaks, in one line."),
    option(
        "--kind",
        type=click.Choice([kind.value for kind in SignatureKind]),
        help="How it fails, if known; selects the scaffold.",
    ),
    option(
        "--folder",
        type=PATH,
        help="The parent of the issue's folder. Default: the first of KNOWNGOOD_CATALOGUE, else repros.",
    ),
    example='new-issue pytorch-151290 --title "Softmax over a mask dies" --kind signal',
)
def new_issue(id_: str, title: str, kind: str | None, folder: Path | None) -> None:
    place = folder or next(iter(read_settings().catalogue_folders), Path("repros"))
    made = scaffold.new_issue(place, id_, title, SignatureKind(kind) if kind else None)
    words = f"{made}: now write issue.toml and repro.py (docs/writing-a-row.md), then run `knowngood check {place}`"
    out.print(words, markup=False, soft_wrap=True)
