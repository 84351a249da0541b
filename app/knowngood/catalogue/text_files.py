"""From a file to text or TOML, with a problem instead of an exception for whatever a file can be: file, line, sentence.
Every problem is found at once, none is raised alone.
"""

import re
import tomllib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from knowngood.domain.errors import KnownGoodError
from knowngood.serialization.toml_models import Finding
from knowngood.serialization.toml_positions import LineMap, map_lines

# Far above any real repro; a device file or a core dump in the folder must not fill the memory.
FILE_BYTES = 1 << 20

PLACEHOLDER = re.compile(r"FILL[ -]IN\b[:-]?\s*(?P<what>[^\"'`]*)")

Read = TypeVar("Read")


@dataclass(frozen=True, order=True)
class FileProblem:
    """One thing to mend. `line` counts from 1; `is_placeholder` says that nobody has written it yet."""

    file: Path
    line: int
    message: str
    is_placeholder: bool = field(default=False, kw_only=True, compare=False)

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.message}"


class CatalogueProblems(KnownGoodError):
    """The catalogue cannot be used; `problems` holds all that was found, in the order of files and lines."""

    def __init__(self, problems: Iterable[FileProblem]) -> None:
        self.problems = tuple(sorted(set(problems)))
        super().__init__("\n".join(str(problem) for problem in self.problems))


def collected(problems: list[FileProblem], read: Callable[[Path], Read], file: Path) -> Read | None:
    """The value of `read(file)`; where it raises CatalogueProblems, they join `problems` and the answer is None."""
    try:
        return read(file)
    except CatalogueProblems as found:
        problems.extend(found.problems)
        return None


@dataclass(frozen=True)
class Toml:
    """A TOML file that parses: its values, and where they stand."""

    file: Path
    text: str
    data: dict[str, Any]
    lines: LineMap

    def problem(self, finding: Finding) -> FileProblem:
        path, message = finding
        return FileProblem(self.file, self.lines.line_of(path), message)


def read_text(file: Path) -> str:
    """The text of a file, with plain line ends. Raises CatalogueProblems."""
    try:
        if not file.is_file():
            raise CatalogueProblems([FileProblem(file, 1, "is not there", is_placeholder=True)])
        size = file.stat().st_size
        if size > FILE_BYTES:
            raise CatalogueProblems(
                [FileProblem(file, 1, f"has {size} bytes; a catalogue's files have at most {FILE_BYTES}")]
            )
        content = file.read_bytes()
    except OSError as error:
        raise CatalogueProblems([FileProblem(file, 1, f"cannot be read: {error.strerror}")]) from None
    try:
        return content.decode("utf-8").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise CatalogueProblems([FileProblem(file, line, "is not UTF-8")]) from None


def read_toml(file: Path) -> Toml:
    """The values of a TOML file with their lines. Raises CatalogueProblems."""
    text = read_text(file)
    try:
        data = tomllib.loads(text)
        lines = map_lines(text)
    except tomllib.TOMLDecodeError as error:
        match = re.search(r" \(at (?:line (\d+), column \d+|end of document)\)$", str(error))
        line = int(match[1]) if match and match[1] else text.count("\n") + 1
        message = str(error)[: match.start()] if match else str(error)
        raise CatalogueProblems([FileProblem(file, line, f"is not TOML: {message}")]) from None
    except (ValueError, RecursionError) as error:  # a number of 5000 digits, a thousand brackets
        raise CatalogueProblems([FileProblem(file, 1, f"is not TOML we can read: {error}")]) from None
    return Toml(file, text, data, lines)


def placeholders(file: Path, text: str) -> Iterator[FileProblem]:
    """The places a scaffold left for its author."""
    for number, line in enumerate(text.split("\n"), 1):
        match = PLACEHOLDER.search(line)
        if match:
            words = f"is still to be filled in: {match['what'].strip() or line.strip()}"
            yield FileProblem(file, number, words, is_placeholder=True)
