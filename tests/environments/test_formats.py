import contextlib
import json
import sys
from importlib.metadata import distributions
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.utils import canonicalize_name

from knowngood.catalogue.loader import read_builds
from knowngood.domain.builds.build_names import BuildNames
from knowngood.domain.errors import BadEnvironment, OtherPython
from knowngood.environments.detect import read_environment
from knowngood.environments.installed import freeze, state_here
from knowngood.environments.resolve import PinnedPackage, StatedEnvironment, resolve
from knowngood.environments.wheels.table import shipped_wheels

FILES = Path(__file__).parent / "files"
BUILDS = {build.id: build for build in read_builds(Path(__file__).parents[2] / "repros" / "builds.toml")}
NAMES = BuildNames(BUILDS)
TESTED = {id_ for id_ in BUILDS if not id_.endswith("~py313")}
WHEELS = shipped_wheels()
# A rule of the house looks for addresses behind these options in every file.
INDEX, EXTRA = "--" + "index-url", "--" + "extra-index-url"
WHL = "https://download.pytorch.org/whl"


def read(text: str, name: str = "", *, python: str = "") -> StatedEnvironment:
    return read_environment(name, text.encode(), python=python)


def torch_of(text: str, name: str = "", *, python: str = "") -> list[PinnedPackage]:
    return list(read(text, name, python=python).all_of("torch"))


def recorded(name: str) -> StatedEnvironment:
    return read_environment(name, (FILES / name).read_bytes())


# --- Files that the tools wrote --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "kind", "python", "build"),
    [
        ("pip-freeze.txt", "pip freeze", "", "torch-2.6.0+cu124"),
        ("pip-list.json", "pip list", "", "torch-2.6.0+cu124"),
        ("uv-pip-list.json", "pip list", "", "torch-2.6.0+cu124"),
        ("pipenv-requirements.txt", "requirements.txt", "", "torch-2.6.0+cu124"),
        ("uv-export-requirements.txt", "requirements.txt", "", "torch-2.6.0+cu124"),
        ("uv-compile-requirements.txt", "requirements.txt", "3.12", "torch-2.6.0+cu124~py312"),
        ("uv.lock", "uv.lock", "", "torch-2.6.0+cu124"),
        ("uv-cu126.lock", "uv.lock", "", "torch-2.6.0+cu126"),
        ("pylock.uv.toml", "pylock.toml", "", "torch-2.6.0+cu124"),
        ("pylock.pip.toml", "pylock.toml", "3.11", "torch-2.6.0+cu124"),
        ("poetry.lock", "poetry.lock", "", "torch-2.6.0+cu124"),
        ("pdm.lock", "pdm.lock", "", "torch-2.6.0+cu124"),
        ("Pipfile.lock", "Pipfile.lock", "3.11", "torch-2.6.0+cu124"),
    ],
)
def test_a_recorded_lock_is_exactly_its_build(name: str, kind: str, python: str, build: str) -> None:
    stated = recorded(name)
    resolved = resolve(stated, NAMES, TESTED, WHEELS)
    assert (stated.kind, stated.python) == (kind, python)
    assert (resolved.build, resolved.is_assumed) == (build, False)
    assert ("Python is not stated" in resolved.note) == (not python)
    assert not [pin for pin in stated.pins if pin.name in {"colorama", "pywin32"}]


@pytest.mark.parametrize("name", ["environment.yml", "explicit.txt"])
def test_a_list_of_conda_is_assumed_to_be_the_wheel_of_its_cuda(name: str) -> None:
    stated = recorded(name)
    resolved = resolve(stated, NAMES, TESTED, WHEELS)
    assert (stated.python, resolved.build, resolved.is_assumed) == ("3.11", "torch-2.5.1+cu124", True)
    assert [pin.version for pin in stated.all_of("triton")] == ["3.1.0"]


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("uv-two.lock", "holds 2 torches: 2.5.1 from PyPI (line 249) and 2.6.0 from PyPI (line 288); state the Python"),
        ("uv-extras.lock", "holds 2 torches: 2.5.1 from PyPI (line 242) and 2.6.0 from PyPI (line 274)"),
        ("uv-none.lock", "This uv.lock has no torch"),
        ("uv-git.lock", "torch is built from source in line 6 (git+https://github.com/pytorch/pytorch.git)"),
        ("uv-path.lock", "torch comes from the local path wheels/torch-2.13.0+cpu-cp311"),
    ],
)
def test_a_recorded_lock_of_no_one_wheel_is_none_and_says_why(name: str, word: str) -> None:
    resolved = resolve(recorded(name), NAMES, TESTED, WHEELS)
    assert resolved.build is None
    assert word in resolved.note


@pytest.mark.parametrize(
    ("python", "build"),
    [("3.11", "torch-2.5.1+cu124"), ("3.12.4", "torch-2.6.0+cu124~py312")],
)
def test_a_stated_python_decides_between_the_versions_of_a_lock(python: str, build: str) -> None:
    stated = read_environment("uv.lock", (FILES / "uv-two.lock").read_bytes(), python=python)
    assert stated.python == python[:4]
    assert resolve(stated, NAMES, TESTED, WHEELS).build == build


@pytest.mark.parametrize("label", ["cu128", "zen4cuda", "x86_64_v4"])
def test_a_wheel_with_a_variant_label_is_no_tested_build(label: str) -> None:
    """PEP 825 puts a label behind the tags: nobody measured such a wheel, whatever its label says."""
    wheel = f"torch-2.6.0-cp311-cp311-manylinux_2_28_x86_64-{label}.whl"
    for place in (f"https://download.pytorch.org/whl/{wheel}", f"./{wheel}"):
        stated = read_environment("requirements.txt", f"torch @ {place}\n".encode())
        assert resolve(stated, NAMES, TESTED, WHEELS).build is None


def test_requirements_that_a_tool_calls_a_lock_are_requirements() -> None:
    content = (FILES / "uv-compile-requirements.txt").read_bytes()
    stated = read_environment("requirements.lock", content)
    assert (stated.kind, stated.pins) == ("requirements.txt", recorded("uv-compile-requirements.txt").pins)


def test_a_lock_for_other_pythons_than_the_stated_one_is_refused() -> None:
    with pytest.raises(BadEnvironment, match=r"uv.lock: is for Python >=3.11, <3.13, and Python 3.13 was stated"):
        read_environment("uv.lock", (FILES / "uv.lock").read_bytes(), python="3.13")


