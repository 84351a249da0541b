"""Evidence and answers for others: bundles, exports, changes."""
