"""The `knowngood` command: the table of all commands, and how each of them ends.

0 done, 1 a finding, 2 usage, 3 insufficient evidence, 4 the store or a service cannot be used.
"""

import sys

import click

from knowngood.cli.encoding import write_what_can_be_read
from knowngood.cli.exit_codes import Exit, exit_of
from knowngood.cli.lazy import REMOVED, LazyTable
from knowngood.domain.errors import KnownGoodError
from knowngood.gc_tuning import collect_seldom, leave_quickly

TABLE = {
    "Ask": {
        "env": ("knowngood.ask.lookup.cli", "Say what an environment is, and what fails there."),
        "issue": ("knowngood.ask.lookup.cli", "Say where one issue fails, where it is fixed, and what helps."),
        "explain": ("knowngood.ask.explain.cli", "Say which issue a traceback or log shows, and what helps."),
        "wheels": ("knowngood.ask.wheels.cli", "Say whether there is a wheel, for which GPU and driver."),
        "find": ("knowngood.ask.lookup.cli", "Find issues, builds and hardware by name or by words."),
        "matrix": ("knowngood.matrix.overview.cli", "Print all results as a table."),
        "status": ("knowngood.commands.status", "Say where answers come from here, and how fresh they are."),
    },
    "Choose": {
        "upgrade": ("knowngood.move.upgrade.cli", "Rank newer builds for what you watch."),
        "compare": ("knowngood.move.compare.cli", "Compare two builds, issue by issue."),
        "constraints": ("knowngood.share.constraints", "Print pip constraints of what was measured with a build."),
        "caps": ("knowngood.move.caps.cli", "Say which upper bounds on torch a project still needs."),
    },
    "CI": {
        "gate": ("knowngood.gate.cli", "Say whether an environment may be used, and why."),
        "watch": ("knowngood.gate.watchlists.cli", "Keep watch lists, which the gate can use."),
        "snapshot": ("knowngood.gate.cli_snapshot", "Write what the gate knows to a signed file."),
    },
    "Measure": {
        "run": ("knowngood.measure.run", "Run what is not known yet, and print the matrix."),
        "here": ("knowngood.measure.here", "Run the catalogue inside a Python environment as it is."),
        "try": ("knowngood.measure.scripts.cli", "Run a script of your own on any releases."),
        "try-bump": ("knowngood.measure.projects.cli", "Run your project's tests with another torch."),
        "bisect": ("knowngood.measure.bisection.cli", "Find the build that broke an issue, or fixed it."),
        "next": ("knowngood.measure.scheduling.cli", "Say what is worth measuring next, and why."),
        "costs": ("knowngood.measure.costs", "Measure the time that workarounds take."),
        "recheck": ("knowngood.measure.run", "Measure a random sample of answered cells again."),
        "pack": ("knowngood.measure.pack", "Pack builds and issues for a machine without network."),
        "doctor": ("knowngood.health.worker", "Say whether this machine can measure."),
    },
    "Serve": {
        "up": ("knowngood.measure.up", "Serve the pages, and measure the default set here."),
        "serve": ("knowngood.commands.serve", "Serve the pages and the API."),
        "mcp": ("knowngood.commands.mcp", "Answer agents over standard input and output (MCP)."),
        "dispatch": ("knowngood.measure.dispatch", "Run queued jobs until stopped, here or on a fleet."),
        "worker": ("knowngood.health.worker", "Join a fleet and measure for it."),
        "push": ("knowngood.share.cli", "Send bundles of results to a server."),
        "token": ("knowngood.commands.token", "Make, list and revoke tokens."),
    },
    "Share": {
        "site": ("knowngood.commands.site.command", "Write the pages as files, to read without a server."),
        "export": ("knowngood.share.cli", "Write evidence to a bundle, or the matrix as CSV, OSV, ..."),
        "import": ("knowngood.share.cli", "Import bundles of results."),
    },
    "Catalogue": {
        "check": ("knowngood.commands.catalogue", "Validate the whole catalogue at once."),
        "new-issue": ("knowngood.commands.catalogue", "Scaffold an issue of your own."),
        "discover": ("knowngood.measure.discovery.cli", "Look for new releases of torch and Triton."),
        "hygiene": ("knowngood.health.cli", "List where upstream and the measurements disagree."),
    },
    "Upkeep": {
        "tend": ("knowngood.measure.tend", "Do the daily upkeep: look, measure, publish."),
        "migrate": ("knowngood.commands.maintain", "Bring the database to this release's tables."),
        "prune": ("knowngood.commands.maintain", "Remove old evidence that no longer counts."),
        "reclassify": ("knowngood.commands.maintain", "Derive every verdict again from stored evidence."),
        "void": ("knowngood.health.cli", "Void a worker's results in a span of time."),
        "unvoid": ("knowngood.health.cli", "Let voided results count again."),
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
