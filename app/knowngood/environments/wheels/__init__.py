"""Facts of wheels: which there are on the public index, and which packages they ask for."""
