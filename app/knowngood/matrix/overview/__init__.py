"""Issues by builds, as page and JSON."""
