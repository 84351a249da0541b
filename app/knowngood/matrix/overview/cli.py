"""`knowngood matrix`: what is known now, as a table or as JSON."""

from collections.abc import Sequence
from datetime import UTC, datetime

from knowngood.cli.choice import Chosen, ended, issues_of, select, verdicts
from knowngood.cli.encoding import SCREEN
from knowngood.cli.exit_codes import Exit
from knowngood.cli.knowledge import known_here
from knowngood.cli.lazy import command
from knowngood.cli.options import (
    ANY_SIGNER,
    AS_JSON,
    BUILDS,
    FAIL_ON,
    HARDWARE,
    ISSUES,
    PUBLIC_KEY,
    SNAPSHOT_FILE,
    argument,
    flag,
    text,
)
from knowngood.cli.output import out, print_json
from knowngood.domain.errors import BadRequest
from knowngood.domain.hardware_names import class_named
from knowngood.domain.issue import Issue
from knowngood.domain.issue_selectors import find_issue
from knowngood.domain.verdicts.known import Known
from knowngood.domain.verdicts.matrix import complete
from knowngood.matrix.overview.table import print_cells, print_line, print_matrix
from knowngood.query.cli import read_query_option

_BESIDE_ROWS, _FEWEST = 9, 3  # the lines of a table on a class beside its rows, and the fewest of these


@command(
    "Print how many issues fail on the newest build, and a table of signs; or each cell of one ISSUE.",
    argument(
        "issue",
        "The issue: its id or number, owner/repo#NUMBER, or the address of its report.",
        default="",
        metavar="[ISSUE]",
    ),
    ISSUES,
    BUILDS,
    HARDWARE,
    text("--query", "A query for issues and columns, as in the box of the matrix page."),
    flag("--all", "in_full", help_="Print every issue (for one ISSUE, every reason), not only what fits on a screen."),
    AS_JSON,
    FAIL_ON,
    SNAPSHOT_FILE,
    PUBLIC_KEY,
    ANY_SIGNER,
    example="matrix --builds 2.5.1,2.6.0 --fail-on affected",
)
def matrix(
    *,
    issue: str,
    issues: Sequence[str],
    builds: Sequence[str],
    hardware: Sequence[str],
    query: str,
    in_full: bool,
    as_json: bool,
    fail_on: Sequence[str],
    snapshot: str,
    public_keys: Sequence[str],
) -> Exit:
    failing = verdicts(fail_on)
    condition = read_query_option(query)
    if issue and issues:
        raise BadRequest(f'name the issue once: "{issue}" or --issues')
    known = known_here(snapshot, public_keys)
    chosen_issue = find_issue(issue, known.issues) if issue else None
    classes = tuple(class_named(name, known.hardware) for name in hardware) or known.hardware or _own_hardware()
    named = (chosen_issue,) if chosen_issue else issues_of(known.issues, issues)
    chosen = select(known, condition, named, builds, classes, datetime.now(UTC))
    if query and not chosen.issues and not as_json:
        out.print("no issue matches the query")
    elif chosen_issue and not as_json:
        _show_cells(known, chosen_issue, chosen, in_full=in_full)
    else:
        show(known, chosen, as_json=as_json, in_full=in_full)
    return ended(known, chosen, failing)


def _show_cells(known: Known, issue: Issue, chosen: Chosen, *, in_full: bool) -> None:
    for hardware in chosen.hardware:
        print_cells(out, issue, chosen.builds, hardware, known, in_full=in_full)
    print_line(out, issue.title)
    print_line(out, f"What helps: knowngood issue {issue.id}{'' if in_full else '. Each reason: --all'}")


def _own_hardware() -> tuple[str, ...]:
    from knowngood_workers.host.machine_info import describe_machine

    return describe_machine().hardware[:1]


def show(known: Known, chosen: Chosen, *, as_json: bool, in_full: bool = True) -> None:
    """The matrix of what is chosen; `run` ends with it too."""
    if as_json:
        from knowngood.matrix.schemas import matrix_body

        cells = complete(chosen.issues, chosen.builds, chosen.hardware, known)
        body = matrix_body(chosen.issues, chosen.builds, cells.values(), datetime.now(UTC))
        print_json(body.model_dump(mode="json", exclude={"next"}))
        return
    room = SCREEN // max(len(chosen.hardware), 1) - _BESIDE_ROWS
    for hardware in chosen.hardware:
        print_matrix(out, chosen.issues, chosen.builds, hardware, known, None if in_full else max(room, _FEWEST))
