"""Changes of verdicts: page, API, feed."""
