"""`knowngood try-bump` as people run it: real processes and environments, toy projects and toy wheels."""

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from importlib.metadata import distribution
from pathlib import Path

import pytest
from uv import find_uv_bin

from knowngood.domain.issue import digest
from knowngood.measure.projects.environments import versions_in
from tests.given_toys import Installation, make_installation
from tests.make_wheels import make_torch, make_wheel, make_wheels

_BACKEND = """\
import zipfile

def build_editable(folder, config_settings=None, metadata_directory=None):
    name = "toy-1.5-py3-none-any.whl"
    with zipfile.ZipFile(f"{folder}/{name}", "w") as wheel:
        import os
        wheel.writestr("toy.pth", os.path.abspath("src") + "\\n")
        wheel.writestr("toy-1.5.dist-info/METADATA", "Metadata-Version: 2.1\\nName: toy\\nVersion: 1.5\\n")
        wheel.writestr("toy-1.5.dist-info/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr("toy-1.5.dist-info/RECORD", "")
    return name
"""
_TESTS = """\
import importlib.metadata, os, socket
import pytest, torch.version
import part, toy

def test_installed():
    assert importlib.metadata.version("toy") == "1.5"
    assert "SECRET" not in str(os.environ).upper()

class TestKernel:
    @pytest.mark.parametrize("shape", ["2x3", "a b::c"])
    def test_sum(self, shape):
        if torch.version.IS_AFFECTED:
            left(60)

def left(depth):
    if not depth:
        raise RuntimeError("the toy is broken at size 3\\n\\nSee the manual.")
    right(depth - 1)

def right(depth):
    left(depth)

def test_network():
    with open("written-by-a-test", "w"):
        pass
    socket.create_connection(("127.0.0.1", 9), 1)

@pytest.mark.skip
def test_skipped():
    pass
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Installation:
    wheels = make_wheels(tmp_path_factory.mktemp("wheels"))
    make_torch(wheels, "0.0.4", imported="0.0.4+mini", is_affected=True)
    tools = ("pytest", "pluggy", "iniconfig", "packaging", "pygments")
    for name in tools:
        make_wheel(wheels, name, distribution(name).version, _files_of(name), *(tools[1:] if name == "pytest" else ()))
    make_wheel(wheels, "mini_vision", "1.0", {"mini_vision.py": "WORKS = True\n"}, "torch==0.0.2")
    make_wheel(wheels, "mini_vision", "2.0", {"mini_vision.py": "WORKS = False\n"}, "torch>=0.0.4")
    make_wheel(wheels, "mini_old", "1.0", {"mini_old.py": ""}, "torch==0.0.2")
    return make_installation(tmp_path_factory.mktemp("home"), wheels)


def _files_of(name: str) -> Mapping[str, str]:
    found = distribution(name)
    files = [file for file in found.files or () if file.suffix == ".py" and ".." not in file.parts]
    return {str(file): Path(str(found.locate_file(file))).read_text(encoding="utf-8") for file in files}


def project(folder: Path, requirements: str, **tests: str) -> Path:
    (folder / "tests").mkdir(parents=True)
    (folder / "requirements.txt").write_text(requirements, encoding="utf-8")
    for name, text in tests.items():
        (folder / "tests" / f"test_{name}.py").write_text(text, encoding="utf-8")
    return folder


def git(folder: Path, *arguments: str) -> None:
    who = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false")
    subprocess.run(["git", "-C", folder, *who, *arguments], check=True, capture_output=True)


def files_in(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.system
def test_a_break_by_torch_is_found_by_ids_and_the_checkout_stays_as_it_was(home: Installation, tmp_path: Path) -> None:
    folder = project(tmp_path / "p", "torch==0.0.2\n-e ./part\n", kernel=_TESTS)
    for name, place in (("toy", folder), ("part", folder / "part")):
        (place / "src").mkdir(parents=True)
        (place / "src" / f"{name}.py").write_text("", encoding="utf-8")
        (place / "backend.py").write_text(_BACKEND.replace("toy", name), encoding="utf-8")
        system = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
        about = f'[project]\nname = "{name}"\nversion = "1.5"\ndependencies = ["torch<0.0.4"]\n'
        (place / "pyproject.toml").write_text(about + system, encoding="utf-8")
    git(folder, "init", "-q")
    git(folder, "add", ".")
    before, ask = files_in(folder), ("try-bump", "--project", str(folder), "--to", "0.0.4")

    priced = home.command(*ask, "--dry-run")
    assert (priced.returncode, priced.stdout) == (0, ""), priced.stderr
    assert priced.stderr.startswith("2 environments: ")
    assert not list((home.data / "bumps").glob("*/*.json"))

    told = home.command(*ask)
    assert told.returncode == 1, told.stderr
    assert told.stdout.startswith("Not yet: 2 of your 4 tests fail on torch 0.0.4 and not on 0.0.2; 0 of them known")
    lines = [" ".join(line.split()) for line in told.stdout.splitlines()]
    assert "tests/test_kernel.py::TestKernel::test_sum[a b::c] fails 4 of 4" in lines
    assert "RuntimeError: the toy is broken at size 3" in lines
    assert "fail on both: 1 skipped on both: 1 pass on both: 1" in lines
    assert "moved with torch 0.0.2 -> 0.0.4: nothing" in lines
    assert "knowngood try FILE --keep" in told.stdout
    assert files_in(folder) == before
    assert not list((home.data / "bumps").glob("*/environments"))

    again = home.command(*ask, "--json")
    assert again.returncode == 1
    assert again.stderr.startswith("nothing to run")
    (target,) = json.loads(again.stdout)["targets"]
    assert target["changes"]["fails on both"] == ["tests/test_kernel.py::test_network"]
    assert [(each["fails"], each["runs"]) for each in target["new_failures"]] == [(4, 4), (4, 4)]
    assert "RuntimeError: the toy is broken at size 3" in target["new_failures"][0]["text"]
    note = home.command(*ask, "--format", "markdown").stdout
    assert "| 0.0.2 | 3 | 1 | 1 |  | as it is |\n| 0.0.4 | 1 | 3 | 1 | 2 | not yet |\n" in note


@pytest.mark.system
def test_a_pair_moves_with_torch_and_its_break_is_found(home: Installation, tmp_path: Path) -> None:
    text = "import mini_vision\n\ndef test_vision():\n    assert mini_vision.WORKS\n\ndef test_other():\n    pass\n"
    folder = project(tmp_path / "p", "torch==0.0.2\nmini-vision==1.0\n", vision=text)
    told = home.command("try-bump", "--project", str(folder), "--to", "0.0.4")
    assert told.returncode == 1, told.stdout + told.stderr
    assert told.stdout.startswith("Not yet: 1 of your 2 tests fails on torch 0.0.4 and not on 0.0.2")
    assert "moved with torch 0.0.2 -> 0.0.4: mini-vision 1.0 -> 2.0\n" in told.stdout


def test_what_cannot_be_installed_together_is_not_yet_with_the_resolvers_words(
    home: Installation, tmp_path: Path
) -> None:
    folder = project(tmp_path / "p", "torch==0.0.2\nmini-old==1.0\n", a="def test_a():\n    pass\n")
    told = home.command("try-bump", "--project", str(folder), "--to", "0.0.4")
    assert told.returncode == 1, told.stderr
    assert told.stdout.startswith("Not yet: torch 0.0.4 cannot be installed with what the project has.\n")
    assert "mini-old" in told.stdout


@pytest.mark.system
def test_a_flaky_test_is_no_new_failure_and_on_one_side_alone_it_cannot_be_said(
    home: Installation, tmp_path: Path
) -> None:
    counters = [Path("/dev/shm") / f"bump-{digest(str(tmp_path))}-{at}" for at in (1, 2)]  # noqa: S108 - what all runs see
    text = f"""import os, torch.version
