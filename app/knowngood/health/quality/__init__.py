"""How far the measurements can be trusted: repeated runs, other Pythons, unstable cells."""
