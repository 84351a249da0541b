"""Files, locks, and the programs that we start."""
