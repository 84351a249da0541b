"""Commands that serve the dashboard, run a fleet, and tell other machines."""

import click

from knowngood.cli.lazy import command, group
from knowngood.cli.options import (
    AS_JSON,
    BUILDS,
    FILE,
    HOST,
    NODE_IP,
    PATH,
    PORT,
    argument,
    flag,
    option,
    text,
)

UP = command(
    "knowngood.measure.up:up",
    "Migrate, load catalogue and shipped results, serve the dashboard, then measure the default set here, live.",
    HOST,
    PORT,
    BUILDS,
    flag("--once", help_="End when everything is measured, instead of serving on."),
    example="up --port 8080",
)
SERVE = command(
    "knowngood.commands.serve:serve",
    "Serve the dashboard and the API.",
    HOST,
    PORT,
    option("--processes", type=click.IntRange(1, 64), help="How many answer side by side; 1 unless set."),
    example="serve --host 0.0.0.0 --processes 4",
)
DISPATCH = command(
    "knowngood.measure.dispatch:dispatch",
    "Run queued jobs until stopped, here or on a fleet. One dispatcher works at a time; a second waits.",
    flag("--migrate", "migrate_first", help_="Migrate and load the catalogue first."),
    flag("--until-idle", help_="End once nothing is queued."),
    text("--ray", "Lead a fleet: HOST:PORT of its head, or local-head[:PORT].", "ADDRESS"),
    NODE_IP,
    option(
        "--where",
        multiple=True,
        metavar="CONDITION",
        help="Only machines with a label: LABEL=VALUE or LABEL>=NUMBER.",
    ),
    example="dispatch --ray local-head --where 'gpus>=1'",
)
WORKER = command(
    "knowngood.health.fleet.cli:worker",
    "Join a fleet and measure for it, until asked to stop. No database and no token of the server is needed here.",
    option("--ray", required=True, metavar="HOST:PORT", help="The head of the fleet."),
    NODE_IP,
    option(
        "--cpu-jobs",
        type=click.IntRange(min=0),
        default=1,
        help="Jobs of the CPU class at once; 0 on a machine for GPUs.",
    ),
    flag("--print", "print_", help_="Start nothing; print what `ray start` must be given here, for a shell."),
    argument("further", "More for `ray start`.", nargs=-1, metavar="[-- OPTIONS]"),
    example="worker --ray head.example:6379",
)
PUSH = command(
    "knowngood.share.bundles.cli_push:push",
    "Send bundles of results to a server. What it has already it knows, so this may be broken off and begun again.",
    argument("files", "Bundles of results, such as `run -o` and packs write.", nargs=-1, required=True, type=PATH),
    option("--server", required=True, metavar="URL", help="Such as https://knowngood.example.org."),
    option(
        "--token-file",
        type=FILE,
        help="A file that holds a token with the scope submit; without: KNOWNGOOD_TOKEN.",
    ),
    option(
        "--tries",
        type=click.IntRange(1, 1000),
        default=5,
        help="How often to try a server that does not answer.",
    ),
    example="push --server https://knowngood.example.org results.jsonl.gz",
)

_TOKENS = "knowngood.commands.token"
TOKEN = group(
    "Make, list and revoke the tokens that writes (and closed reads) ask for.",
    create=command(
        f"{_TOKENS}:create",
        "Make a token. It is shown this once: only its digest is stored. `triage` includes `read`, `admin` everything.",
        option("--name", required=True, help="Who holds it: what evidence and the audit log will call them."),
        option(
            "--scope",
            multiple=True,
            required=True,
            metavar="NAMES",
            help="read, submit, triage, admin; repeated or comma-separated.",
        ),
        text(
            "--expires",
            "When it ends: 90d, 12h, 4w, a date such as 2027-01-31 (its last day), or never.",
            "TIME",
            default="90d",
        ),
        example="token create --name ci --scope submit",
    ),
    list=command(
        f"{_TOKENS}:tell_all", "All tokens there ever were, without their secrets.", AS_JSON, example="token list"
    ),
    revoke=command(
        f"{_TOKENS}:revoke",
        "End a token, and every session that was opened with it, at once.",
        argument("name", "Its name, or the kg_... that `token list` shows."),
        example="token revoke ci",
    ),
)