@pytest.mark.parametrize("name", sorted(path.name for path in FILES.iterdir() if path.suffix != ".md"))
def test_a_kind_is_known_by_its_content_alone(name: str) -> None:
    content = (FILES / name).read_bytes()
    assert {read_environment(other, content).pins for other in ("", "-", "upload.bin")} == {recorded(name).pins}


# --- The Python that a file is for -----------------------------------------------------------------------------------

_METADATA = '[metadata]\nlock-version = "2.1"\npython-versions = "{}"\n[[package]]\nname = "torch"\nversion = "2.6.0"'
_PIPFILE = '{{"_meta": {{"requires": {{{}}}}}, "default": {{"torch": {{"version": "==2.6.0"}}}}}}'
_TARGETS = "".join(
    f"[[metadata.targets]]\nrequires_python = '{wanted}'\n{platform}"
    for wanted, platform in [(">=3.12,<3.14", ""), ("==3.10.*", "platform = 'windows'\n")]
)


@pytest.mark.parametrize(
    ("name", "text", "pythons"),
    [
        ("uv.lock", "version = 1\nrequires-python = '>=3.13'\n[[package]]\nname = 'torch'", "3.13 3.14 3.15"),
        ("uv.lock", "version = 1\nrequires-python = '==3.12.*'\n[[package]]\nname = 'torch'", "3.12"),
        ("uv.lock", "version = 1\nrequires-python = '==3.12.7'\n[[package]]\nname = 'torch'", "3.12"),
        ("uv.lock", "version = 1\nrequires-python = '>=3.9, <3.12, !=3.10.*'\n[[package]]\nname = 'torch'", "3.9 3.11"),
        ("pylock.toml", "lock-version = '1.0'\ncreated-by = 'x'\nrequires-python = '~=3.12.4'\npackages = []", "3.12"),
        ("poetry.lock", _METADATA.format(">=3.11,<3.13"), "3.11 3.12"),
        ("poetry.lock", _METADATA.format("^3.12"), "3.12 3.13 3.14"),
        ("poetry.lock", _METADATA.format("~3.12"), "3.12"),
        ("poetry.lock", _METADATA.format("~3.12.3"), "3.12"),
        ("poetry.lock", _METADATA.format("3.12.*"), "3.12"),
        ("poetry.lock", _METADATA.format("~3.9 || >=3.11 <3.13"), "3.9 3.11 3.12"),
        ("poetry.lock", _METADATA.format("*"), ""),
        ("poetry.lock", _METADATA.format("whatever"), ""),
        ("poetry.lock", _METADATA.format("^0a0"), ""),
        ("pdm.lock", f"[metadata]\nlock_version = '4.5.0'\n{_TARGETS}[[package]]\nname = 'torch'", "3.12 3.13"),
        ("pdm.lock", "[metadata]\nlock_version = '4.4'\n[[package]]\nname = 'torch'", ""),
        ("Pipfile.lock", _PIPFILE.format('"python_version": "3.12"'), "3.12"),
        ("Pipfile.lock", _PIPFILE.format('"python_full_version": "3.12.4", "python_version": "3.12"'), "3.12"),
        ("Pipfile.lock", _PIPFILE.format('"python_version": "*"'), ""),
        ("environment.yml", "dependencies: [python=3.12, pytorch=2.5.1]", "3.12"),
        ("environment.yml", "dependencies: [python=3.12.4=h1_0, pytorch=2.5.1]", "3.12"),
        ("environment.yml", "dependencies: ['python 3.12.*', pytorch=2.5.1]", "3.12"),
        ("environment.yml", "dependencies: ['python>=3.12,<3.14', pytorch=2.5.1]", "3.12 3.13"),
        ("environment.yml", "dependencies: ['conda-forge::python >=3.12, <=3.13', pytorch=2.5.1]", "3.12 3.13"),
        ("environment.yml", "dependencies: [\"python[version='3.11|3.12']\", pytorch=2.5.1]", "3.11 3.12"),
        ("environment.yml", "dependencies: [python, pytorch=2.5.1]", ""),
        (
            "environment.yml",
            "dependencies:\n- python>=3.12\n- pip:\n  - torch==2.6.0; python_version<'3.14'",
            "3.12 3.13",
        ),
        ("list.txt", "python=3.12.4=h1_0\npytorch=2.5.1=py3.12_0", "3.12"),
        ("r.txt", "torch==2.5.1; python_version >= '3.13'", "3.13 3.14 3.15"),
        ("r.txt", "x==1; python_version >= '3.13'\ntorch==2.5.1", ""),
        ("r.txt", "torch==2.5.1; python_version < '3.10'\ntorch==2.5.1; python_version == '3.12'", "3.8 3.9 3.12"),
        ("r.txt", "torch==2.5.1; python_full_version == '3.12.7'", "3.12"),
        ("r.txt", f"torch @ {WHL}/cu124/torch-2.6.0%2Bcu124-cp312-cp312-linux_x86_64.whl", "3.12"),
        ("r.txt", f"{WHL}/cu124/torch-2.6.0%2Bcu124-cp312-cp312-linux_x86_64.whl", "3.12"),
    ],
)
def test_a_file_narrows_the_pythons_that_are_possible(name: str, text: str, pythons: str) -> None:
    stated = read(text, name)
    found = [stated.python] if stated.python else list(stated.pythons)
    assert found[:3] == pythons.split()


@pytest.mark.parametrize(
    ("name", "text", "word"),
    [
        ("uv.lock", "version = 1\nrequires-python = '>=3.13'\n[[package]]\nname = 'torch'", "Python >=3.13"),
        ("poetry.lock", _METADATA.format("^3.13"), "Python ^3.13"),
        ("environment.yml", "dependencies: [python=3.13, pytorch=2.5.1]", "Python 3.13"),
        ("r.txt", f"{WHL}/torch-2.6.0-cp313-cp313-linux_x86_64.whl", "Python 3.13 (torch-2.6.0-cp313-cp313-linux"),
        ("pylock.pip.toml", (FILES / "pylock.pip.toml").read_text(), "Python 3.11 (its wheels of torch)"),
    ],
)
def test_a_python_beside_a_file_that_is_for_others_is_refused(name: str, text: str, word: str) -> None:
    with pytest.raises(OtherPython) as raised:
        read(text, name, python="3.12")
    assert str(raised.value).startswith(f"{name}: is for {word}")
    assert str(raised.value).endswith("and Python 3.12 was stated")


def test_without_torch_on_the_python_that_is_stated_no_torch_is_named() -> None:
    stated = read("torch==2.5.1; python_version >= '3.13'", "requirements.txt", python="3.12")
    assert resolve(stated, NAMES, TESTED, WHEELS).note.startswith("This requirements.txt has no torch for Python 3.12")


