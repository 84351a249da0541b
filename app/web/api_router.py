"""The JSON twins of the pages, one resource per file, all under /api/v1."""
