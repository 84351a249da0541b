"""Who is asked to stop: blocks within each other, and those within a limit."""

import os
import signal

from knowngood.cli.signals import limited, stoppable, wait


def test_a_signal_within_a_block_asks_all_around_it_too() -> None:
    with stoppable() as outer:
        with stoppable() as inner:
            os.kill(os.getpid(), signal.SIGTERM)
            wait(inner)
        assert outer()
        with stoppable() as later:
            assert not later()


def test_a_limit_asks_what_is_within_it_alone() -> None:
    with stoppable() as outer:
        with limited(0.05), stoppable() as inner:
            wait(inner)
        assert not outer()
