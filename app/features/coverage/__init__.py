"""What is not measured, and which claims upstream contradict measurements."""
