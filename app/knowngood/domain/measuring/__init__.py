"""Planning measurements: what to run, on which worker, at which level of isolation."""
