"""One cell and one attempt, with the commands that reproduce them."""
