"""A package that a toy issue asks for beside torch."""

ANSWER = 42
