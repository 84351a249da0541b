"""Which PyTorch build is known good for the bugs you care about."""
