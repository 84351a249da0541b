"""Upper bounds and exclusions that a project has on torch: since when, why, and what is measured above them."""
