"""Signed messages about changes, to addresses that are checked first."""
