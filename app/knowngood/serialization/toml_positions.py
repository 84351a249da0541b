"""Positions of keys in a TOML text. `tomllib` reads values only; this finds their lines in a text it has accepted."""

import contextlib
import re
import tomllib
from bisect import bisect_right
from dataclasses import dataclass, field

KeyPath = tuple[str | int, ...]

# None of these may take more than one look at a character: they read what strangers send.
_BLANK = re.compile(r"\s*(?:#[^\n]*\s*)*")
_SPACE = re.compile(r"[ \t]*")
_REST_OF_LINE = re.compile(r"[^\n]*")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_BARE_VALUE = re.compile(r"[^,\]}#\n]+")
_QUOTED = re.compile(r"[\"'#]")
_TO_ITS_END = re.compile(r"\"[^\"\\\n]*(?:\\[^\n][^\"\\\n]*)*\"?|'[^'\n]*'?|#[^\n]*")
_ENDS = {  # a closing delimiter may follow up to two quotes of its own
    '"""': re.compile(r'\\.|""""{0,2}', re.DOTALL),
    "'''": re.compile(r"''''{0,2}"),
}
_HEADER = re.compile(r"^[ \t]*\[", re.MULTILINE)
_PART = r"(?:[\w-]++|\"\")[ \t]*+\.[ \t]*+"


def _end_of(text: str, at: int) -> int:
    """The end of the string or comment that begins at `at`."""
    ends = _ENDS.get(text[at : at + 3])
    if ends is None:
        match = _TO_ITS_END.match(text, at)
        return match.end() if match else at
    return next((end.end() for end in ends.finditer(text, at + 3) if end[0][0] != "\\"), len(text))


def count_nested(outline: str) -> int:
    """The number of tables with a header and of parts of keys behind a dot; no fewer."""
    return len(_HEADER.findall(outline)) + outline.count(".")


def line_of_long_key(outline: str, parts: int) -> int:
    """The line of the first key of more than so many parts; 0 where there is none."""
    key = re.search(rf"(?<![\w\"-])(?:{_PART}){{{parts}}}", outline)
    return outline.count("\n", 0, key.start()) + 1 if key else 0


def outline_of(text: str) -> str:
    """A TOML text on its own lines, without comments and with `""` for every string; that of a text which is not TOML
    is right up to where it goes wrong.
    """
    pieces, at = list[str](), 0
    while opening := _QUOTED.search(text, at):
        start, end = opening.start(), _end_of(text, opening.start())
        mark = '""' if opening[0] != "#" else ""
        pieces += [text[at:start], mark, "\n" * text.count("\n", start, end)]
        at = end
    return "".join([*pieces, text[at:]])


@dataclass(slots=True)
class LineMap:
    """A key, a table or an item of a list: its line (from 1), and what is in it. The text itself is one of line 1."""

    line: int
    inside: "dict[str | int, LineMap]" = field(default_factory=dict)

    def line_of(self, path: KeyPath) -> int:
        """The line of `path` (`("link", 0, "url")`), else of the nearest table around it, else this one's."""
        place = self
        for key in path:
            if key not in place.inside:
                break
            place = place.inside[key]
        return place.line


def map_lines(text: str) -> LineMap:
    """Find the lines of all keys of `text`, which must be TOML that `tomllib` accepts.

    Of a text that is not, the part before the first surprise is mapped; nothing is raised.
    """
    scanner = _Scanner(text.replace("\r\n", "\n"))
    with contextlib.suppress(ValueError):  # a quoted key's is tomllib's own
        scanner.scan()
    return scanner.root


class _Scanner:
    """A reader of TOML's outline: keys are noted, values are walked over. Raises ValueError where the text is not the
    TOML that the caller took it for.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.root = LineMap(1)
        self._starts = [0, *(newline.end() for newline in re.finditer("\n", text))]

    def scan(self) -> None:
        table = self.root
        while self._skip(_BLANK) < len(self.text):
            if self.text.startswith("[", self.at):
                table = self._header()
            else:
                self._pair(table)
                self._skip(_REST_OF_LINE)

    def _skip(self, pattern: re.Pattern[str]) -> int:
        match = pattern.match(self.text, self.at)
        if match is None:
            raise ValueError
        self.at = match.end()
        return self.at

    def _take(self, text: str) -> None:
        if not self.text.startswith(text, self.at):
            raise ValueError
        self.at += len(text)

    def _note(self, place: LineMap, key: str | int, start: int) -> LineMap:
        if key not in place.inside:
            place.inside[key] = LineMap(bisect_right(self._starts, start))
        return place.inside[key]

    def _header(self) -> LineMap:
        start = self.at
        bracket = "[[" if self.text.startswith("[[", self.at) else "["
        self._take(bracket)
        *parents, last = self._keys()
        place = self.root
        for key in parents:
            place = self._note(place, key, start)
            # Below a list of tables a header speaks of the list's last one.
            place = place.inside.get(len(place.inside) - 1, place)
        place = self._note(place, last, start)
        if bracket == "[[":
            place = self._note(place, len(place.inside), start)
        self._skip(_REST_OF_LINE)
        return place

    def _keys(self) -> list[str]:
        keys = [self._key()]
        while self._skip(_SPACE) < len(self.text) and self.text[self.at] == ".":
            self.at += 1
            keys.append(self._key())
        return keys

    def _key(self) -> str:
        start = self._skip(_SPACE)
        if self.text.startswith(('"', "'"), start):
            self.at = _end_of(self.text, start)
            return next(iter(tomllib.loads(f"{self.text[start : self.at]} = 0")))
        self._skip(_BARE_KEY)
        return self.text[start : self.at]

    def _pair(self, place: LineMap) -> None:
        start = self.at
        for key in self._keys():
            place = self._note(place, key, start)
        self._take("=")
        self._skip(_SPACE)
        self._value(place)

    def _value(self, place: LineMap) -> None:
        if self.text.startswith("[", self.at):
            self._members(place, "]")
        elif self.text.startswith("{", self.at):
            self._members(place, "}")
        elif self.text.startswith(('"', "'"), self.at):
            self.at = _end_of(self.text, self.at)
        else:
            self._skip(_BARE_VALUE)

    def _members(self, place: LineMap, closing: str) -> None:
        """Note the items of a list, or the pairs of an inline table."""
        self.at += 1
        index = 0
        while self._skip(_BLANK) < len(self.text) and self.text[self.at] != closing:
            if self.text[self.at] == ",":
                self.at += 1
                index += 1
            elif closing == "]":
                self._value(self._note(place, index, self.at))
            else:
                self._pair(place)
        self._take(closing)
