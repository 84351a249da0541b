"""One folder for each question people ask."""