def _count(counter):
    file = os.open(counter, os.O_CREAT | os.O_APPEND | os.O_WRONLY)
    os.write(file, b"x")
    return os.lseek(file, 0, os.SEEK_CUR) % 2
def test_sound(): pass
def test_always(): assert _count({str(counters[0])!r})
def test_now(): assert not torch.version.IS_AFFECTED or not _count({str(counters[1])!r})
"""
    try:
        folder = project(tmp_path / "p", "torch==0.0.2\n", a=text)
        told = home.command("try-bump", "--project", str(folder), "--to", "0.0.4")
    finally:
        for counter in counters:
            counter.unlink(missing_ok=True)
    assert told.returncode == 3, told.stdout + told.stderr
    assert told.stdout.startswith("Cannot say: 1 test cannot be settled between torch 0.0.2 and 0.0.4.\n")
    assert "tests/test_a.py::test_now    fails 0 of 4 before and 2 of 4 after: flaky\n" in told.stdout
    assert "flaky on both: 1   pass on both: 1\nflaky on both: tests/test_a.py::test_always\n" in told.stdout


@pytest.mark.system
def test_a_crash_or_no_test_at_all_is_never_ok(home: Installation, tmp_path: Path) -> None:
    crash = "import os, torch.version\n\ndef test_a():\n    os.kill(os.getpid(), 11 * torch.version.IS_AFFECTED)\n"
    folder = project(tmp_path / "p", "torch==0.0.2\n", a=crash, b="x = 1\n")
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "one")
    (folder / "requirements.txt").write_text("torch==0.0.4\n", encoding="utf-8")
    ask = ("try-bump", "--project", str(folder), "--from-diff", "--base", "main")
    told = home.command(*ask)
    assert told.returncode == 3, told.stdout + told.stderr
    assert told.stdout.startswith("Cannot say: the tests could not be run on torch 0.0.4: SIGSEGV, no results written")
    told = home.command(*ask, "tests/test_b.py")
    assert told.returncode == 3, told.stdout + told.stderr
    assert told.stdout.startswith("Cannot say: the tests could not be run on torch 0.0.2: no test was collected")


_LOCKED_BY = {  # what the tool itself writes; Poetry's is a real one, cut down
    "uv.lock": ("lock",),
    "pylock.toml": ("pip", "compile", "pyproject.toml", "--format", "pylock.toml", "-o", "pylock.toml"),
    "requirements.txt": ("pip", "compile", "pyproject.toml", "--generate-hashes", "-o", "requirements.txt"),
    "poetry.lock": (),
}
_POETRY = """\
[[package]]
name = "{name}"
version = "{version}"
description = ""
optional = false
python-versions = ">=3.9"
groups = ["main"]
markers = "platform_system == \\"{system}\\""
files = []

