"""What changed since when: page, API, feed."""