def test_what_is_installed_is_called_by_its_interpreter() -> None:
    here = freeze()["environment"]
    assert read(here["content"], here["name"]).kind == state_here().kind == "interpreter"
    assert read("knowngood @ file:///src\nnumpy==2.2.6\n").kind == "pip freeze"


# --- requirements.txt and pip freeze ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "pin"),
    [
        ("torch==2.6.0", PinnedPackage("torch", "2.6.0", line=1)),
        ("\ufefftorch==2.6.0\r\n", PinnedPackage("torch", "2.6.0", line=1)),
        ("# a\n\nTorch == 2.6.0+cu124  # why", PinnedPackage("torch", "2.6.0+cu124", line=3)),
        ("torch[opt-einsum]===2.6.0", PinnedPackage("torch", "2.6.0", line=1)),
        ("devscripts==2.22.1ubuntu1\ntorch==2.6.0-my", PinnedPackage("torch", "2.6.0-my", line=2)),
        ("torch>=2.6", PinnedPackage("torch", "", line=1)),
        ("torch==2.6.*", PinnedPackage("torch", "", line=1)),
        ("torch==2.6.0,>=2", PinnedPackage("torch", "2.6.0", line=1)),
        ("torch", PinnedPackage("torch", "", line=1)),
        ("torch==2.6.0 \\\n  --hash=sha256:aa \\\n  --hash=sha256:bb\nx==1", PinnedPackage("torch", "2.6.0", line=1)),
        ("torch==2.6.0 --hash=sha256:aa", PinnedPackage("torch", "2.6.0", line=1)),
        (
            "torch==2.6.0; sys_platform == 'linux' and platform_machine == 'x86_64'",
            PinnedPackage("torch", "2.6.0", line=1),
        ),
        ("torch==2.6.0; platform_system != 'Darwin' and extra == 'gpu'", PinnedPackage("torch", "2.6.0", line=1)),
        (
            f"torch @ {WHL}/cu124/torch-2.6.0%2Bcu124-cp311-cp311-linux_x86_64.whl#sha256=aa",
            PinnedPackage("torch", "2.6.0+cu124", index=f"{WHL}/cu124", line=1),
        ),
        (
            f"{WHL}/cu124/torch-2.6.0%2Bcu124-cp311-cp311-linux_x86_64.whl ; python_version >= '3.9'",
            PinnedPackage("torch", "2.6.0+cu124", index=f"{WHL}/cu124", line=1),
        ),
        (
            f"torch @ {WHL}/cu124/torch-2.6.0%2Bcu124-cp311-cp311-win_amd64.whl",
            PinnedPackage("torch", "2.6.0+cu124", f"{WHL}/cu124/torch-2.6.0%2Bcu124-cp311-cp311-win_amd64.whl", line=1),
        ),
        (
            "torch @ https://me:secret@x.example/torch-2.6.0-cp311-cp311-linux_x86_64.whl?token=secret",
            PinnedPackage("torch", "2.6.0", "https://x.example/torch-2.6.0-cp311-cp311-linux_x86_64.whl", line=1),
        ),
        (
            "./wheels/torch-2.6.0-cp311-cp311-linux_x86_64.whl",
            PinnedPackage("torch", "2.6.0", "./wheels/torch-2.6.0-cp311-cp311-linux_x86_64.whl", line=1),
        ),
        ("torch @ file:///src/pytorch", PinnedPackage("torch", "", "file:///src/pytorch", line=1)),
        (
            "torch @ git+https://github.com/pytorch/pytorch@v2.6.0",
            PinnedPackage("torch", "", "git+https://github.com/pytorch/pytorch@v2.6.0", line=1),
        ),
        (
            "-e git+ssh://git@github.com/pytorch/pytorch.git@abc#egg=torch",
            PinnedPackage("torch", "", "git+ssh://github.com/pytorch/pytorch.git@abc", line=1),
        ),
        (
            "git+https://github.com/pytorch/pytorch.git@abc",
            PinnedPackage("torch", "", "git+https://github.com/pytorch/pytorch.git@abc", line=1),
        ),
        (
            "# Editable install with no version control (torch==2.6.0a0+git1)\n-e /src/pytorch",
            PinnedPackage("torch", "", "/src/pytorch", line=2),
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_line_of_a_requirements_file_is_its_pin(text: str, pin: PinnedPackage) -> None:
    assert torch_of(text, "requirements.txt") == [pin]


@pytest.mark.parametrize(
    "text",
    [
        "torch==2.6.0; sys_platform == 'darwin'",
        "torch==2.6.0 ; platform_machine == 'aarch64'",
        "torch==2.6.0; python_version < '3'",
        "torch==2.6.0; implementation_name == 'pypy'",
        "-e .",
        "./src",
    ],
)
def test_what_is_for_other_machines_or_has_no_name_is_left_out(text: str) -> None:
    assert read(f"x==1\n{text}").pins == (PinnedPackage("x", "1", line=1),)


@pytest.mark.parametrize(
    ("python", "versions"),
    [("", ["2.5.1", "2.6.0"]), ("3.11", ["2.5.1"]), ("3.12", ["2.6.0"]), ("3.13.0", ["2.6.0"])],
)
def test_versions_that_depend_on_a_python_nobody_states_are_all_kept(python: str, versions: list[str]) -> None:
    text = "torch==2.5.1; python_version < '3.12'\ntorch==2.6.0; python_full_version >= '3.12'"
    assert [pin.version for pin in torch_of(text, python=python)] == versions


def test_indexes_are_kept_without_their_logins() -> None:
    text = (
        f"-i https://me:pw@x.example/simple\n{EXTRA}={WHL}/cu126\n{INDEX} a\n-f ./wheels\n--pre\n-c c.txt\ntorch==2.6.0"
    )
    stated = read(text)
    assert stated.indexes == ("https://x.example/simple", f"{WHL}/cu126", "a", "./wheels")
    assert stated.kind == "requirements.txt"


def test_an_extra_index_of_one_variant_is_that_variant() -> None:
    stated = read(f"{EXTRA} {WHL}/cu126\ntorch==2.6.0\n")
    assert resolve(stated, NAMES, TESTED, WHEELS).build == "torch-2.6.0+cu126"


@pytest.mark.parametrize(
    ("head", "python"),
    [
        ("# This file is autogenerated by pip-compile with Python 3.12", "3.12"),
        ("#    uv pip compile --python-version=3.10 requirements.in", "3.10"),
        ("# nothing", ""),
    ],
)
def test_the_python_that_a_compiler_wrote_down_is_stated(head: str, python: str) -> None:
    assert read(f"{head}\ntorch==2.6.0").python == python


def test_what_pip_freeze_repeats_of_a_requirements_file_is_no_inclusion() -> None:
    text = "-r base.txt\n## The following requirements were added by pip freeze:\ntorch==2.6.0\n"
    assert [pin.version for pin in torch_of(text)] == ["2.6.0"]


# --- Locks, written by hand for what the recorded ones do not hold ---------------------------------------------------

_WHEEL = "torch-2.6.0%2Bcu124-cp311-cp311-linux_x86_64.whl"
_TORCH = '[[package]]\nname = "torch"\nversion = "2.6.0"\n'
_UV = f'version = 1\nrequires-python = "==3.11.*"\n{_TORCH}'
_ROOT = '[[package]]\nname = "a"\nsource = { virtual = "." }\n'
_PYLOCK = 'lock-version = "1.0"\ncreated-by = "x"\n[[packages]]\nname = "torch"\n'
_META = '"_meta": {"sources": [{"name": "a", "url": "https://a.example"}, {"name": "b", "url": "https://b.example"}]}'


@pytest.mark.parametrize(
    ("name", "text", "pins"),
    [
        (
            "uv.lock",
            f"{_UV}{_ROOT}dependencies = [{{ name = 'torch', marker = \"sys_platform == 'darwin'\" }}]",
            [],
        ),
        (
            "uv.lock",
            (
                f"{_UV}source = {{ registry = 'https://u:p@x.example/s' }}\n{_ROOT}"
                "[package.dev-dependencies]\ndev = [{ name = 'torch' }]"
            ),
            [PinnedPackage("torch", "2.6.0", index="https://x.example/s", line=3)],
        ),
        (
            "uv.lock",
            f"{_UV}source = {{ url = '{WHL}/cu124/{_WHEEL}' }}\n{_ROOT}dependencies = [{{ name = 'torch' }}]",
            [PinnedPackage("torch", "2.6.0", index=f"{WHL}/cu124", line=3)],
        ),
        (
            "uv.lock",
            f"{_UV}source = {{ directory = '../pytorch' }}",
            [PinnedPackage("torch", "2.6.0", "../pytorch", line=3)],
        ),
        (
            "pylock.toml",
            f"{_PYLOCK}vcs = {{ type = 'git', url = 'https://x.example/p', commit-id = 'abc' }}",
            [PinnedPackage("torch", "", "git+https://x.example/p", line=3)],
        ),
        (
            "pylock.gpu.toml",
            f"{_PYLOCK}directory = {{ path = '../pytorch' }}",
            [PinnedPackage("torch", "", "../pytorch", line=3)],
        ),
        (
            "pylock.toml",
            f"{_PYLOCK}[packages.archive]\nurl = '{WHL}/cu124/{_WHEEL}'\nhashes = {{ sha256 = 'aa' }}",
            [PinnedPackage("torch", "2.6.0+cu124", index=f"{WHL}/cu124", line=3)],
        ),
        (
            "pylock.toml",
            (
                f"{_PYLOCK}version = '2.6.0+cu124'\nmarker = \"'gpu' in extras and sys_platform == 'linux'\"\n"
                f"wheels = [{{ url = '{WHL}/cu124/{_WHEEL}', hashes = {{ sha256 = 'a' }} }}]"
            ),
            [PinnedPackage("torch", "2.6.0+cu124", index=f"{WHL}/cu124/{_WHEEL}", line=3)],
        ),
        (
            "poetry.lock",
            f"{_TORCH}[metadata]\nlock-version = '2.0'\npython-versions = '^3.11'",
            [PinnedPackage("torch", "2.6.0", index="https://pypi.org/simple", line=1)],
        ),
        (
            "poetry.lock",
            (
                f"{_TORCH}markers = {{ main = \"sys_platform == 'win32'\", dev = '' }}\n"
                "[package.source]\ntype = 'git'\nurl = 'https://x.example/p'\n[metadata]\npython-versions = '~3.11'"
            ),
            [PinnedPackage("torch", "2.6.0", "git+https://x.example/p", line=1)],
        ),
        (
            "poetry.lock",
            f"{_TORCH}[package.source]\ntype = 'legacy'\nurl = '{WHL}/cpu'\n[metadata]\nlock-version = '2.1'",
            [PinnedPackage("torch", "2.6.0", index=f"{WHL}/cpu", line=1)],
        ),
        (
            "poetry.lock",
            f"{_TORCH}[package.source]\ntype = 'file'\nurl = 'w/torch.whl'",
            [PinnedPackage("torch", "2.6.0", "w/torch.whl", line=1)],
        ),
        (
            "pdm.lock",
            f"{_TORCH}marker = \"sys_platform == 'linux'\"\nfiles = [{{ url = '{WHL}/cu124/{_WHEEL}' }}]",
            [PinnedPackage("torch", "2.6.0", index=f"{WHL}/cu124/{_WHEEL}", line=1)],
        ),
        ("pdm.lock", f"{_TORCH}marker = \"sys_platform == 'darwin'\"", []),
        (
            "pdm.lock",
            f"{_TORCH}git = 'https://t@x.example/p'\nrevision = 'a'",
            [PinnedPackage("torch", "2.6.0", "git+https://x.example/p", line=1)],
        ),
        ("pdm.lock", f"{_TORCH}path = './t'", [PinnedPackage("torch", "2.6.0", "./t", line=1)]),
        (
            "pdm.lock",
            f"{_TORCH}url = '{WHL}/cu124/{_WHEEL}'",
            [PinnedPackage("torch", "2.6.0", index=f"{WHL}/cu124", line=1)],
        ),
        (
            "Pipfile.lock",
            '{"_meta": {}, "default": {"torch": {"git": "https://t@x.example/p", "ref": "a"}}}',
            [PinnedPackage("torch", "", "git+https://x.example/p")],
        ),
        (
            "Pipfile.lock",
            f'{{{_META}, "default": {{"torch": {{"version": "==2.6.0", "index": "b"}}}}}}',
            [PinnedPackage("torch", "2.6.0", index="https://b.example")],
        ),
        (
            "Pipfile.lock",
            f'{{{_META}, "develop": {{"torch": {{"path": "./t", "version": "*"}}}}}}',
            [PinnedPackage("torch", "", "./t")],
        ),
        (
            "list.json",
            '[{"name": "torch", "version": "2.6.0a0+git1", "editable_project_location": "/src/pytorch"}]',
            [PinnedPackage("torch", "2.6.0a0+git1", "/src/pytorch")],
        ),
    ],
)
def test_a_lock_says_where_its_torch_comes_from(name: str, text: str, pins: list[PinnedPackage]) -> None:
    assert torch_of(text, name) == pins


# --- conda -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "pins"),
    [
        ("pytorch=2.5.1", ["torch 2.5.1"]),
        ("pytorch==2.5.1", ["torch 2.5.1"]),
        ("pytorch 2.5.1", ["torch 2.5.1"]),
        ("pytorch >=2.5", ["torch "]),
        ("pytorch=2.5.*", ["torch "]),
        ("pytorch", ["torch "]),
        ("pytorch=2.5.1=py3.11_cuda12.4_cudnn9.1.0_0", ["torch 2.5.1", "pytorch-cuda 12.4"]),
        ("pytorch 2.5.1 py3.11_cuda12.4_cudnn9.1.0_0", ["torch 2.5.1", "pytorch-cuda 12.4"]),
        ("pytorch=2.6.0=cuda126_mkl_py311_h0_300", ["torch 2.6.0", "pytorch-cuda 12.6"]),
        ("pytorch=2.5.1=cpu_mkl_py311_h0_100", ["torch 2.5.1", "cpuonly "]),
        ("pytorch=2.5.1=py3.11_cpu_0", ["torch 2.5.1", "cpuonly "]),
        ("pytorch-gpu=2.6.0", ["torch 2.6.0"]),
        ("conda-forge::pytorch=2.6.0=*cuda126*", ["torch 2.6.0", "pytorch-cuda 12.6"]),
        ("conda-forge/linux-64::pytorch[version='2.6.0', build='cuda126*']", ["torch 2.6.0", "pytorch-cuda 12.6"]),
        ("pytorch-cuda=12.4", ["pytorch-cuda 12.4"]),
        ("torchtriton=3.1.0", ["triton 3.1.0"]),
        ("_libgcc_mutex=0.1", ["-libgcc-mutex 0.1"]),
    ],
)
def test_a_specification_of_conda_is_its_pins(spec: str, pins: list[str]) -> None:
    found = read(f"channels: [pytorch]\ndependencies:\n- {spec}\n", "environment.yml").pins
    assert [f"{pin.name} {pin.version}" for pin in found] == pins
    assert all(pin.index.startswith("conda:") and pin.line == 3 for pin in found)


def test_pip_inside_an_environment_yml_is_a_requirements_file_with_its_own_lines() -> None:
    text = f"dependencies:\n- python=3.12\n- pip:\n  - {EXTRA} {WHL}/cu126\n  - torch==2.6.0\n"
    stated = read(text, "env.yaml")
    assert stated.all_of("torch") == (PinnedPackage("torch", "2.6.0", line=5),)
    assert (stated.python, stated.indexes) == ("3.12", (f"{WHL}/cu126",))
    with pytest.raises(BadEnvironment, match=r"line 4: includes \"base.txt\""):
        read("dependencies:\n- x\n- pip:\n  - -r base.txt\n", "environment.yml")


def test_an_explicit_list_for_another_platform_is_no_build() -> None:
    text = "@EXPLICIT\nhttps://conda.anaconda.org/pytorch/osx-arm64/pytorch-2.5.1-py3.11_0.tar.bz2\n"
    assert resolve(read(text), NAMES, TESTED, WHEELS).note == "not tested: nothing here is measured on macOS arm64"


def test_a_python_of_conda_that_contradicts_the_stated_one_is_refused() -> None:
    with pytest.raises(BadEnvironment, match=r"environment.yml: is for Python 3.11, and Python 3.12 was stated"):
        read_environment("environment.yml", (FILES / "environment.yml").read_bytes(), python="3.12")


def test_a_list_that_conda_exports_is_read() -> None:
    stated = read("# platform: linux-64\npytorch=2.5.1=py3.11_cuda12.4_0\npython=3.11.9=h1_0\ntriton=3.1.0=pypi_0\n")
    assert resolve(stated, NAMES, TESTED, WHEELS).build == "torch-2.5.1+cu124"
    assert stated.python == "3.11"


# --- Groups of locks, Dockerfiles, pixi, and files that others include ------------------------------------------------


@pytest.mark.parametrize(
    ("name", "groups", "torches"),
    [
        ("uv-conflicts.lock", (), ["2.9.1", "2.9.1+cpu", "2.9.1+cu128"]),
        ("uv-conflicts.lock", ("gpu",), ["2.9.1+cu128"]),
        ("uv-conflicts.lock", ("cpu", "dev"), ["2.9.1+cpu"]),
        ("uv-conflicts.lock", ("dev",), ["2.9.1"]),
        ("uv-extras.lock", ("new",), ["2.6.0"]),
        ("poetry-extras.lock", (), ["2.6.0"]),
        ("poetry-extras.lock", ("GPU",), ["2.6.0"]),
        ("poetry-extras.lock", ("dev",), []),
        ("poetry-extras.lock", ("dev", "all"), ["2.6.0"]),
    ],
)
def test_a_lock_holds_the_torch_of_the_extras_and_groups_that_are_installed(
    name: str, groups: tuple[str, ...], torches: list[str]
) -> None:
    stated = read_environment(
        name.replace("-extras", "").replace("-conflicts", ""), (FILES / name).read_bytes(), groups=groups
    )
    assert sorted(pin.version for pin in stated.all_of("torch")) == torches
    assert bool(stated.all_of("pluggy")) is (name == "poetry-extras.lock" and (not groups or "dev" in groups))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("uv-conflicts.lock", 'no extra or group is called "nope"; the file has cpu, dev, gpu'),
        ("poetry-extras.lock", 'no extra or group is called "nope"; the file has dev, gpu'),
        ("pip-freeze.txt", "pip-freeze.txt: has no groups to be named (pip freeze)"),
    ],
)
def test_a_group_that_a_lock_does_not_have_is_refused(name: str, words: str) -> None:
    with pytest.raises(BadEnvironment) as raised:
        read_environment(name, (FILES / name).read_bytes(), groups=("nope",))
    assert words in str(raised.value)


