"""May this environment go out: pass, block, or not enough evidence."""
