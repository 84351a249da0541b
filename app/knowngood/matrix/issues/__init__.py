"""One issue, one build: pages, JSON, workarounds."""
