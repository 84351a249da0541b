"""`/charts`: what is known as pictures, each with its numbers."""
