"""What measures: agents, environments, isolation, dispatch."""
