"""New builds into a `builds.toml` that people keep: its comments, its order and all it says stay as they are."""

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from packaging.version import Version

from knowngood.catalogue.loader import read_builds
from knowngood.catalogue.text_files import CatalogueProblems, read_text, read_toml
from knowngood.domain.builds.build import DEFAULT_PYTHON
from knowngood.domain.errors import BadRequest
from knowngood.measure.discovery.releases import BuildProposal


def as_toml(addition: BuildProposal) -> str:
    """The table as it stands in the file, without a line end. What it holds are versions, dates and our own words."""
    pythons = ", ".join(f'"{python}"' for python in addition.pythons)
    lines = [
        "[[build]]",
        f'torch = "{addition.torch}"',
        f'local = "{addition.local}"',
        f'cuda = "{addition.cuda}"' if addition.cuda else "",
        f'triton = "{addition.triton}"' if addition.triton else "",
        f'git = "{addition.git}"' if addition.git else "",
        f'with_triton = "{addition.with_triton}"' if addition.with_triton else "",
        f'python = "{addition.python}"' if addition.python != DEFAULT_PYTHON else "",
        f"pythons = [{pythons}]" if pythons else "",
        f"as_of = {addition.as_of.isoformat()}",
        f"released = {addition.released.isoformat()}" if addition.released else "",
        'origin = "default"',
        f'note = "{addition.note}"' if addition.note else "",
    ]
    return "\n".join(line for line in lines if line)


def add_builds(file: Path, additions: Sequence[BuildProposal]) -> None:
    """Write the builds into the file, each after the last older one of its kind; all of them or none.

    The new text is read as the catalogue reads it before it takes the place of the file: every earlier build must be in
    it, unchanged. Raises BadRequest and leaves the file as it was.
    """
    place = file.resolve()
    try:
        uses_crlf = b"\r\n" in place.read_bytes()
        text = read_text(place)
        before = read_builds(place)
    except OSError as error:
        raise BadRequest(f"{file} cannot be read: {error.strerror}") from None
    partial = place.with_name(f"{place.name}.partial")
    try:
        for addition in sorted(
            additions, key=lambda proposal: (Version(proposal.torch), proposal.with_triton is not None)
        ):
            text = _with(text, addition, partial)
        partial.write_text(text.replace("\n", "\r\n") if uses_crlf else text, encoding="utf-8", newline="")
        after = {build.id: build for build in read_builds(partial)}
        if any(after.get(build.id) != build for build in before) or len(after) <= len(before):
            raise BadRequest(f"{file} would not hold what it held before; add the tables by hand")
        shutil.copymode(place, partial)
        os.replace(partial, place)  # noqa: PTH105 - one step, whoever reads meanwhile
    except CatalogueProblems as found:
        words = "; ".join(f"line {problem.line}: {problem.message}" for problem in found.problems)
        raise BadRequest(f"{file} cannot take the new builds: {words}") from None
    except OSError as error:
        raise BadRequest(f"{file} cannot be written: {error.strerror}") from None
    finally:
        partial.unlink(missing_ok=True)


def _with(text: str, addition: BuildProposal, scratch: Path) -> str:
    """`text` with one more table. `scratch` is a file that it may be written to, to be looked at."""
    scratch.write_text(text, encoding="utf-8", newline="")
    lines = text.split("\n")
    at = _place(scratch, addition)
    end = len(lines) if at is None else _end_of_table(lines, at)
    while end and not lines[end - 1].strip():
        end -= 1
    rest = lines[end:]
    gap = [] if rest and not rest[0].strip() else [""]
    head = [*lines[:end], ""] if end else []
    return "\n".join([*head, *as_toml(addition).split("\n"), *gap, *rest])


def _place(file: Path, addition: BuildProposal) -> int | None:
    """The line (from 1) of the table to stand behind: the last of the same kind that is no newer; None: at the end."""
    toml = read_toml(file)
    starts = [
        toml.lines.line_of(("build", at))
        for at, table in enumerate(toml.data.get("build", []))
        if table["origin"] == "default"
        and ("with_triton" in table) == (addition.with_triton is not None)
        and table.get("python", DEFAULT_PYTHON) == addition.python
        and Version(table["torch"]) <= Version(addition.torch)
    ]
    return max(starts, default=None)


def _end_of_table(lines: Sequence[str], start: int) -> int:
    """How many lines there are up to the end of the table that begins on line `start` (from 1)."""
    end = start
    while end < len(lines) and not lines[end].startswith("["):
        end += 1
    while end > start and (not lines[end - 1].strip() or lines[end - 1].startswith("#")):
        end -= 1
    return end
