"""Threads upstream by what people write for them, and how far apart two words are."""
