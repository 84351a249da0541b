"""How often this process looks for garbage in cycles. What is in none goes at once, as always."""

import gc


def collect_seldom() -> None:
    """Look after 50,000 new objects instead of 700: for whoever runs a process, when it begins.

    A large matrix makes 20,000 objects that are gone with it, and decoded cells stay. As Python does it unasked, every
    eighth of such pages waited up to 100 ms for all of them to be looked through (100 issues x 40 builds, 2026-11-21).
    Of a command that is soon over, a seventh was looking through what it had just imported (`matrix`: 2.3 s of a busy
    processor instead of 2.7; 2026-11-21).
    """
    gc.set_threshold(50_000, 20, 50)


def leave_quickly() -> None:
    """Look through nothing any more: when Python ends it would look through all that is left, before it frees it. That
    was a quarter of a question to the gate (310 ms of a busy processor instead of 230; 2026-11-23).
    """
    gc.freeze()
