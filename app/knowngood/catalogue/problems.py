"""Problems of a catalogue: file, line, sentence. Every problem is found at once, none is raised alone."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from knowngood.domain.errors import KnownGoodError

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
