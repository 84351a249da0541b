"""Commands of earlier releases that are gone. Each answers with what takes its place for one release, then goes too."""

REMOVED = {
    "backup": "is gone: copy the database with VACUUM INTO or pg_dump (docs/runbook.md), or move results by `export`",
    "restore": "is gone: put a copy of the database in place (docs/runbook.md), or `import` bundles of results",
    "webhook": "is gone: follow /feeds/changes.atom or /api/v1/changes, or run the gate in CI (docs/ci.md)",
}
"""Name -> the end of a sentence that begins with the command."""
