"""`knowngood try-bump`: what a project's own tests do when torch moves."""
