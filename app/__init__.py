"""Known Good: which torch build is known good for the bugs you care about. Runs without a GPU and without torch."""
