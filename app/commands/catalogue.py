"""`knowngood check` and `new-issue`: the files of the catalogue."""

from collections.abc import Sequence
from pathlib import Path

from knowngood.app.catalogue import scaffold
from knowngood.app.catalogue.hostile_text import refuse_slow_signatures
from knowngood.app.catalogue.loader import read_catalogue
from knowngood.app.catalogue.problems import CatalogueProblems
from knowngood.app.cli.exit_codes import Exit
from knowngood.app.cli.output import out
from knowngood.app.domain.issue import Comparison
from knowngood.app.settings import read_settings


def check(folders: Sequence[Path]) -> Exit:
    asked = list(folders or read_settings().folders)
    try:
        catalogue = read_catalogue(asked)
        refuse_slow_signatures(asked, catalogue.issues)
    except CatalogueProblems as found:
        for problem in found.problems:
            out.print(str(problem), markup=False, soft_wrap=True)
        out.print(f"{len(found.problems)} problems")
        return Exit.FINDING
    out.print(f"{len(catalogue.issues)} issues and {len(catalogue.builds)} builds, no problems")
    told = [rule.compare for issue in catalogue.issues for rule in issue.observed.values()]
    if told:
        ignored = told.count(Comparison.IGNORE)
        others = f"{len(told) - ignored} in a way of their own"
        out.print(f"{ignored} observed values are not compared with the control's, {others}", soft_wrap=True)
    return Exit.OK


def new_issue(id_: str, title: str, folder: Path) -> None:
    made = scaffold.new_issue(folder, id_, title)
    out.print(f"{made}: now write issue.toml and repro.py, then run `knowngood check {folder}`", soft_wrap=True)
