"""Questions in people's own words: a pasted failure, a name, a search."""
