"""Everything known, in memory, kept up to date: gate, upgrade, compare, diagnose and matrix read it."""