DOCKERFILES = {
    "an index of one variant, over two lines": (
        (
            "RUN python3 -m pip install --upgrade pip\n"
            "RUN pip install torch==2.3.0+cu121 torchvision==0.18.0+cu121 \\\n"
            f"    {EXTRA} {WHL}/cu121\nRUN pip install git+https://github.com/m-bain/whisperx.git\n"
        ),
        [("pip", ""), ("torch", "2.3.0+cu121"), ("torchvision", "0.18.0+cu121")],
        "",
        f"{WHL}/cu121",
    ),
    "values of ARG and ENV, and Python's own image": (
        (
            "ARG PY=3.12\nFROM --platform=linux/amd64 python:${PY}-slim AS base\nARG TORCH=2.6.0\nENV CUDA=cu124 X=1\n"
            'RUN apt-get update && apt-get install -y git && pip install --no-cache-dir -U "torch==${TORCH}" \\\n'
            f"  'einops>=0.8' {INDEX}={WHL}/${{CUDA}} && rm -rf /x\n"
        ),
        [("torch", "2.6.0"), ("einops", "")],
        "3.12",
        f"{WHL}/cu124",
    ),
    "uv, with a default": ("RUN uv pip install --system torch==${V:-2.8.0}\n", [("torch", "2.8.0")], "", ""),
    "a version that the file does not say": (
        "FROM x\nRUN pip install torch==$V numpy\n",
        [("torch", ""), ("numpy", "")],
        "",
        "",
    ),
    "two images of Python": (
        "FROM python:3.11\nFROM python:3.12\nRUN pip install torch==2.6.0",
        [("torch", "2.6.0")],
        "",
        "",
    ),
    "what is only a comment, or another command": (
        "FROM x\n# RUN pip install torch==2.5.1\nRUN pip download torch==2.4.1; pip install -e . torch==2.6.0 | cat\n",
        [("torch", "2.6.0")],
        "",
        "",
    ),
}


