"""Wheels of the public index: is there one, and what to change where there is none."""
