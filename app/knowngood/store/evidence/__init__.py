"""Attempts, the cells they make, and what was said about them later."""
