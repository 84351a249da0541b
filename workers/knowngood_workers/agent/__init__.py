"""One job: provision, isolate, run each arm, report."""
