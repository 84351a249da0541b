"""The front door: what a stranger, or somebody with a build, has to know first."""