@pytest.mark.parametrize("case", DOCKERFILES)
def test_a_dockerfile_is_what_its_commands_install(case: str) -> None:
    text, pins, python, index = DOCKERFILES[case]
    for name in ("", "Dockerfile", "gpu.dockerfile"):
        stated = read(text, name)
        assert (stated.kind, stated.is_whole, stated.python) == ("Dockerfile", False, python)
        assert [(pin.name, pin.version) for pin in stated.pins if not pin.origin] == pins
        assert stated.indexes == ((index,) if index else ())


PIXI_LOCK = f"""version: 6
environments:
  default:
    channels:
    - url: https://conda.anaconda.org/conda-forge/
    packages:
      linux-64:
      - conda: https://conda.anaconda.org/conda-forge/linux-64/python-3.12.7-hc5c86c4_0_cpython.conda
      - conda: https://conda.anaconda.org/pytorch/linux-64/pytorch-2.5.1-py3.12_cuda12.4_cudnn9.1.0_0.tar.bz2
      win-64:
      - conda: https://conda.anaconda.org/pytorch/win-64/pytorch-2.4.1-py3.12_cuda12.4_cudnn9_0.tar.bz2
  wheels:
    packages:
      linux-64:
      - pypi: {WHL}/cu124/torch-2.6.0%2Bcu124-cp312-cp312-linux_x86_64.whl
      - pypi: ./
  mac:
    packages:
      osx-arm64:
      - conda: https://conda.anaconda.org/conda-forge/osx-arm64/pytorch-2.5.1-cpu_generic_py312_0.conda
packages:
- conda: https://conda.anaconda.org/conda-forge/linux-64/python-3.12.7-hc5c86c4_0_cpython.conda
  depends:
  - libgcc
- pypi: {WHL}/cu124/torch-2.6.0%2Bcu124-cp312-cp312-linux_x86_64.whl
  name: torch
"""
PIXI = """[workspace]
channels = ["pytorch"]
platforms = ["linux-64"]
[dependencies]
python = "3.12.*"
pytorch = { version = "2.5.1", build = "*cuda12.4*", channel = "pytorch" }
numpy = "*"
[feature.wheels.pypi-dependencies]
torch = { version = "==2.6.0", index = "https://download.pytorch.org/whl/cu126" }
[feature.old.target.linux-64.dependencies]
pytorch = "==2.4.1"
"""


