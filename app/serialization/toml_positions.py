"""Where in a TOML text a key stands. `tomllib` reads values only; this finds their lines in a text it has accepted."""

import contextlib
import re
import tomllib
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass

KeyPath = tuple[str | int, ...]

_BLANK = re.compile(r"(?:\s|#[^\n]*)*")
_SPACE = re.compile(r"[ \t]*")
_REST_OF_LINE = re.compile(r"[^\n]*")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_QUOTED_KEY = re.compile(r"\"(?:\\.|[^\"\\\n])*\"|'[^'\n]*'")
_SCALAR = re.compile(
    r'"""(?:\\.|[^\\])*?"""(?:"{0,2})'  # a closing delimiter may follow up to two quotes of its own
    r"|'''.*?'''(?:'{0,2})"
    r'|"(?:\\.|[^"\\\n])*"'
    r"|'[^'\n]*'"
    r"|[^,\]}#\n]+",
    re.DOTALL,
)


@dataclass(frozen=True)
class LineMap:
    """Lines (from 1) of keys, tables and list items, by path: `("link", 0, "url")`."""

    lines: Mapping[KeyPath, int]

    def line_of(self, path: KeyPath) -> int:
        """The line of `path`, else of the nearest table around it, else 1."""
        while path:
            if path in self.lines:
                return self.lines[path]
            path = path[:-1]
        return 1


def map_lines(text: str) -> LineMap:
    """Find the lines of all keys of `text`, which must be TOML that `tomllib` accepts.

    Of a text that is not, the part before the first surprise is mapped; nothing is raised.
    """
    scanner = _Scanner(text.replace("\r\n", "\n"))
    with contextlib.suppress(_SurpriseError, tomllib.TOMLDecodeError):  # the latter of a quoted key
        scanner.scan()
    return LineMap(scanner.lines)


class _SurpriseError(Exception):
    """The text is not the TOML it was said to be."""


class _Scanner:
    """A reader of TOML's outline: keys are noted, values are walked over."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.lines: dict[KeyPath, int] = {}
        self._starts = [0, *(found.end() for found in re.finditer("\n", text))]
        self._counts: dict[KeyPath, int] = {}

    def scan(self) -> None:
        table: KeyPath = ()
        while self._skip(_BLANK) < len(self.text):
            if self.text.startswith("[", self.at):
                table = self._header()
            else:
                self._pair(table)
                self._skip(_REST_OF_LINE)

    def _skip(self, pattern: re.Pattern[str]) -> int:
        found = pattern.match(self.text, self.at)
        if found is None:
            raise _SurpriseError
        self.at = found.end()
        return self.at

    def _take(self, text: str) -> None:
        if not self.text.startswith(text, self.at):
            raise _SurpriseError
        self.at += len(text)

    def _note(self, path: KeyPath, start: int) -> None:
        self.lines.setdefault(path, bisect_right(self._starts, start))

    def _header(self) -> KeyPath:
        start = self.at
        bracket = "[[" if self.text.startswith("[[", self.at) else "["
        self._take(bracket)
        *parents, last = self._keys()
        path: KeyPath = ()
        for key in parents:
            self._note((*path, key), start)
            path = self._newest((*path, key))
        path = (*path, last)
        if bracket == "[[":
            index = self._counts.get(path, 0)
            self._counts[path] = index + 1
            self._note(path, start)
            path = (*path, index)
        self._note(path, start)
        self._skip(_REST_OF_LINE)
        return path

    def _newest(self, path: KeyPath) -> KeyPath:
        """A header below a list of tables speaks of the list's last table."""
        return (*path, self._counts[path] - 1) if path in self._counts else path

    def _keys(self) -> list[str]:
        keys = [self._key()]
        while self._skip(_SPACE) < len(self.text) and self.text[self.at] == ".":
            self.at += 1
            keys.append(self._key())
        return keys

    def _key(self) -> str:
        start = self._skip(_SPACE)
        if self.text.startswith(('"', "'"), start):
            self._skip(_QUOTED_KEY)
            return next(iter(tomllib.loads(f"{self.text[start : self.at]} = 0")))
        self._skip(_BARE_KEY)
        return self.text[start : self.at]

    def _pair(self, table: KeyPath) -> None:
        start = self.at
        path = table
        for key in self._keys():
            path = (*path, key)
            self._note(path, start)
        self._take("=")
        self._skip(_SPACE)
        self._value(path)

    def _value(self, path: KeyPath) -> None:
        if self.text.startswith("[", self.at):
            self._list(path)
        elif self.text.startswith("{", self.at):
            self._inline_table(path)
        else:
            self._skip(_SCALAR)

    def _list(self, path: KeyPath) -> None:
        self._take("[")
        index = 0
        while self._skip(_BLANK) < len(self.text) and self.text[self.at] != "]":
            if self.text[self.at] == ",":
                self.at += 1
                index += 1
                continue
            self._note((*path, index), self.at)
            self._value((*path, index))
        self._take("]")

    def _inline_table(self, path: KeyPath) -> None:
        self._take("{")
        while self._skip(_BLANK) < len(self.text) and self.text[self.at] != "}":
            if self.text[self.at] == ",":
                self.at += 1
                continue
            self._pair(path)
        self._take("}")
