"""A project's own file, and a script with inline metadata: read as what they ask for, and not as more than that."""

import pytest

from knowngood.domain.errors import BadEnvironment, OtherPython
from knowngood.environments.detect import read_environment
from knowngood.environments.resolve import PinnedPackage, StatedEnvironment, resolve
from tests.environments.test_formats import NAMES, TESTED, WHEELS, WHL

PROJECT = """[project]
name = "My.Project"
requires-python = ">=3.11,<3.13"
dependencies = [
    "numpy",
    "torch==2.6.0 ; sys_platform == 'linux'",
    "colorama==0.4 ; sys_platform == 'win32'",
]

[project.optional-dependencies]
quant = ["torchao==0.9.0"]
every = ["my-project[quant]", "einops"]

[dependency-groups]
dev = ["pytest", {include-group = "lint"}]
lint = ["ruff==0.12.0"]
"""
POETRY = """[tool.poetry]
name = "x"
[tool.poetry.dependencies]
python = "~3.11"
torch = {version = "2.6.0", source = "pytorch"}
numpy = "^1.26"
torchao = {version = "0.9.0", optional = true}
einops = {version = "0.8.0", optional = true}
[tool.poetry.extras]
quant = ["torchao"]
[tool.poetry.group.dev.dependencies]
pytest = "8.0"
[[tool.poetry.source]]
name = "pytorch"
url = "https://download.pytorch.org/whl/cu118"
priority = "explicit"
"""
SCRIPT = """#!/usr/bin/env -S uv run
# /// script
# requires-python = "==3.12.*"
# dependencies = [
#     "rich",
#     "torch==2.6.0",
# ]
# ///
import torch
"""


CPU = f"{WHL}/cpu"


def read(text: str, name: str = "pyproject.toml", *groups: str, python: str = "") -> StatedEnvironment:
    return read_environment(name, text.encode(), python=python, groups=groups)


def versions(stated: StatedEnvironment) -> dict[str, str]:
    return {pin.name: pin.version for pin in stated.pins}


@pytest.mark.parametrize("name", ["pyproject.toml", "", "upload.bin", "-"])
def test_a_project_is_its_exact_torch_on_the_pythons_that_it_allows(name: str) -> None:
    stated = read(PROJECT, name)
    assert (stated.kind, stated.pythons, stated.is_whole) == ("pyproject.toml", ("3.11", "3.12"), False)
    assert stated.all_of("torch") == (PinnedPackage("torch", "2.6.0", line=6),)
    found = resolve(stated, NAMES, TESTED, WHEELS)
    assert (found.build, found.pythons, found.is_whole) == ("torch-2.6.0+cu124", ("3.11", "3.12"), False)
    assert resolve(read(PROJECT, name, python="3.12"), NAMES, TESTED, WHEELS).build == "torch-2.6.0+cu124~py312"


@pytest.mark.parametrize(
    ("groups", "more"),
    [
        ((), {"torchao": "0.9.0", "einops": "", "pytest": "", "ruff": "0.12.0"}),
        (("all",), {"torchao": "0.9.0", "einops": "", "pytest": "", "ruff": "0.12.0"}),
        (("quant",), {"torchao": "0.9.0"}),
        (("Every",), {"torchao": "0.9.0", "einops": ""}),
        (("dev",), {"pytest": "", "ruff": "0.12.0"}),
        (("lint", "quant"), {"torchao": "0.9.0", "ruff": "0.12.0"}),
    ],
    ids=str,
)
def test_groups_count_that_are_named_and_all_where_none_is(groups: tuple[str, ...], more: dict[str, str]) -> None:
    assert versions(read(PROJECT, "pyproject.toml", *groups)) == {"numpy": "", "torch": "2.6.0", **more}


def test_each_requirement_keeps_its_line() -> None:
    lines = {pin.name: pin.line for pin in read(PROJECT).pins}
    assert lines == {"numpy": 5, "torch": 6, "torchao": 11, "einops": 12, "pytest": 15, "ruff": 16}
    assert {pin.name: pin.line for pin in read(SCRIPT, "train.py").pins} == {"rich": 5, "torch": 6}
    assert {pin.name: pin.line for pin in read(POETRY).pins} == {"torch": 5, "numpy": 6, "torchao": 7, "pytest": 12}


def test_poetrys_tables_are_read_with_their_sources_and_extras() -> None:
    assert versions(read(POETRY, "pyproject.toml", "dev")) == {"torch": "2.6.0", "numpy": "", "pytest": "8.0"}
    assert versions(read(POETRY, "pyproject.toml", "quant")) == {"torch": "2.6.0", "numpy": "", "torchao": "0.9.0"}
    found = resolve(read(POETRY), NAMES, TESTED, WHEELS)
    assert "cu118" in (found.build or found.note)


