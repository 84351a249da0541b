"""Builds, wheels and the worker as files for a machine without network."""
