"""Write `repros/evidence/answers.json`: which releases fail and pass, by the evidence that stands beside it.

`knowngood check` holds the texts of rows against it. Import the shipped evidence into an empty data folder
(KNOWNGOOD_DATA_DIR) first; what else is known there would count too.
"""

import json
import sys
from collections.abc import Mapping
from datetime import UTC, datetime

from knowngood.catalogue.loader import shipped_catalogue
from knowngood.catalogue.warnings.rows import ANSWERS
from knowngood.cli.context import opened_with_catalogue
from knowngood.domain.verdicts.known import Known
from knowngood.settings import read_settings
from knowngood.store.engine import reading
from knowngood.store.knowledge.loader import load_known


def answers(known: Known) -> Mapping[str, Mapping[str, Mapping[str, list[str]]]]:
    """By issue and hardware class, the releases that fail and those that pass, oldest first."""
    found: dict[str, dict[str, dict[str, list[str]]]] = {}
    for issue in sorted(known.issues):
        for class_ in known.hardware:
            history = known.history(issue, class_)
            if history.measured:
                told = {"fails": True, "passes": False}
                names = {
                    key: [one.name for one in history.releases if one.fails is fails] for key, fails in told.items()
                }
                found.setdefault(issue, {})[class_] = names
    return found


def answers_text(known: Known) -> str:
    """One line for each issue and class, so that a change of one is a change of one line."""
    issues = (
        f"  {json.dumps(issue)}: {{\n"
        + ",\n".join(f"    {json.dumps(class_)}: {json.dumps(one)}" for class_, one in classes.items())
        + "\n  }"
        for issue, classes in answers(known).items()
    )
    return "{\n" + ",\n".join(issues) + "\n}\n"


if __name__ == "__main__":
    with reading(opened_with_catalogue(read_settings())) as session:
        text = answers_text(load_known(session, datetime.now(UTC)))
    file = shipped_catalogue() / ANSWERS
    file.write_text(text, encoding="utf-8")
    sys.stdout.write(f"wrote {file}\n")
