"""The queue: runs, jobs, leases, and what workers report."""
