"""A whole store as one file, and back, across databases."""