@pytest.mark.parametrize(
    ("name", "text", "groups", "torches", "python", "platforms"),
    [
        ("pixi.lock", PIXI_LOCK, ("default",), ["2.5.1"], "3.12", set()),
        ("pixi.lock", PIXI_LOCK, ("wheels",), ["2.6.0+cu124"], "", {"linux-x86_64"}),
        ("pixi.lock", PIXI_LOCK, (), ["2.5.1", "2.6.0+cu124"], "3.12", set()),
        ("pixi.lock", PIXI_LOCK, ("mac",), ["2.5.1"], "", {"macos-arm64"}),
        ("pixi.toml", PIXI, ("wheels",), ["2.5.1", "2.6.0"], "3.12", {"linux-x86_64"}),
        ("pixi.toml", PIXI, ("old",), ["2.4.1", "2.5.1"], "3.12", {"linux-x86_64"}),
        ("pixi.toml", PIXI.partition("[feature")[0].replace("2.5.1", "*"), (), [""], "3.12", {"linux-x86_64"}),
        (
            "pixi.toml",
            PIXI.partition("[feature")[0].replace("linux-64", "osx-arm64"),
            (),
            ["2.5.1"],
            "3.12",
            {"macos-arm64"},
        ),
    ],
)
def test_pixi_states_the_environments_and_features_that_are_installed(
    name: str, text: str, groups: tuple[str, ...], torches: list[str], python: str, platforms: set[str]
) -> None:
    for known_as in (name, "" if name == "pixi.lock" else name):
        stated = read_environment(known_as, text.encode(), groups=groups)
        assert stated.kind == name
        assert sorted(pin.version for pin in stated.all_of("torch")) == torches
        assert (stated.python, set(stated.platforms)) == (python, platforms)


def test_pixi_says_what_its_torch_is_built_for() -> None:
    locked = read_environment("pixi.lock", PIXI_LOCK.encode(), groups=("default",))
    project = read_environment("pixi.toml", PIXI.encode(), groups=("wheels",))
    for stated in (locked, project):
        assert [pin.version for pin in stated.all_of("pytorch-cuda")] == ["12.4"]
    (wheel,) = (pin for pin in project.all_of("torch") if pin.version == "2.6.0")
    assert wheel.index == f"{WHL}/cu126"


def test_a_list_beside_an_exact_torch_is_named_as_not_read() -> None:
    stated = read("torch==2.6.0\n-r base.txt\n--requirement=extra.txt\n")
    assert dict(stated.unread) == {"base.txt": 2, "extra.txt": 3}
    resolved = resolve(stated, NAMES, TESTED, WHEELS)
    assert (resolved.build, resolved.is_whole) == ("torch-2.6.0+cu124", False)
    assert resolved.note.endswith("not read, and what they ask for is not known: base.txt, extra.txt")


