"""Commands that plan jobs and see them through: what `run`, `up`, `bisect` and the like share is in jobs.py."""
