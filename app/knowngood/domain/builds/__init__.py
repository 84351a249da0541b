"""A build, its name as people write it, and the packages installed beside it."""
