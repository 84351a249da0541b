"""What a toy issue asks for beside torch."""

ANSWER = 42
