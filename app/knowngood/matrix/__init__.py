"""The join that is the product: matrix, issue, build, cell, attempt, run."""
