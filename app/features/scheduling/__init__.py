"""What to measure next, and what it costs."""
