"""The query language of the matrix: its text, what it selects."""
