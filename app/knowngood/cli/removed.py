"""Commands that a release took away: each says for one release what takes its place, and ends in 2."""

REMOVED = {
    "backup": "`knowngood backup` is gone: copy the database with VACUUM INTO or pg_dump, or move "
    "results with `knowngood export --format bundle`",
    "restore": "`knowngood restore` is gone: put a copy of the database in place, or take bundles in "
    "with `knowngood import`",
    "webhook": "`knowngood webhook` is gone: follow /feeds/changes.atom or /api/v1/changes, or run the gate in CI",
    "completion": "`knowngood completion` is gone: --help lists the commands, and COMMAND --help its options",
}
"""By the command's name; those below it go with it."""
