"""What a build is, how people write its name, and which packages lie beside it."""