def test_the_lines_of_a_file_that_came_along_have_no_numbers() -> None:
    stated = read("numpy==2\n# -r base.txt\n\n\f\ntorch==2.6.0\n", "requirements.txt")
    assert [(pin.name, pin.line) for pin in stated.pins] == [("numpy", 1), ("torch", 0)]


# --- What cannot be read ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("", b"", "the environment: is empty"),
        ("r.txt", b"torch==2.6.0\0", "r.txt, line 1: holds a NUL byte"),
        ("r.txt", b"a==1\nt\xff", "r.txt, line 2: byte 0xff is no UTF-8"),
        ("r.txt", "torch==2.6.0".encode("utf-16"), "r.txt: is UTF-16, which is what PowerShell"),
        ("r.txt", b"x" * (10 << 20), "has 10485760 bytes; lock files of at most 4194304 are read"),
        ("r.txt", b"x" * 40_000, "line 1: has 40000 characters"),
        ("r.txt", b"a==1\n" * 10_001, "line 10001: is beyond the 10000 packages"),
        ("r.txt", b"a==1\n-r base.txt", 'line 2: includes "base.txt", which is not here; give one list'),
        ("r.txt", b"--requirement=https://u:p@x.example/a", 'includes "https://x.example/a"'),
        ("r.txt", b"torch=2.6.0", 'r.txt, line 1: "torch=2.6.0" is no requirement'),
        ("r.txt", b"torch==2.6.0; pythn < '3'", "line 1: "),
        ("r.txt", b"Package Version\n------- -------\ntorch", 'line 3: "torch" has no version'),
        ("r.txt", b"# Name Version Build Channel\ntorch 2.6.0", 'line 2: "torch 2.6.0" is no package of conda'),
        ("r.txt", b"<html>\x1b[31m", "is no requirement"),
        ("r.txt", b"--frobnicate", '"--frobnicate" is no option'),
        ("r.txt", b"-f", '"-f" has no address'),
        ("a; " + "r.txt", b"a; " + b"(" * 3900, "nested too deep"),
        (
            "uv.lock",
            b"version = 1\n[[package]]\nname = 3",
            "uv.lock, line 2: package[0].name is a number; expected text",
        ),
        (
            "uv.lock",
            b"version = 1\n[[package]]\nname = 'a b'",
            'line 2: package[0]: name "a b" is no name of a package',
        ),
        ("uv.lock", b"version = 1\npackage = 3", "package is a number; expected a list"),
        ("uv.lock", b"version = 1\npackage = [3]", "package[0] is a number; expected a table"),
        ("uv.lock", b"version = 1\nversion = 2", "uv.lock, line 2: is not TOML: Cannot overwrite a value"),
        ("uv.lock", b"version = 1\n[", "line 2: is not TOML"),
        ("uv.lock", b"a = " + b"[" * 20_000, "uv.lock: is nested too deep"),
        ("uv.lock", b"a." * 15_000 + b"b = 1", "line 1: has a key of more than 12 parts"),
        ("uv.lock", b"[[package]]\nname = 'a'", "uv.lock: has no version"),
        ("uv.lock", b"a = " + b"9" * 5000, "is not TOML that can be read"),
        ("uv.lock", b"version=1\n[[package]]\nname='a'\nresolution-markers=['x y']", 'line 2: "x y" is no marker'),
        ("uv.lock", b"version=1\nrequires-python='<3'", 'Python "<3" is none that torch has wheels for'),
        ("pylock.toml", b"lock-version = '2.0'\ncreated-by = 'x'\npackages = []", "lock-version 1.0 is read"),
        ("pylock.toml", b"lock-version = '1.0'", "pylock.toml: Missing required value in 'created-by'"),
        ("pylock.toml", b"lock-version = '1.0'\ncreated-by = 'x'\npackages = [{name = 'A'}]", "'packages[0].name'"),
        ("poetry.lock", b"[[package]]\nname = 'torch'\nversion = '2 6'", 'version "2 6" is no version'),
        ("poetry.lock", b"metadata = 1", "metadata is a number; expected a table"),
        ("pdm.lock", b"metadata = { targets = 1 }", "metadata.targets is a number; expected a list"),
        ("pyproject.toml", b"x", "pyproject.toml, line 1: is not TOML"),
        ("x.toml", b"a = 1", "x.toml: is no lock file that is read"),
        ("Pipfile.lock", b"{", "Pipfile.lock, line 1: is not JSON"),
        ("Pipfile.lock", b"[]", 'without "_meta"'),
        ("Pipfile.lock", b'{"_meta": {}, "_meta": {}}', 'key "_meta" is a duplicate in one object'),
        ("Pipfile.lock", b'{"_meta": {}, "default": {"torch": 1}}', "default.torch is a number; expected a table"),
        ("Pipfile.lock", b'{"_meta": {}, "default": {"torch": {"markers": "x"}}}', '"x" is no marker'),
        ("Pipfile.lock", b'{"a": ' + b"[" * 100_000, "is nested too deep"),
        ("Pipfile.lock", b'{"a": ' + b"9" * 5000 + b"}", "is not JSON that can be read"),
        ("l.json", b'[{"name": "torch", "version": null}]', "package[0].version is null; expected text"),
        ("l.json", b"[" * 100_000, "is nested too deep"),
        ("e.yml", b"a", "e.yml, line 1: is no mapping"),
        ("e.yml", b"name: a", "line 1: has no list of dependencies"),
        ("e.yml", b"name: a\ndependencies: b", "line 2: has no list of dependencies"),
        ("e.yml", b"dependencies: []\ndependencies: []", 'line 2: "dependencies" is a duplicate key'),
        ("e.yml", b"dependencies:\n- [a]", "line 2: is a list or a mapping where a text is expected"),
        ("e.yml", b"dependencies:\n- a b c d", 'line 2: "a b c d" is no package of conda'),
        ("e.yml", b"a: [", "is not YAML"),
        ("e.yml", b"a: *b", "line 1: is not YAML"),
        ("e.yml", b"a: \x07", "is not YAML"),
        ("e.yml", b"- " * 900, "is nested too deep"),
        ("e.yml", b"#\n" * 100_000, "such a file is read up to 131072"),
        ("x.txt", b"@EXPLICIT\nhttps://x.example/a", "line 2: "),
        ("Dockerfile", b"#\n" * 300_000, "such a file is read up to 524288"),
        ("Dockerfile", b"RUN pip install -r r.txt", 'line 1: includes "r.txt", which is not here'),
        ("pixi.lock", b"  a:\n      linux-64:\n" + b"      - pypi: a\n" * 10_001, "line 10003: is beyond the 10000"),
        ("pixi.lock", b"  a:\n      linux-64:\n      - conda: x", 'line 3: "x" is no package of conda'),
        ("pixi.toml", b"[dependencies]\ntorch = 3", "dependencies.torch is a number; expected a table"),
    ],
    ids=lambda value: repr(value)[:60],
)
def test_what_cannot_be_read_says_where_and_what_to_do(name: str, content: bytes, words: str) -> None:
    with pytest.raises(BadEnvironment) as raised:
        read_environment(name, content)
    assert words in str(raised.value)
    assert len(str(raised.value)) < 500
    assert str(raised.value).isprintable()


