"""`knowngood hygiene`: where upstream's word and the measurements drift apart."""

from collections.abc import Sequence

from rich.text import Text

from knowngood.cli.choice import issues_of
from knowngood.cli.exit_codes import Exit
from knowngood.cli.knowledge import known_here
from knowngood.cli.lazy import command
from knowngood.cli.options import AS_JSON, ISSUES
from knowngood.cli.output import out, print_json
from knowngood.domain.message import english
from knowngood.health.coverage.rules import HEADINGS, Remark, remarks_of


@command(
    "Where upstream's word and the measurements drift apart; ends in 1 where there is anything.",
    ISSUES,
    AS_JSON,
    example="hygiene --issues pytorch-151290",
)
def hygiene(issues: Sequence[str], *, as_json: bool) -> Exit:
    known = known_here()
    wanted = {issue.id for issue in issues_of(known.issues, issues)}
    remarks = [remark for remark in remarks_of(known) if remark.issue in wanted]
    if as_json:
        print_json([{**vars(remark), "sentence": english(remark.sentence)} for remark in remarks])
    else:
        _print(remarks)
    return Exit.FINDING if remarks else Exit.OK


def _print(remarks: Sequence[Remark]) -> None:
    """One list for each kind of remark, in the order of `MismatchKind`."""
    for trouble, heading in HEADINGS.items():
        group = [remark for remark in remarks if remark.trouble is trouble]
        if group:
            out.print(f"\n[bold]{heading}[/] ({len(group)})")
        for remark in group:
            where = f" ({remark.hardware})" if remark.hardware else ""
            out.print(Text(f"  {remark.issue}{where}: {english(remark.sentence)}"), soft_wrap=True)
    if not remarks:
        out.print("nothing to look at")
