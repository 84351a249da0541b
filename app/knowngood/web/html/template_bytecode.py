"""Compiled templates, kept beside their sources in `__pycache__` on the terms of Python's own bytecode: written where
that may be written, read by whoever may read the source, made anew where anything that they were made of changed.

Of a cold process's first look at a page a third was compiling templates (0.66 s for all of them, 20 ms to read them
back; one core of a shared machine, 2026-11-23).
"""

import hashlib
import sys
from contextlib import suppress
from importlib.util import cache_from_source
from pathlib import Path

import jinja2
from jinja2.bccache import Bucket, FileSystemBytecodeCache

_FOR_ALL = 0o644


class TemplateBytecode(FileSystemBytecodeCache):
    """`made_by` is what compiles beside jinja: a file whose text says how.

    A file is named by its template and Python; that it fits the text of the template, jinja's release and `made_by`
    stands in it. Filters of constants would be called as a template is compiled: a test keeps them out.
    """

    def __init__(self, templates: Path, made_by: Path) -> None:
        folder = Path(cache_from_source(str(templates / "any.py"))).parent
        super().__init__(str(folder), f"%s.jinja.{sys.implementation.cache_tag}")
        self._compiler = f"{jinja2.__version__}\n{made_by.read_text()}"

    def get_source_checksum(self, source: str) -> str:
        return hashlib.sha256(f"{self._compiler}\n{source}".encode()).hexdigest()

    def load_bytecode(self, bucket: Bucket) -> None:
        with suppress(OSError):
            super().load_bytecode(bucket)

    def dump_bytecode(self, bucket: Bucket) -> None:
        if sys.dont_write_bytecode:
            return
        kept = Path(self._get_cache_filename(bucket))
        with suppress(OSError):  # a folder that may only be read, a full disk
            kept.parent.mkdir(parents=True, exist_ok=True)
            super().dump_bytecode(bucket)
            kept.chmod(_FOR_ALL)
