"""Commands of earlier releases that are gone. Each answers with what takes its place for one release, then goes too."""

REMOVED = {
    "webhook": "is gone: follow /feeds/changes.atom or /api/v1/changes, or run the gate in CI (docs/ci.md)",
}
"""Name -> the end of a sentence that begins with the command."""
