"""Workers: who has joined, what they may take, how they fare."""
