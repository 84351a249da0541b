"""`knowngood try`: what any script does on releases of torch."""
