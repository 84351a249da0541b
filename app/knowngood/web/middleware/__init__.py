"""Limits on requests: rates, bodies, connections, headers."""
