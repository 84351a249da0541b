"""From what a run printed to the verdict of a cell, and from cells to claims and histories."""
