"""The query language of the matrix: text, JSON, what it selects."""
