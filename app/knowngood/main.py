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

_DECLARED = "knowngood.cli.declared"

TABLE = {
    "Look": {
        "matrix": (f"{_DECLARED}.look:MATRIX", "Print what is known now."),
        "issue": (f"{_DECLARED}.look:ISSUE", "Say where one issue fails, where it is fixed, and what helps."),
        "find": (f"{_DECLARED}.look:FIND", "Find issues, builds and hardware by whatever names them."),
        "env": (f"{_DECLARED}.look:ENV", "Say what an environment is, and what fails there."),
        "explain": (f"{_DECLARED}.look:EXPLAIN", "Say which issue a pasted failure is, and what helps."),
        "status": (f"{_DECLARED}.look:STATUS", "Say what answers questions here, and how fresh it is."),
        "site": (f"{_DECLARED}.look:SITE", "Write the pages as files, for whoever looks without a server."),
        "hygiene": (f"{_DECLARED}.look:HYGIENE", "Where upstream's word and the measurements drift apart."),
        "export": (f"{_DECLARED}.look:EXPORT", "Write evidence to a bundle, or the matrix as CSV, OSV, JUnit, ..."),
    },
    "Decide": {
        "gate": (f"{_DECLARED}.decide:GATE", "Say whether an environment may be used, and why."),
        "compare": (f"{_DECLARED}.decide:COMPARE", "Compare two builds, issue by issue."),
        "upgrade": (f"{_DECLARED}.decide:UPGRADE", "Rank newer builds for what you watch."),
        "watch": (f"{_DECLARED}.decide:WATCH", "Keep watch lists, which the gate can be asked with."),
        "snapshot": (f"{_DECLARED}.decide:SNAPSHOT", "Write what the gate knows to a signed file."),
    },
    "Measure": {
        "run": (f"{_DECLARED}.measure:RUN", "Run what is not known yet, and print the matrix."),
        "next": (f"{_DECLARED}.measure:NEXT", "Say what is worth measuring next, and why."),
        "bisect": (f"{_DECLARED}.measure:BISECT", "Find the build that broke an issue, or mended it."),
        "recheck": (f"{_DECLARED}.measure:RECHECK", "Ask cells with an answer, drawn by chance, once more."),
        "here": (f"{_DECLARED}.measure:HERE", "Run the catalogue inside a Python environment as it is."),
        "pack": (f"{_DECLARED}.measure:PACK", "Pack builds and issues for a machine without network."),
        "doctor": (f"{_DECLARED}.measure:DOCTOR", "Say whether this machine is able to measure."),
    },
    "Catalogue": {
        "check": (f"{_DECLARED}.catalogue:CHECK", "Validate the whole catalogue at once."),
        "new-issue": (f"{_DECLARED}.catalogue:NEW_ISSUE", "Scaffold an issue."),
        "discover": (f"{_DECLARED}.catalogue:DISCOVER", "Look for new releases of torch and Triton."),
    },
    "Serve and fleet": {
        "up": (f"{_DECLARED}.serve:UP", "Serve the dashboard, and measure the default set here."),
        "serve": (f"{_DECLARED}.serve:SERVE", "Serve the dashboard and the API."),
        "dispatch": (f"{_DECLARED}.serve:DISPATCH", "Run queued jobs until stopped, here or on a fleet."),
        "worker": (f"{_DECLARED}.serve:WORKER", "Join a fleet and measure for it."),
        "push": (f"{_DECLARED}.serve:PUSH", "Send bundles of results to a server."),
        "token": (f"{_DECLARED}.serve:TOKEN", "Make, list and revoke tokens."),
    },
    "Upkeep": {
        "migrate": (f"{_DECLARED}.upkeep:MIGRATE", "Bring the database to this release's tables."),
        "import": (f"{_DECLARED}.upkeep:IMPORT", "Take in bundles of results."),
        "prune": (f"{_DECLARED}.upkeep:PRUNE", "Remove what nothing counts on any more."),
        "reclassify": (f"{_DECLARED}.upkeep:RECLASSIFY", "Derive every verdict anew from stored evidence."),
        "void": (f"{_DECLARED}.upkeep:VOID", "Keep all results of a worker in a span of time from counting."),
        "unvoid": (f"{_DECLARED}.upkeep:UNVOID", "Let what was voided count again."),
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
