"""Programs that run beside or inside the build under test."""
