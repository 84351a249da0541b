"""The columns of the matrix, as `builds.toml` tells them."""

from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from knowngood.catalogue.loader import CatalogueProblems, read_builds
from knowngood.domain.builds.build import Build, Companion

SOUND = """
[[build]]
torch = "2.6.0"
local = "cu124"
cuda = "12.4"
triton = "3.2.0"
as_of = 2025-02-28
released = 2025-01-29
origin = "default"
default = true
"""


def _read(tmp_path: Path, text: str) -> tuple[Build, ...]:
    file = tmp_path / "builds.toml"
    file.write_text(text)
    return read_builds(file)


def test_a_build_is_named_by_what_is_imported(tmp_path: Path) -> None:
    (build,) = _read(tmp_path, SOUND)

    assert build == Build(
        id="torch-2.6.0+cu124",
        torch="2.6.0+cu124",
        requirement="2.6.0",
        cuda="12.4",
        triton="3.2.0",
        pinned_triton="3.2.0",
        python="3.11",
        origin="default",
        as_of=date(2025, 2, 28),
        released=date(2025, 1, 29),
        default=True,
    )


@pytest.mark.parametrize(
    ("old", "new", "id_"),
    [
        ('triton = "3.2.0"', 'triton = "3.2.0"\nwith_triton = "3.3.0"', "torch-2.6.0+cu124~triton-3.3.0"),
        ('local = "cu124"\n', "", "torch-2.6.0"),
        ("default = true", 'python = "3.12"', "torch-2.6.0+cu124~py312"),
        ('local = "cu124"\ncuda = "12.4"\ntriton = "3.2.0"\n', 'local = "cpu"\n', "torch-2.6.0+cpu"),
    ],
)
def test_what_is_not_default_stands_in_the_name(tmp_path: Path, old: str, new: str, id_: str) -> None:
    (build,) = _read(tmp_path, SOUND.replace(old, new))

    assert build.id == id_
    assert build.is_mismatched == ("with_triton" in new)


def test_other_pythons_are_builds_alike_but_for_python_and_never_default(tmp_path: Path) -> None:
    plain, *others = _read(tmp_path, f'{SOUND}pythons = ["3.13", "3.12"]\nnote = "One note."\ngit = "{"0a" * 20}"\n')

    assert [build.id for build in others] == ["torch-2.6.0+cu124~py312", "torch-2.6.0+cu124~py313"]
    assert [replace(build, id=plain.id, python="3.11", default=True) for build in others] == [plain, plain]
    assert plain.git == "0a" * 20


def test_builds_come_oldest_first(tmp_path: Path) -> None:
    text = "".join(SOUND.replace("2.6.0", version) for version in ("2.10.0", "2.9.1", "2.9.0"))

    assert [build.requirement for build in _read(tmp_path, text)] == ["2.9.0", "2.9.1", "2.10.0"]


PACKAGE = """
[packages.torch-xla]
built_for = "minor"
asked = 2026-11-27
claim = { text = "Both are of one minor release.", source = "pytorch/xla#6437" }
releases = { "2.5.1" = ["3.11"], "2.6.0" = ["3.10", "3.11"] }
"""


def test_a_package_that_is_built_for_one_minor_release_stands_on_every_build(tmp_path: Path) -> None:
    plain, other = _read(tmp_path, SOUND + 'pythons = ["3.12"]\n' + PACKAGE)

    assert plain.companions == (Companion("torch-xla", "2.6.0", "pytorch/xla#6437", date(2026, 11, 27)),)
    assert [one.release for one in other.companions] == [""]


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ('"minor"', '"patch"', 13, '"built_for"'),
        ("torch-xla", "torch_xla", 12, "canonical name"),
        ('"2.6.0" =', '"two" =', 16, "no PEP 440 version"),
        ('"3.10"', '"310"', 16, 'such as "3.11"'),
        ("asked = 2026-11-27\n", "", 12, '"asked" is missing'),
        (', source = "pytorch/xla#6437"', "", 15, '"source" is missing'),
    ],
)
def test_a_package_that_cannot_be_is_refused_at_its_line(
    tmp_path: Path, old: str, new: str, line: int, words: str
) -> None:
    with pytest.raises(CatalogueProblems) as caught:
        _read(tmp_path, SOUND + PACKAGE.replace(old, new))

    assert [(problem.line, words in problem.message) for problem in caught.value.problems] == [(line, True)]


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ('cuda = "12.4"', 'cuda = "12.6"', 5, '"cu124" says 12.4'),
        ('cuda = "12.4"\n', "", 2, '"cuda" is missing, and "cu124" says 12.4'),
        ('local = "cu124"', 'local = "cpu"', 5, "a +cpu wheel has none"),
        ('torch = "2.6.0"', 'torch = "2.6"\npython = 3', 4, '"python" is 3'),
        ('torch = "2.6.0"', 'torch = "2.6.0+cu124"', 3, 'must be written "2.6.0"'),
        ('torch = "2.6.0"', 'torch = "two"', 3, "no PEP 440 version"),
        ("default = true", 'with_triton = "3.2.0"', 10, "which is the pin"),
        ("as_of = 2025-02-28", "as_of = 2025-01-01", 7, "before the release"),
        ("as_of", "asof", 7, 'did you mean "as_of"?'),
        ("[[build]]", "[[builds]]", 2, 'did you mean "build"?'),
        ("default = true", f"default = true{SOUND}", 11, "torch-2.6.0+cu124 is there already: line 2"),
        ("default = true", 'pythons = ["3.12", "3.11"]', 2, "torch-2.6.0+cu124 is there already: line 2"),
        ("default = true", 'pythons = ["3.12", "py313"]', 10, 'such as "3.11"'),
        ("default = true", 'pythons = "3.12"', 10, '"pythons" must be a list'),
        ("default = true", 'git = "2236df1"', 10, "a git revision of 40 hexadecimal digits"),
    ],
)
def test_a_build_that_cannot_be_is_refused_at_its_line(
    tmp_path: Path, old: str, new: str, line: int, words: str
) -> None:
    with pytest.raises(CatalogueProblems) as caught:
        _read(tmp_path, SOUND.replace(old, new))

    assert [problem.line for problem in caught.value.problems if words in problem.message] == [line]
