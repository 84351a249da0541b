"""Gaps of the measurements, and claims upstream that contradict them."""
