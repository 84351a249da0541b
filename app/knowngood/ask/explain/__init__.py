"""A pasted traceback: which issue is it, on which build, and what helps."""
