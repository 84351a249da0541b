"""The matrix in the words of other tools: OSV, JUnit, CSV, Markdown, badges."""
