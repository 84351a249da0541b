"""One issue, a search among them, and one environment: answered where somebody stands, in a terminal."""
