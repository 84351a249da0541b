"""Shared by the commands: exit codes, context, signals, tables."""
