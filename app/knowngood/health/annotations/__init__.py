"""Notes on cells, and voids: evidence that people take back."""
