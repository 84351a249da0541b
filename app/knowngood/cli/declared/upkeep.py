"""Commands that keep the store: its tables, and what counts in it."""

import click

from knowngood.cli.lazy import command
from knowngood.cli.options import AS_JSON, FILE_HERE, argument, flag, option, text

_DAYS = click.FloatRange(min=0)

MIGRATE = command(
    "knowngood.commands.migrate:migrate",
    "Bring the database to this release's tables; safe while others use it, and where there is nothing to do.",
    example="migrate",
)
IMPORT = command(
    "knowngood.share.bundles.cli:take_in",
    "Take in bundles of results; a second time changes nothing. Ends in 4 where something else stands here under a "
    "number than what they say.",
    argument("files", "Bundles of results.", nargs=-1, required=True, type=FILE_HERE),
    example="import knowngood-results.jsonl.gz",
)
PRUNE = command(
    "knowngood.commands.prune:prune",
    "Remove what nothing counts on any more. Evidence that counts stays, however old.",
    option("--older-than", type=_DAYS, default=90, help="Days after which superseded attempts and history go."),
    option("--logs-older-than", type=_DAYS, default=30, help="Days after which their logs go."),
    flag("--dry-run", help_="Tell what would go, and remove nothing."),
    AS_JSON,
    example="prune --older-than 30 --dry-run",
)
RECLASSIFY = command(
    "knowngood.commands.migrate:reclassify",
    "Derive every verdict anew from stored evidence, without running anything, and tell what came out differently.",
    AS_JSON,
    example="reclassify",
)

_DRY_RUN = flag("--dry-run", help_="Say what would change, and change nothing.")
_WHY = "Why, in one line: it stands beside every attempt and in the audit log."
VOID = command(
    "knowngood.health.annotations.cli:void",
    "Keep all results of a worker in a span of time from counting. They stay visible; every cell follows at once.",
    text("--machine", "The digest of a machine, as /workers shows it.", "DIGEST"),
    text("--token", "The name or kg_... of the token that results came through."),
    text("--from", "A day (its beginning, UTC) or 2026-11-20T12:00:00Z; without: ever.", "TIME", "since"),
    text("--to", "A day (its end, UTC) or a time; without: now.", "TIME", "until"),
    option(
        "--clock",
        type=click.Choice(("measured", "received")),
        default="measured",
        help="When it was measured, as the worker says, or when it was received here.",
    ),
    text("--reason", _WHY),
    _DRY_RUN,
    flag("--list", "list_", help_="Print all voids instead, the newest first."),
    AS_JSON,
    example='void --machine 3f2a --from 2026-11-20 --reason "its clock was wrong" --dry-run',
)
UNVOID = command(
    "knowngood.health.annotations.cli:unvoid",
    "Let what was voided count again: every cell is then as it would be had it never been said.",
    argument("id_", "As `knowngood void --list` shows it.", metavar="ID", type=click.IntRange(min=1)),
    option("--reason", required=True, help=_WHY),
    _DRY_RUN,
    AS_JSON,
    example='unvoid 1 --reason "the machine was right"',
)
