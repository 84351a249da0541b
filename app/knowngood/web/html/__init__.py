"""Templates, status labels, Markdown, translation."""
