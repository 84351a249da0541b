"""Which build to move to."""
