"""Lock files and lists of packages, as people have them, become a Stated environment."""
