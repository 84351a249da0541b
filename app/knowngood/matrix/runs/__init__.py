"""Runs, live and past."""
