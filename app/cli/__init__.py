"""What several commands share: exit codes, context, signals, tables."""
