"""Commands that show what is known."""

from knowngood.cli.lazy import command
from knowngood.cli.options import (
    ANY_SIGNER,
    AS_JSON,
    BUILDS,
    ENVIRONMENT,
    FAIL_ON,
    HARDWARE,
    ISSUES,
    PATH,
    PUBLIC_KEY,
    SNAPSHOT_FILE,
    argument,
    flag,
    option,
    text,
)

MATRIX = command(
    "knowngood.matrix.overview.cli:matrix",
    "Print what is known now: a table of signs, or of one ISSUE each cell with its reason.",
    argument(
        "issue", "Its id or number, owner/repo#NUMBER, or the address of its report.", default="", metavar="[ISSUE]"
    ),
    ISSUES,
    BUILDS,
    HARDWARE,
    text("--query", "Issues and columns, as in the box of the matrix page."),
    AS_JSON,
    FAIL_ON,
    SNAPSHOT_FILE,
    PUBLIC_KEY,
    ANY_SIGNER,
    example="matrix --builds 2.5.1,2.6.0 --fail-on affected",
)
ISSUE = command(
    "knowngood.ask.lookup.cli:issue",
    "Say of one issue what it is, where it fails and is fixed, and what helps in your environment.\n\n"
    "Where none is named (--build, -r, --lock, --here) it is the one that this runs in, if that has torch; else the "
    "newest build that is affected. Ends in 3 where the environment that is named is no tested build.",
    argument("issue", "Its id or number, owner/repo#NUMBER, or the address of its report."),
    *ENVIRONMENT,
    HARDWARE,
    AS_JSON,
    flag("--script", "as_script", help_="Its script alone, as one file: knowngood issue ID --script > repro.py."),
    SNAPSHOT_FILE,
    PUBLIC_KEY,
    ANY_SIGNER,
    example="issue pytorch-151290 --build 2.7.1",
)
FIND = command(
    "knowngood.ask.lookup.cli:find",
    "Find issues, builds and hardware by whatever names them, as the box on every page does.\n\n"
    "An issue in any notation (#151290, pytorch/pytorch#151290, an address), a version, hardware by its name (H100), "
    "words of a title or a message, also misspelt, or a query.",
    argument(
        "words", "An issue, a version, hardware, words, or conditions such as status:affected.", nargs=-1, required=True
    ),
    AS_JSON,
    SNAPSHOT_FILE,
    PUBLIC_KEY,
    ANY_SIGNER,
    example="find 2.5.1 H100 flex_attention",
)
ENV = command(
    "knowngood.ask.lookup.cli:env",
    "Say which tested build an environment is, and what fails there, worst first.\n\n"
    "Where none is named (--build, -r, --lock, --here) it is the one that this runs in, on this machine's hardware. "
    "Ends in 3 where it is no tested build.",
    *ENVIRONMENT,
    HARDWARE,
    AS_JSON,
    SNAPSHOT_FILE,
    PUBLIC_KEY,
    ANY_SIGNER,
    example="env -r requirements.txt",
)
EXPLAIN = command(
    "knowngood.ask.explain.cli:explain",
    "Say which issue a pasted failure is, where it was seen, and what helps on your build.\n\n"
    "Ends 0 where an issue is recognised, 3 where none is surely (the nearest are named), 2 where the text cannot be "
    "read, 4 where the store cannot be used. The text is not stored.",
    argument("file", "A file with a traceback or a log, or - for standard input.", default="-"),
    text("--build", "Your build, where the text does not tell it.", "BUILD"),
    flag("--json", "as_json", help_="Print JSON, as POST /api/v1/errors answers."),
    SNAPSHOT_FILE,
    PUBLIC_KEY,
    ANY_SIGNER,
    example="explain training.log --build 2.6.0+cu124",
)
STATUS = command(
    "knowngood.commands.status:status",
    "Say what answers questions here, and how fresh it is: a server, the local store, what comes with this release.",
    AS_JSON,
    example="status",
)
SITE = command(
    "knowngood.commands.site.command:site",
    "Write the pages as files, with the data as JSON beside them, to be opened from disk or served by any host.\n\n"
    "Without a store they tell the results that come with this release, else the store's together with these. A site "
    "that was made before is replaced; any other folder has to be empty.",
    option("-o", "--output", type=PATH, required=True, help="The folder to write."),
    example="site -o public",
)
HYGIENE = command(
    "knowngood.health.coverage.cli:hygiene",
    "Where upstream's word and the measurements drift apart; ends in 1 where there is anything.",
    ISSUES,
    AS_JSON,
    example="hygiene --issues pytorch-151290",
)
EXPORT = command(
    "knowngood.share.export:export",
    "Write evidence to a bundle that another installation imports, or the matrix in the words of other tools.",
    option(
        "-o",
        "--output",
        type=PATH,
        required=True,
        help="The file to write; - is the standard output, but not for a bundle.",
    ),
    text("--format", "bundle, osv, csv, junit or markdown.", "FORM", "form", default="bundle"),
    ISSUES,
    BUILDS,
    HARDWARE,
    text("--origin", "How a bundle names this store to whoever imports it.", default="knowngood"),
    flag("--all", "everything", help_="Into a bundle: superseded attempts too."),
    example="export --format csv -o matrix.csv",
)
