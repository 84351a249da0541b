"""`knowngood doctor`: whether this machine is able to measure."""

from knowngood.cli.context import root
from knowngood.cli.exit_codes import Exit
from knowngood.cli.lazy import command
from knowngood.cli.options import AS_JSON
from knowngood.cli.output import out, print_json
from knowngood.settings import read_settings
from knowngood_workers.agent.doctor import examine

_SIGNS = {"ok": "[green]✓[/]", "warn": "[yellow]![/]", "bad": "[red]✕[/]"}


@command(
    "Say whether this machine can measure, and what to do if not.",
    AS_JSON,
    example="doctor",
)
def doctor(*, as_json: bool) -> Exit:
    settings = read_settings()
    checks = examine(root(settings), at_least=settings.min_isolation, at_most=settings.max_isolation)
    if as_json:
        print_json([vars(check) for check in checks])
    else:
        for check in checks:
            out.print(f"{_SIGNS[check.state]} {check.name}: {check.sentence}", soft_wrap=True)
    return Exit.FINDING if any(check.state == "bad" for check in checks) else Exit.OK
