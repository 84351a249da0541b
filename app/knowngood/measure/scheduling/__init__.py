"""The order in which to measure, and what it costs."""
