"""Charts of what is known: numbers by release, and their geometry."""