def test_a_python_that_is_none_is_refused() -> None:
    with pytest.raises(BadEnvironment, match='Python "three" is none'):
        read("torch==2.6.0", python="three")


def test_the_name_of_a_file_is_shown_without_its_folder() -> None:
    with pytest.raises(BadEnvironment, match=r"^uv\.lock: is empty"):
        read("", "/somewhere/secret\\x/uv.lock")


# --- Nothing else is ever raised -------------------------------------------------------------------------------------

_NAMES = [
    "",
    "uv.lock",
    "pylock.toml",
    "poetry.lock",
    "pdm.lock",
    "Pipfile.lock",
    "environment.yml",
    "requirements.txt",
    "a.json",
]
_LINES = [
    "torch==2.6.0",
    "torch @ git+https://x.example/y",
    "-e .",
    "-r x",
    "--hash=sha256:a",
    "\\",
    "@EXPLICIT",
    "dependencies:",
    "- pytorch=2.5.1",
    "- pytorch-cuda=1+1",
    "- pytorch-cuda=12.4",
    "- python>=3.12|3.9.*",
    "- cpuonly",
    "[[metadata.targets]]",
    'requires_python = ">=3.11,<3.13"',
    'python-versions = "^3.11"',
    "- pip:",
    "  - torch==2.6.0",
    "[[package]]",
    "[[packages]]",
    'name = "torch"',
    'version = "2.6.0"',
    'lock-version = "1.0"',
    'created-by = "x"',
    "version = 1",
    'source = { git = "x" }',
    "source = 1",
    "[metadata]",
    "marker = \"python_version < '3.12'\"",
    "markers = \"extra == 'a'\"",
    "resolution-markers = [1]",
    "wheels = [{}]",
    'dependencies = [{ name = "torch", version = "2.6.0" }]',
    'requires-python = ">=3.11"',
    "x=1=2",
    "a" * 300,
    "'",
    '"',
    "{",
    "[",
    "torch==2.6.0; python_version in '3.11 3.12'",
    "torch==2.6.0; platform_release >= '5'",
    "https://x.example/%ff-1.whl",
    "torch @ http://[::1",
    "./torch-2.6.0-cp311-cp311-linux_x86_64.whl",
    "&a [*a]",
    "? x",
    "!!python/object:os.system x",
]
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.sampled_from(["torch", "==2.6.0", "./x"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["_meta", "default", "torch", "version", "name", "git", "path", "markers", "sources", "url"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)
_TEXTS = (
    st.lists(st.sampled_from(_LINES), max_size=12).map("\n".join)
    | st.text(max_size=200)
    | _JSON.map(json.dumps)
    | st.builds(lambda found: json.dumps({"_meta": {}, "default": found}), _JSON)
)


@given(st.sampled_from(_NAMES), _TEXTS.map(str.encode) | st.binary(max_size=100), st.sampled_from(["", "3.11"]))
def test_whatever_a_file_holds_it_is_read_or_refused(name: str, content: bytes, python: str) -> None:
    with contextlib.suppress(BadEnvironment):
        resolve(read_environment(name, content, python=python), NAMES, TESTED, WHEELS)


_SPECIFIERS = st.text(alphabet="^~=<>!|, .*0123456789abrc", max_size=20)


@given(_SPECIFIERS, st.sampled_from(["12.4", "1+1", "12.*"]) | st.text(max_size=5), st.sampled_from(["", "3.12"]))
def test_whatever_a_specifier_says_it_is_read_or_refused(wanted: str, cuda: str, python: str) -> None:
    conda = f"dependencies:\n- 'pytorch=2.6.0'\n- 'pytorch-cuda={cuda}'\n- 'python{wanted}'\n"
    for name, text in [("environment.yml", conda), ("poetry.lock", _METADATA.format(wanted))]:
        with contextlib.suppress(BadEnvironment):
            resolve(read(text, name, python=python), NAMES, TESTED, WHEELS)


@given(st.data())
def test_a_damaged_lock_is_read_or_refused(data: st.DataObject) -> None:
    name = data.draw(
        st.sampled_from(["uv-git.lock", "uv-none.lock", "environment.yml", "explicit.txt", "pip-list.json"])
    )
    content = bytearray((FILES / name).read_bytes())
    for _ in range(data.draw(st.integers(1, 6))):
        at = data.draw(st.integers(0, len(content) - 1))
        content[at : at + data.draw(st.integers(0, 20))] = data.draw(st.binary(max_size=4) | st.just(b'"'))
    with contextlib.suppress(BadEnvironment):
        read_environment(name, bytes(content))


# --- The running interpreter -----------------------------------------------------------------------------------------


def test_what_is_installed_here_is_what_the_interpreter_says_and_torch_is_not_imported() -> None:
    stated = state_here()
    said = {str(canonicalize_name(one.metadata["Name"])): one.version for one in distributions()}
    assert {pin.name: pin.version for pin in stated.pins} == said
    assert stated.python == f"{sys.version_info.major}.{sys.version_info.minor}"
    assert "torch" not in sys.modules


def test_the_first_folder_counts_and_two_versions_in_one_are_both_stated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a/torch-2.6.0+cu124.dist-info", "b/torch-2.5.1.dist-info", "b/x-1.dist-info", "b/x-2.dist-info"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "b" / "~orch-2.5.1.dist-info").mkdir()
    direct = {"url": "https://u:p@x.example/y", "vcs_info": {"vcs": "git"}}
    (tmp_path / "b" / "x-2.dist-info" / "direct_url.json").write_text(json.dumps(direct))
    monkeypatch.setattr(sys, "path", [str(tmp_path / "none"), str(tmp_path / "a"), str(tmp_path / "b")])
    stated = state_here()
    assert [pin.version for pin in stated.all_of("torch")] == ["2.6.0+cu124"]
    assert stated.all_of("x") == (PinnedPackage("x", "1"), PinnedPackage("x", "2", "git+https://x.example/y"))
