"""Attempts, the cells they make, and the notes and voids on them."""
