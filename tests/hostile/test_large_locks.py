"""Files of two thousand packages, as their tools write them, are read whole."""

import json
from collections.abc import Callable, Iterator

import pytest

from knowngood.environments.detect import read_environment

MANY = 2_000
_HASH = "sha256:" + "0123456789abcdef" * 4
_URL = "https://files.pythonhosted.org/packages/aa/bb/" + "c" * 60


def _wheels(name: str, at: int) -> Iterator[str]:
    for python in ("cp310", "cp311", "cp312", "cp313"):
        yield f"{name.replace('-', '_')}-1.0.{at}-{python}-{python}-manylinux_2_28_x86_64.whl"


def _packages() -> Iterator[tuple[int, str, str]]:
    """Each with its number and a list that names the five after it."""
    for at in range(MANY):
        yield at, f"package-{at}", ", ".join(f'{{ name = "package-{(at + one) % MANY}" }}' for one in range(1, 6))


def uv_lock() -> str:
    parts = ['version = 1\nrevision = 3\nrequires-python = ">=3.10"\n']
    parts += [
        f'[[package]]\nname = "{name}"\nversion = "1.0.{at}"\nsource = {{ registry = \'https://pypi.org/simple\' }}\n'
        f"dependencies = [\n    {needs},\n"
        f'    {{ name = "package-{at % 7}", marker = "python_full_version < \'3.{at % 4 + 10}\' and sys_platform != '
        f"'win{at % 40}'\" }},\n]\n"
        f'sdist = {{ url = "{_URL}/{name}.tar.gz", hash = "{_HASH}", size = 12345 }}\nwheels = [\n'
        + "".join(f'    {{ url = "{_URL}/{file}", hash = "{_HASH}", size = 12345 }},\n' for file in _wheels(name, at))
        + "]\n"
        for at, name, needs in _packages()
    ]
    own = '[[package]]\nname = "own"\nversion = "0.1"\nsource = { virtual = "." }\n'
    own += 'dependencies = [{ name = "package-0" }]'
    return "\n".join([*parts, own])


def poetry_lock() -> str:
    files = "".join(f'    {{file = "{file}", hash = "{_HASH}"}},\n' for file in _wheels("p", 1))
    parts = [
        f'[[package]]\nname = "{name}"\nversion = "1.0.{at}"\ndescription = "a.b.c.d"\noptional = false\n'
        f'python-versions = ">=3.9"\ngroups = ["main"]\nmarkers = "python_version >= \\"3.{at % 9}\\""\n'
        f'files = [\n{files}]\n\n[package.dependencies]\npackage-{(at + 1) % MANY} = ">=1"\n\n'
        '[package.extras]\nx = ["y"]\n'
        for at, name, _ in _packages()
    ]
    return "\n".join([*parts, '[metadata]\nlock-version = "2.1"\npython-versions = ">=3.10,<3.14"\n'])


def pdm_lock() -> str:
    files = "".join(f'    {{file = "{file}", hash = "{_HASH}"}},\n' for file in _wheels("p", 1))
    parts = [
        f'[[package]]\nname = "{name}"\nversion = "1.0.{at}"\nrequires_python = ">=3.9"\nsummary = "it\'s"\n'
        f'groups = ["default"]\nmarker = "python_version >= \\"3.{at % 9}\\""\n'
        f'dependencies = [\n    "package-{(at + 1) % MANY}>=1",\n]\nfiles = [\n{files}]\n'
        for at, name, _ in _packages()
    ]
    head = (
        '[metadata]\ngroups = ["default"]\nlock_version = "4.5.0"\n[[metadata.targets]]\nrequires_python = ">=3.10"\n'
    )
    return "\n".join([head, *parts])


def pylock() -> str:
    parts = [
        f'[[packages]]\nname = "{name}"\nversion = "1.0.{at}"\nindex = "https://pypi.org/simple"\n'
        f'marker = "python_version >= \'3.{at % 9}\'"\nrequires-python = ">=3.{at % 10}"\nwheels = [\n'
        + "".join(f'    {{ url = "{_URL}/{file}", hashes = {{ sha256 = "00" }} }},\n' for file in _wheels(name, at))
        + "]\n"
        for at, name, _ in _packages()
    ]
    return "\n".join(['lock-version = "1.0"\ncreated-by = "uv"\nrequires-python = ">=3.10"\n', *parts])


def pipfile_lock() -> str:
    found = {
        name: {
            "hashes": [_HASH] * 20,
            "index": "pypi",
            "markers": f"python_version >= '3.{at % 9}'",
            "version": f"==1.{at}",
        }
        for at, name, _ in _packages()
    }
    meta = {"requires": {"python_version": "3.11"}, "sources": [{"name": "pypi", "url": "https://pypi.org/simple"}]}
    return json.dumps({"_meta": meta, "default": found, "develop": {}}, indent=4)


def _lines(line: str, head: str = "") -> str:
    return head + "\n".join(line.replace("%d", str(at)) for at in range(MANY)) + "\n"


MADE: dict[str, Callable[[], str]] = {
    "uv.lock": uv_lock,
    "poetry.lock": poetry_lock,
    "pdm.lock": pdm_lock,
    "pylock.toml": pylock,
    "Pipfile.lock": pipfile_lock,
    "environment.yml": lambda: (
        _lines("  - p%d=1.%d=py311_0", "channels:\n  - conda-forge\ndependencies:\n")
        + _lines("    - q%d==1.%d", "  - pip:\n")
    ),
    "conda.txt": lambda: _lines("p%d     1.%d    py311_0    conda-forge", "# Name  Version  Build  Channel\n"),
    "pixi.lock": lambda: _lines(
        "      - conda: https://conda.anaconda.org/conda-forge/linux-64/p%d-1.%d-0.conda",
        "environments:\n  default:\n    packages:\n      linux-64:\n",
    ),
    "pixi.toml": lambda: _lines('p%d = "==1.%d"', "[dependencies]\n"),
    "Dockerfile": lambda: _lines("RUN pip install p%d==1.%d"),
    "explicit.txt": lambda: _lines("https://conda.anaconda.org/conda-forge/linux-64/p%d-1.%d-0.conda", "@EXPLICIT\n"),
    "requirements.txt": lambda: _lines(
        f"p%d==1.%d ; python_version >= '3.10' \\\n    --hash={_HASH} \\\n    --hash={_HASH}\n    # via p0"
    ),
    "pip-freeze.txt": lambda: _lines("p%d==1.%d"),
    "pip-list.txt": lambda: _lines("p%d   1.%d", "Package Version\n------- -------\n"),
    "pyproject.toml": lambda: (
        _lines("  'p%d==1.%d',", "[project]\nname = 'x'\ndependencies = [\n")
        + _lines("  'q%d==1.%d',", "]\n[dependency-groups]\ndev = [\n")
        + "]\n"
    ),
}
_COUNTS = {"uv.lock": MANY + 1, "environment.yml": 2 * MANY, "pyproject.toml": 2 * MANY}


@pytest.mark.sample(4, "system")
@pytest.mark.parametrize("name", MADE)
def test_a_file_of_two_thousand_packages_is_read_whole(name: str) -> None:
    found = read_environment(name, MADE[name]().encode())
    assert len(found.pins) == _COUNTS.get(name, MANY)
    assert all(pin.version for pin in found.pins)
