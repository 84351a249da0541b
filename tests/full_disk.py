"""A disk that is full: the kernel takes no more into a file than it is told."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def no_file_larger_than(most_bytes: int) -> Iterator[None]:
    """For this process. Python ignores the signal that comes with it, so that writing more raises OSError."""
    before, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, most))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (before, most))
