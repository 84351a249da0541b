"""Named lists of what a team watches."""
