"""New releases on the package indexes, as columns of the catalogue."""
