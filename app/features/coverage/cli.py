"""`knowngood hygiene`, printed."""

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from knowngood.app.features.coverage.hygiene import HEADINGS, Remark


def print_remarks(console: Console, remarks: Sequence[Remark]) -> None:
    """One list for each kind of remark, in the order of `MismatchKind`."""
    for trouble, heading in HEADINGS.items():
        found = [remark for remark in remarks if remark.trouble is trouble]
        if found:
            console.print(f"\n[bold]{heading}[/] ({len(found)})")
        for remark in found:
            where = f" ({remark.hardware})" if remark.hardware else ""
            console.print(Text(f"  {remark.issue}{where}: {remark.sentence}"), soft_wrap=True)
    if not remarks:
        console.print("nothing to look at")