@pytest.mark.parametrize(
    ("source", "pin"),
    [
        (
            f'torch = {{index = "cuda"}}\n[[tool.uv.index]]\nname = "cuda"\nurl = "{WHL}/cu126"\nexplicit = true',
            PinnedPackage("torch", "2.6.0", index=f"{WHL}/cu126", line=3),
        ),
        (
            f'torch = [{{index = "c", marker = "os_name == \'posix\'"}}]\n[[tool.uv.index]]\nname = "c"\nurl = "{CPU}"',
            PinnedPackage("torch", "2.6.0", index=CPU, line=3),
        ),
        (
            'torch = {git = "https://github.com/pytorch/pytorch", rev = "x"}',
            PinnedPackage("torch", "2.6.0", "git+https://github.com/pytorch/pytorch", line=3),
        ),
        ('torch = {path = "wheels/torch.whl"}', PinnedPackage("torch", "2.6.0", "wheels/torch.whl", line=3)),
        (
            f'torch = {{index = "c", group = "gpu"}}\n[[tool.uv.index]]\nname = "c"\nurl = "{CPU}"',
            PinnedPackage("torch", "2.6.0", line=3),
        ),
    ],
    ids=["index", "marker", "git", "path", "another extra"],
)
def test_uv_says_where_a_package_comes_from(source: str, pin: PinnedPackage) -> None:
    text = f'[project]\nname = "x"\ndependencies = ["torch==2.6.0"]\n[tool.uv.sources]\n{source}\n'
    assert read(text).all_of("torch") == (pin,)


def test_a_range_is_no_build_and_says_so_with_its_line() -> None:
    found = resolve(read('[project]\nname = "x"\ndependencies = ["torch>=2.6"]'), NAMES, TESTED, WHEELS)
    assert (found.build, "in line 3 without an exact version" in found.note) == (None, True)


@pytest.mark.parametrize("name", ["train.py", "", "-", "upload.bin"])
def test_a_script_is_the_environment_of_its_comment(name: str) -> None:
    stated = read(SCRIPT, name)
    assert (stated.kind, stated.python, stated.is_whole) == ("script metadata (PEP 723)", "3.12", False)
    assert resolve(stated, NAMES, TESTED, WHEELS).build == "torch-2.6.0+cu124~py312"


@pytest.mark.parametrize("text", [SCRIPT, PROJECT])
def test_a_stated_python_that_it_is_not_for_is_refused(text: str) -> None:
    with pytest.raises(OtherPython, match=r"and Python 3\.10 was stated"):
        read(text, "", python="3.10")


@pytest.mark.parametrize(
    ("name", "text", "groups", "words"),
    [
        ("x.py", "import torch", (), "states no dependencies; begin a comment with `# /// script`"),
        ("x.py", "x = 1\n# /// script\n# dependencies = []\n", (), "line 2: `# /// script` is never closed"),
        ("x.py", f"{SCRIPT}{SCRIPT}", (), "line 11: is a second `# /// script`"),
        ("x.py", "# /// script\n# dependencies = [\n# ///\n", (), "line 2: is not TOML"),
        ("x.py", '# /// script\n# dependencies = ["torch=="]\n# ///', (), 'line 2: "torch==" is no requirement'),
        ("pyproject.toml", "[build-system]\nrequires = []", (), "has neither [project] nor [dependency-groups]"),
        ("pyproject.toml", '[project]\nname = "x"\ndynamic = ["dependencies"]', (), "line 3: leaves its dependencies"),
        ("pyproject.toml", '[project]\ndependencies = "torch"', (), "dependencies is no list; expected requirements"),
        ("pyproject.toml", "[project]\ndependencies = [1]", (), "dependencies[0] is no requirement"),
        ("pyproject.toml", "[dependency-groups]\na = [{include-group = 'a'}]", (), 'the group "a" includes itself'),
        ("pyproject.toml", PROJECT, ("qunt",), 'no extra or group is called "qunt"; the file has dev, every, lint'),
        (
            "pyproject.toml",
            '[project]\ndependencies = ["torch"]\n[tool.uv.sources]\ntorch = {index = "a"}',
            (),
            'line 2: torch comes from "a", which is no index of this file',
        ),
        ("requirements.txt", "torch==2.6.0", ("dev",), "has no groups to be named"),
        ("x.py", SCRIPT, ("dev",), "has no groups to be named"),
    ],
)
def test_what_is_no_such_file_says_where_and_what_to_do(
    name: str, text: str, groups: tuple[str, ...], words: str
) -> None:
    with pytest.raises(BadEnvironment) as refused:
        read(text, name, *groups)
    assert words in str(refused.value)
