"""A fork bomb that ends: two processes out of each, eight times."""

import os
import time


def _boom(left):
    for _ in range(2 if left else 0):
        if os.fork() == 0:
            _boom(left - 1)
            time.sleep(600)


def baseline():
    _boom(7)
    time.sleep(600)
