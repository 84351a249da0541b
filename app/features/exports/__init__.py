"""The matrix in the words of other tools: OSV, KCIDB, JUnit, CSV, Markdown, badges."""
