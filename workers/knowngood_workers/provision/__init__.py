"""Environments of a build: resolved, fetched, put together, proved, cached."""
