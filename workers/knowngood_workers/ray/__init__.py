"""Jobs to the machines of a Ray cluster."""
