"""The measuring side: agents, environments, isolation, dispatch."""
