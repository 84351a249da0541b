"""What explain says of messages that an installation causes, as people posted them.

The threads were gathered before the messages were written down; those of `held_out.txt` by others, who had not seen what
was written, and of addresses that are not among the first.
"""

import re
import tomllib
from collections import Counter
from pathlib import Path

import pytest

from knowngood.ask.explain.messages import shipped_messages
from knowngood.domain.naming.threads import read_thread
from tests.ask.explain.test_threads import Ask, ask, texts_of

__all__ = ["ask"]

HERE = Path(__file__).parent
