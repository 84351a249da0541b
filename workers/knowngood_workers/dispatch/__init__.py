"""Jobs from the queue to agents, on this machine or another."""
