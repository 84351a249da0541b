"""One box that understands an issue in any notation, a build, hardware, words, a query, an error and an environment."""
