"""Whatever lies in a catalogue's folder: it is read, or it is a list of problems with lines. Nothing else comes out."""

import tempfile
from collections.abc import Sequence
from pathlib import Path

from hypothesis import example, given
from hypothesis import strategies as st

from knowngood.catalogue.loader import CatalogueProblems, FileProblem, read_catalogue
from knowngood.catalogue.warnings.rows import row_warnings
from tests.catalogue.given import Example, read_example

EXAMPLE = read_example()
BUILDS = '[[build]]\ntorch = "2.6.0"\nlocal = "cu124"\ncuda = "12.4"\norigin = "default"\nas_of = 2025-02-28\n'

SCALARS = st.one_of(
    st.sampled_from(["true", "0", "-1", "1e400", "nan", '""', '"x"', "2024-01-01", "07:32:00", "1979-05-27T07:32:00Z"]),
    st.integers().map(str),
    st.text(alphabet=st.characters(codec="utf-8", categories=["L", "N", "P", "S", "Zs"])).map(
        lambda text: "'''" + text.replace("'", "") + "'''"
    ),
)
VALUES = st.one_of(
    SCALARS,
    st.lists(SCALARS, max_size=2).map(lambda items: f"[{', '.join(items)}]"),
    SCALARS.map(lambda text: f"{{ id = {text} }}"),
    SCALARS.map(lambda text: f"[{{ id = {text}, params = {text} }}]"),
    st.just("0x" + "f" * 5000),
)
LINES = st.integers(min_value=0, max_value=200)


def _read(document: bytes, script: bytes, builds: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        Example("", "", "ours-1").write(Path(folder))
        (Path(folder) / "ours-1" / "issue.toml").write_bytes(document)
        (Path(folder) / "ours-1" / "repro.py").write_bytes(script)
        (Path(folder) / "builds.toml").write_bytes(builds)
        problems = _problems(Path(folder))
        row_warnings([Path(folder)], ["ours-1"])
    assert all(problem.line >= 1 and problem.message for problem in problems)


def _problems(folder: Path) -> Sequence[FileProblem]:
    try:
        read_catalogue([folder])
    except CatalogueProblems as found:
        return found.problems
    return ()


def _with_value(text: str, at: int, value: str) -> bytes:
    """The text with another value for the key on a line, or another line where there is none."""
    lines = text.split("\n")
    key, equals, _ = lines[at % len(lines)].partition(" = ")
    lines[at % len(lines)] = f"{key} = {value}" if equals else value
    return "\n".join(lines).encode()


@given(st.binary(), st.binary(), st.binary())
def test_bytes_of_any_kind_are_read_or_refused(document: bytes, script: bytes, builds: bytes) -> None:
    _read(document, script, builds)


@given(LINES, VALUES)
@example(1, "0x" + "f" * 4_000)  # Python writes no number of more than 4,300 digits
def test_a_document_with_any_value_is_read_or_refused(at: int, value: str) -> None:
    _read(_with_value(EXAMPLE.document, at, value), EXAMPLE.script.encode(), BUILDS.encode())


@given(LINES, VALUES)
def test_builds_with_any_value_are_read_or_refused(at: int, value: str) -> None:
    _read(EXAMPLE.document.encode(), EXAMPLE.script.encode(), _with_value(BUILDS, at, value))


@given(
    LINES, LINES, st.sampled_from(["", "    ", "(", "x = 1", "def f(): return 1", "import x.y", "ENV = {1: 2}", "'''"])
)
def test_a_script_with_lines_lost_or_put_in_is_read_or_refused(first: int, second: int, line: str) -> None:
    lines = EXAMPLE.script.split("\n")
    lines[first % len(lines)] = line
    del lines[second % len(lines)]
    _read(EXAMPLE.document.encode(), "\n".join(lines).encode(), BUILDS.encode())


def test_a_script_nested_beyond_reason_is_refused() -> None:
    for script in (
        "x = " + "(" * 300 + ")" * 300,
        "x = " + "-" * 5000 + "1",
        "x = " + "a." * 5000 + "b",
        "x = 1" + "+1" * 5000,
    ):
        _read(EXAMPLE.document.encode(), f"{EXAMPLE.script}{script}\n".encode(), BUILDS.encode())
