"""What is to be measured, by whom, at which level of isolation."""
