"""Files and locks."""
