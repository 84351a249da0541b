"""Several environments, one line for each, the worst first; and where to go from one of them. Apart from the others,
because what advises on an upgrade takes long to import.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from knowngood.ask.lookup.service import EnvironmentAnswer
from knowngood.gate.renderers.common import one_line
from knowngood.gate.request import BadField
from knowngood.move.upgrade.ranking import advise
from knowngood.move.upgrade.request import NO_PACKAGE, UpgradeRequest, read_upgrade, relevant_packages, start_name
from knowngood.store.knowledge.model import Knowledge, Recorded

Row = Mapping[str, Any]
"""The document of an environment with its `file`, and the release to `go_to` (empty: nobody can say, or to stay). Of a
file that cannot be read there is the `problem` alone.
"""


def upgrade_request(answer: EnvironmentAnswer, knowledge: Knowledge, hardware: Sequence[str]) -> UpgradeRequest:
    """All that is stated, as an upgrade is asked for; `hardware` are the words for it."""
    resolved = answer.resolved
    packages = relevant_packages(resolved.packages, knowledge)
    return UpgradeRequest(
        start=start_name(resolved),
        python=resolved.python,
        platform=next(iter(resolved.platforms), ""),
        hardware=tuple(resolved.gpus or hardware),
        driver=resolved.driver,
        has=() if packages == (NO_PACKAGE,) and not resolved.is_whole else packages,
    )


def row_of(file: str, answer: EnvironmentAnswer, knowledge: Knowledge, hardware: Sequence[str]) -> Row:
    request, best = upgrade_request(answer, knowledge, hardware), None
    with suppress(BadField):  # of what is no tested build
        best = advise(read_upgrade(request, knowledge, Recorded()), knowledge.known).best
    torch = (answer.ruling.build or answer.resolved.torch).removeprefix("torch-").partition("+")[0]
    stated = {"torch": torch, "gpus": answer.resolved.gpus, "go_to": best.build.build_id.release if best else ""}
    return {"file": file, **stated, **answer.document}


def worst_first(rows: Iterable[Row]) -> list[Row]:
    """Files that cannot be read, environments that do not load, those that are not tested; the others by what fails."""

    def order(row: Row) -> tuple[object, ...]:
        if "problem" in row:
            return (0,)
        return (1, not row["refusals"], bool(row["build"]), -row["counts"]["silent"], -row["counts"]["failing"])

    return sorted(rows, key=order)


def several_text(rows: Iterable[Row]) -> str:
    cells = [list(map(one_line, _cells(row))) for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = ("   ".join(map(str.ljust, row, widths)).rstrip() for row in cells)
    return "\n".join([*lines, "", "More of one: knowngood env FILE"]) + "\n"


def _cells(row: Row) -> Iterator[str]:
    if "problem" in row:
        yield from (row["file"], "", "", "", row["problem"])
        return
    yield from (row["file"], row["torch"] or "no torch", ", ".join(row["gpus"]))
    yield f"{row['counts']['failing']} ✕ {row['counts']['silent']} ∆" if row["build"] else "not tested"
    broken = [fact.name for fact in row["facts"] if fact.holds is False]
    said = [f"{', '.join(broken)} {'does' if len(broken) == 1 else 'do'} not work here"] if broken else []
    yield "; ".join([*said, *([f"go to {row['go_to']}"] if row["go_to"] else [])])
