"""The `knowngood` command: the table of all commands, and how each of them ends.

0 done, 1 a finding, 2 usage, 3 insufficient evidence, 4 the store or a service cannot be used.
"""

import sys

import click

from knowngood.cli.encoding import write_what_can_be_read
from knowngood.cli.exit_codes import Exit, exit_of
from knowngood.cli.lazy import LazyTable
from knowngood.cli.removed import REMOVED
from knowngood.domain.errors import KnownGoodError
from knowngood.gc_tuning import collect_seldom, leave_quickly

TABLE = {
    "Ask": {
        "env": ("knowngood.ask.lookup.cli:env", "Say what an environment is, and what fails there."),
        "issue": ("knowngood.ask.lookup.cli:issue", "Say where one issue fails, where it is fixed, and what helps."),
        "explain": ("knowngood.ask.explain.cli:explain", "Say which issue a pasted failure is, and what helps."),
        "find": ("knowngood.ask.lookup.cli:find", "Find issues, builds and hardware by name or by words."),
        "matrix": ("knowngood.matrix.overview.cli:matrix", "Print what is known now."),
        "status": ("knowngood.commands.status:status", "Say what answers questions here, and how fresh it is."),
    },
    "Choose": {
        "upgrade": ("knowngood.move.upgrade.cli:upgrade", "Rank newer builds for what you watch."),
        "compare": ("knowngood.move.compare.cli:compare", "Compare two builds, issue by issue."),
    },
    "CI": {
        "gate": ("knowngood.gate.cli:ask", "Say whether an environment may be used, and why."),
        "watch": ("knowngood.gate.watchlists.cli:WATCH", "Keep watch lists, which the gate can be asked with."),
        "snapshot": ("knowngood.gate.cli_snapshot:snapshot", "Write what the gate knows to a signed file."),
    },
    "Measure": {
        "run": ("knowngood.measure.run:run", "Run what is not known yet, and print the matrix."),
        "here": ("knowngood.measure.here:here", "Run the catalogue inside a Python environment as it is."),
        "bisect": ("knowngood.measure.bisect:bisect", "Find the build that broke an issue, or mended it."),
        "next": ("knowngood.measure.scheduling.cli:next_", "Say what is worth measuring next, and why."),
        "recheck": ("knowngood.measure.recheck:recheck", "Ask cells with an answer, drawn by chance, once more."),
        "pack": ("knowngood.measure.pack:pack", "Pack builds and issues for a machine without network."),
        "doctor": ("knowngood.measure.doctor:doctor", "Say whether this machine is able to measure."),
    },
    "Serve": {
        "up": ("knowngood.measure.up:up", "Serve the dashboard, and measure the default set here."),
        "serve": ("knowngood.commands.serve:serve", "Serve the dashboard and the API."),
        "dispatch": ("knowngood.measure.dispatch:dispatch", "Run queued jobs until stopped, here or on a fleet."),
        "worker": ("knowngood.health.fleet.cli:worker", "Join a fleet and measure for it."),
        "push": ("knowngood.share.bundles.cli_push:push", "Send bundles of results to a server."),
        "token": ("knowngood.commands.token:TOKEN", "Make, list and revoke tokens."),
    },
    "Share": {
        "site": ("knowngood.commands.site.command:site", "Write the pages as files, to read without a server."),
        "export": ("knowngood.share.exports.cli:export", "Write evidence to a bundle, or the matrix as CSV, OSV, ..."),
        "import": ("knowngood.share.bundles.cli:take_in", "Take in bundles of results."),
    },
    "Catalogue": {
        "check": ("knowngood.commands.catalogue:check", "Validate the whole catalogue at once."),
        "new-issue": ("knowngood.commands.catalogue:new_issue", "Scaffold an issue."),
        "discover": ("knowngood.measure.discovery.cli:discover", "Look for new releases of torch and Triton."),
        "hygiene": ("knowngood.health.coverage.cli:hygiene", "Where upstream's word and the measurements drift apart."),
    },
    "Upkeep": {
        "migrate": ("knowngood.commands.migrate:migrate", "Bring the database to this release's tables."),
        "prune": ("knowngood.commands.prune:prune", "Remove what nothing counts on any more."),
        "reclassify": ("knowngood.commands.migrate:reclassify", "Derive every verdict anew from stored evidence."),
        "void": ("knowngood.health.annotations.cli:void", "Keep a worker's results in a span of time from counting."),
        "unvoid": ("knowngood.health.annotations.cli:unvoid", "Let what was voided count again."),
    },
}

cli = LazyTable(
    TABLE,
    REMOVED,
    name="knowngood",
    help="Which torch build is known good for the bugs you care about, and what to do on the builds that are not.",
    params=[],
)
click.version_option(package_name="knowngood", message="%(package)s %(version)s", help="Print it.")(cli)


def main() -> None:
    """Run the command line; our own errors end in one sentence and an exit code, never in a traceback."""
    collect_seldom()
    write_what_can_be_read()
    try:
        code = cli.main(prog_name="knowngood", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        code = Exit.USAGE
    except click.UsageError as error:
        code = _refuse(_in_words(error), Exit.USAGE)
    except click.ClickException as error:
        code = _refuse(error.format_message(), Exit.USAGE)
    except click.Abort:
        code = _refuse("stopped", Exit.FINDING)
    except KnownGoodError as error:
        code = _refuse(str(error), exit_of(error))
    leave_quickly()
    raise SystemExit(int(code or Exit.OK))


def _refuse(sentence: str, code: Exit) -> Exit:
    sys.stderr.write(f"knowngood: {sentence}\n")
    return code


def _in_words(error: click.UsageError) -> str:
    command = error.ctx.command_path if error.ctx else "knowngood"
    return f"{error.format_message()}\n{command} --help says what it takes"


if __name__ == "__main__":
    main()