"""


@pytest.mark.parametrize("lock", _LOCKED_BY)
def test_each_kind_of_lock_is_taken_as_it_stands(home: Installation, tmp_path: Path, lock: str) -> None:
    (folder := tmp_path / "p").mkdir()
    about = '[project]\nname = "toy"\nversion = "1"\nrequires-python = ">=3.9"\n'
    (folder / "pyproject.toml").write_text(f'{about}dependencies = ["torch<0.0.3", "mini-extra"]\n', encoding="utf-8")
    packages = [("torch", "0.0.2", "Linux"), ("mini-extra", "1.0", "Linux"), ("colorama", "0.4.6", "Windows")]
    packages += [("nvidia-cublas", version, "Linux") for version in ("13.1.1.3", "13.10.0.20")]
    blocks = [_POETRY.format(name=name, version=version, system=system) for name, version, system in packages]
    metadata = '[metadata]\nlock-version = "2.1"\npython-versions = ">=3.9"\ncontent-hash = ""\n'
    (folder / "poetry.lock").write_text("".join((*blocks, metadata)), encoding="utf-8")
    if how := _LOCKED_BY[lock]:
        links = ("--no-index", "--find-links", home.environment["PIP_FIND_LINKS"], "--python", sys.executable)
        subprocess.run([find_uv_bin(), *how, "-q", *links], cwd=folder, check=True)
    ask = ("try-bump", "--project", str(folder), "--lock", lock, "--to", "0.0.4", "--dry-run")
    told = home.command(*ask, KNOWNGOOD_DATA_DIR=str(tmp_path / "data"))
    assert (told.returncode, told.stderr[:16]) == (0, "2 environments: "), told.stderr
    locks = {file.read_text(encoding="utf-8") for file in (tmp_path / "data" / "bumps").glob("*/*.pylock")}
    found = sorted((versions["torch"], versions["mini-extra"]) for versions in map(versions_in, locks))
    assert found == [("0.0.2", "1.0"), ("0.0.4", "1.0")]


def test_a_repository_and_a_folder_of_a_pylock_stay_what_they_are(home: Installation, tmp_path: Path) -> None:
    own, folder = tmp_path / "own", project(tmp_path / "p", "")
    for place, name in ((own, "own"), (folder / "part", "part")):
        place.mkdir()
        (place / "pyproject.toml").write_text(f'[project]\nname = "{name}"\nversion = "3"\n', encoding="utf-8")
    git(own, "init", "-q")
    git(own, "add", ".")
    git(own, "commit", "-q", "-m", "one")
    commit = subprocess.run(["git", "-C", own, "rev-parse", "HEAD"], check=True, capture_output=True).stdout.decode()
    (folder / "pylock.toml").write_text(
        'lock-version = "1.0"\ncreated-by = "toy"\n'
        '[[packages]]\nname = "torch"\nversion = "0.0.2"\n[[packages.wheels]]\n'
        'url = "https://example.org/torch-0.0.2-py3-none-any.whl"\nhashes = {sha256 = "00"}\n'
        f'[[packages]]\nname = "own"\n[packages.vcs]\ntype = "git"\nurl = "file://{own}"\n'
        f'commit-id = "{commit.strip()}"\n'
        '[[packages]]\nname = "part"\n[packages.directory]\npath = "part"\neditable = true\n',
        encoding="utf-8",
    )
    told = home.command(
        "try-bump", "--project", str(folder), "--to", "0.0.4", "--dry-run", KNOWNGOOD_DATA_DIR=str(tmp_path / "data")
    )
    assert told.returncode == 0, told.stderr
    locks = {file.read_text(encoding="utf-8") for file in (tmp_path / "data" / "bumps").glob("*/*.pylock")}
    assert sorted(versions_in(lock)["torch"] for lock in locks) == ["0.0.2", "0.0.4"]
    for lock in locks:
        assert f'commit-id = "{commit.strip()}"' in lock
        assert 'directory = { path = "part", editable = true }' in lock


def test_a_repository_in_a_lock_that_is_not_exact_is_refused(home: Installation, tmp_path: Path) -> None:
    (folder := tmp_path / "p").mkdir()
    git = '[package.source]\ntype = "git"\nurl = "https://example.org/own.git"\nreference = "main"\n\n'
    blocks = [_POETRY.format(name=name, version="0.0.2", system="Linux") for name in ("torch", "own")]
    (folder / "poetry.lock").write_text(f'{"".join(blocks)}{git}[metadata]\nlock-version = "2.1"\n', encoding="utf-8")
    told = home.command("try-bump", "--project", str(folder), "--to", "0.0.4")
    assert (told.returncode, told.stdout) == (2, "")
    assert "poetry.lock has own from git+" in told.stderr
    assert "export it as requirements.txt" in told.stderr


def test_ctrl_c_ends_the_wait_for_an_index_at_once_in_one_line(home: Installation, tmp_path: Path) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as silent,
        subprocess.Popen(
            [sys.executable, "-m", "knowngood", "try-bump", "--project", project(tmp_path / "p", "torch==0.0.2\n")],
            env={
                **home.environment,
                "PIP_FIND_LINKS": "",
                "PIP_NO_INDEX": "",
                "UV_DEFAULT_INDEX": f"http://127.0.0.1:{silent.getsockname()[1]}/simple",
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process,
    ):
        with silent.accept()[0]:
            process.send_signal(signal.SIGINT)
        told, said = process.communicate(timeout=60)
    assert (process.returncode, told, said.splitlines()[-1]) == (1, "", "knowngood: stopped")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--project", "/nonexistent"), "Directory '/nonexistent' does not exist"),
        (("--lock", "poetry.lock"), "poetry.lock states no environment; name a file of the project"),
        (("--from-diff", "--to", "0.0.4"), "--from-diff compares two locks"),
        (("--to", "next"), "next"),
        (("--gpu",), "--gpu: no GPU is to be seen here"),
        (("--python", "2.7"), "Python 2.7 is not on this machine"),
    ],
)
def test_a_question_that_cannot_be_asked_is_refused(
    home: Installation, tmp_path: Path, options: tuple[str, ...], sentence: str
) -> None:
    folder = project(tmp_path / "p", "torch==0.0.2\n")
    told = home.command("try-bump", "--project", str(folder), *options, CUDA_VISIBLE_DEVICES="")
    assert (told.returncode, told.stdout) == (2, "")
    assert sentence in told.stderr
