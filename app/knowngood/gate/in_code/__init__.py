"""Whether an issue concerns the running environment, asked from Python code and from pytest."""
