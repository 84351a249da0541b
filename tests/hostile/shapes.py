"""Texts that were slow or large to read, or would be if a reader grew careless: makers by reader and shape.

Each maker returns the name under which a text is sent, and its bytes; `size` counts what the shape repeats. By default
it is as large as it was when it stopped a server, or as the readers' bounds on bytes let through; a test doubles
smaller ones.
"""

from collections.abc import Callable
from math import isqrt

Made = tuple[str, bytes]
Maker = Callable[..., Made]


def _text(*lines: str) -> bytes:
    return "\n".join([*lines, ""]).encode()


def _flow(item: str, size: int) -> list[str]:
    """Items of a list, a comma after each, on lines of a few hundred."""
    whole, rest = divmod(size, 300)
    return [f"{item}," * 300] * whole + [f"{item}," * rest]


# --- What stopped a server of 0.2.0, at the size that did it ---------------------------------------------------------


def conda_blanks(size: int = 32_000) -> Made:
    """One line of blanks in the output of `conda list`: 14.5 s of a processor."""
    return "conda.txt", _text("# Name Version Build Channel", " " * size + "x 1 y")


def yaml_aliases(size: int = 20_000) -> Made:
    """A list for pip that is named as often as it is long, `size` * `size` requirements: 3.7 GB and more."""
    return "environment.yml", _text("dependencies: [", "&a {pip: [", *_flow("x", size), "]},", *_flow("*a ", size), "]")


def pyproject_groups(size: int = 18) -> Made:
    """Dependency groups, `size` deep, each of which includes the next one eight times: exponential."""
    groups = [f"g{at} = [" + f"{{include-group = 'g{at + 1}'}}, " * 8 + "]" for at in range(size)]
    return "pyproject.toml", _text("[dependency-groups]", *groups, f'g{size} = ["torch==2.6.0"]')


def pyproject_extras(size: int = 18) -> Made:
    """The same by extras of the project itself."""
    extras = [f"e{at} = [" + f"'x[e{at + 1},e{at + 1}]', " * 4 + "]" for at in range(size)]
    head = '[project]\nname = "x"\n[project.optional-dependencies]'
    return "pyproject.toml", _text(head, *extras, f'e{size} = ["torch==2.6.0"]')


def poetry_products(size: int = 7_000) -> Made:
    """Optional dependencies, and two extras that name as many others: every name was looked at for each of them."""
    others = [f"'m{at}'," for at in range(size)]
    return "pyproject.toml", _text(
        "[tool.poetry.extras]",
        "a = [",
        *others,
        "]",
        "b = [",
        *others,
        "]",
        "[tool.poetry.dependencies]",
        *(f"n{at} = {{version='1', optional=true}}" for at in range(size)),
    )


def poetry_extras(size: int = 90_000) -> Made:
    """As many extras as dependencies, and each names all of them: `size` wishes."""
    each = range(isqrt(size))
    names = ",".join(f"'n{at}'" for at in each)
    return "pyproject.toml", _text(
        "[tool.poetry.extras]",
        *(f"e{at} = [{names}]" for at in each),
        "[tool.poetry.dependencies]",
        *(f"n{at} = {{version='1', optional=true}}" for at in each),
    )


def poetry_groups(size: int = 4_300) -> Made:
    """Dependencies of the project beside as many groups of Poetry's: the former were read for each of the latter."""
    return "pyproject.toml", _text(
        "[project]",
        "name = 'x'",
        "dependencies = [",
        *(f"'n{at}'," for at in range(size)),
        "]",
        *(f"[tool.poetry.group.g{at}]" for at in range(size)),
    )


def toml_quoted_keys(size: int = 8_000) -> Made:
    """Keys of `size` quoted parts, fifteen lines of them: 8 s and 230 MB."""
    return "uv.lock", _text(*(f"k{at}" + '."!"' * (size - 1) + " = 1" for at in range(15)))


def uv_lock_limits(size: int = 9_900) -> Made:
    """As many packages as are read, thirty versions of each, and dependencies on all versions: 3 million edges."""
    names = max(1, size // 30)
    ten = ",".join(f"{{name='p{at % names}'}}" for at in range(10))
    every = ",".join(f"{{name='p{at}'}}" for at in range(names))
    own = '[[package]]\nname = "own"\nversion = "1"\nsource = { virtual = "." }\n'
    return "uv.lock", _text(
        'version = 1\nrequires-python = ">=3.9"',
        f"{own}dependencies = [{every}]",
        *(
            f'[[package]]\nname = "p{at}"\nversion = "1.{of}"\ndependencies = [{ten}]'
            for at in range(names)
            for of in range(30)
        ),
    )


def pyproject_blank_lines(size: int = 60_000) -> Made:
    """Empty lines in the ./pyproject.toml of a folder in which `gate` looks for its policy: 10 s of every command."""
    return "pyproject.toml", _text("\n" * size, "[project]", 'dependencies = ["torch==2.6.0"]')


def query_long(size: int = 95) -> Made:
    """A query that counts `size` times, 2,000 characters: 11 s."""
    return "query", " ".join(["count(affected):>=1"] * size).encode()


# --- One shape more for each way in which a text can grow -------------------------------------------------------------


def yaml_lists(size: int = 20_000) -> Made:
    """The same list for pip, named by as many mappings."""
    named = ["- pip: *a"] * (size // 2)
    return "environment.yml", _text("x: &a [", *_flow("x", size), "]", "dependencies:", *named)


def poetry_tables(size: int = 2_000) -> Made:
    """One dependency for as many markers as extras name it."""
    return "pyproject.toml", _text(
        "[tool.poetry.extras]",
        *(f"e{at} = ['n']" for at in range(size)),
        "[tool.poetry.dependencies]",
        "n = [",
        *(f"{{version='{at}', optional=true}}," for at in range(size)),
        "]",
    )


def poetry_sources(size: int = 50) -> Made:
    """One dependency in forty groups for each one of `size`, all of which say where it comes from."""
    return "pyproject.toml", _text(
        *(
            f"[tool.poetry.group.g{at}.dependencies]\nn = {{version='{at}', git='x', python='^3.{at % 20}'}}"
            for at in range(40 * size)
        )
    )


def uv_sources(size: int = 5_000) -> Made:
    """As many sources of one package as there are requirements of it."""
    return "pyproject.toml", _text(
        "[tool.uv.sources]",
        "n = [",
        *(f"{{url='x/{at}', marker=\"python_version < '2'\"}}," for at in range(size)),
        "]",
        "[dependency-groups]",
        "g = [",
        *(f"'n=={at}'," for at in range(size)),
        "]",
    )


def pyproject_chain(size: int = 4_000) -> Made:
    """Groups that all include one that is long."""
    return "pyproject.toml", _text(
        "[dependency-groups]",
        f"all = [{','.join(f'{chr(39)}n{at}{chr(39)}' for at in range(size // 2))}]",
        *(f"g{at} = [{{include-group = 'all'}}]" for at in range(size)),
    )


def pyproject_depth(size: int = 220) -> Made:
    """Lists in lists, on as many lines as a file may have: a path was kept for each of them."""
    return "pyproject.toml", _text(
        "[project]",
        "dependencies = ['torch==2.6.0']",
        "[tool.x]",
        *(f"k{at} = {'[' * size}{']' * size}" for at in range(99)),
    )


def uv_lock_versions(size: int = 2_000) -> Made:
    """As many versions of one package as wishes for it, of each of them."""
    own = '[[package]]\nname = "own"\nversion = "1"\nsource = { virtual = "." }'
    wishes = ",".join("{name='a'}" for _ in range(size))
    return "uv.lock", _text(
        "version = 1",
        f"{own}\ndependencies = [\n" + wishes.replace("},", "},\n") + "]",
        *(f'[[package]]\nname = "a"\nversion = "{at}"\ndependencies = [{{name="a"}}]' for at in range(size)),
    )


def uv_lock_chain(size: int = 9_000) -> Made:
    """Each package needs the next one, on another Python too."""
    return "uv.lock", _text(
        "version = 1",
        *(
            f'[[package]]\nname = "p{at}"\nversion = "1"\nsource = {{ virtual = "." }}\ndependencies = '
            f"[{{name='p{at + 1}'}}, {{name='p{at + 1}', marker=\"python_version < '3.{at % 13 + 8}'\"}}]"
            for at in range(size)
        ),
    )


def _each(unit: str, size: int) -> str:
    return "".join(unit.replace("%d", str(at)) for at in range(size)) if "%d" in unit else unit * size


_EXTRAS = " and ".join(f"extra != '{one}' and extra == '{one}'" for one in "abcdefgh")
_PROJECT = "[project]\nname = 'x'\ndependencies = ["
_UV, _POETRY = "version = 1\n", "[metadata]\npython-versions = '*'\n"
_PYLOCK = "lock-version = '1.0'\ncreated-by = 'x'\n"
_CONDA = "# Name Version Build Channel\n"
_LOG = "Traceback (most recent call last):\n"
REPEATED: dict[str, tuple[str, str, str, str, int]] = {
    # name: the file's name, what comes first, what is repeated (%d: with its number), what comes last, the full size
    "requirements_eggs": ("r.txt", "-e x", "#", "\n", 32_000),
    "requirements_many_eggs": ("r.txt", "-e x", "#&egg", "\n", 6_000),
    "requirements_options": (
        "r.txt",
        "",
        "-r x\n",
        "#" * 9_999 + "\n## The following requirements were added by pip freeze:\n",
        100_000,
    ),
    "requirements_continued": ("r.txt", "", "a \\\n", "\n", 2_000),
    "requirements_comments": ("r.txt", "", "# Editable (a==(\n", "-e x\n", 200_000),
    "requirements_editable": ("r.txt", "# Editable ", "(a==1)   (", "\n-e x\n", 3_000),
    "requirements_blanks": ("r.txt", "a", " ", "x\n", 32_000),
    "requirements_parens": ("r.txt", "a; ", "(", "\n", 3_900),
    "requirements_markers": ("r.txt", "", "a%d==1; python_version < '3.%d'\n", "", 9_000),
    "requirements_extras": ("r.txt", "", f"a%d==1; python_full_version < '3.9.%d' and {_EXTRAS}\n", "", 1_000),
    "requirements_specifiers": ("r.txt", "a", ">1,", ">1\n", 1_300),
    "requirements_hashes": ("r.txt", "a==1", " \\\n --hash=sha256:a", "\n", 200_000),
    "requirements_wheels": ("r.txt", "", "https://x.example/a-1-cp311-cp311-linux_x86_64.whl#x%d\n", "", 7_000),
    "requirements_dots": ("r.txt", "", "a.", "whl x\n", 1_900),
    "docker_values": ("Dockerfile", "ARG A=" + "1" * 60 + "\nRUN pip install", " a==${A}", "\n", 3_000),
    "docker_installs": ("Dockerfile", "RUN ", "pip install x -r a -i b; ", "\n", 900),
    "docker_quotes": ("Dockerfile", "RUN pip install ", "\"' -i '", "\n", 1_500),
    "docker_args": ("Dockerfile", "ENV ", "A=1 ", "\n", 6_000),
    "pixi_names": ("pixi.lock", "", "  a%d:\n      linux-64:\n      - pypi: a\n", "", 9_000),
    "pixi_blanks": ("pixi.lock", "environments:\n", "  ", ":\n", 16_000),
    "pip_list_blanks": ("l.txt", "Package Version\n", " ", "torch 2.6.0\n", 4_000_000),
    "pip_json": ("l.json", "[", '{"name":"a%d","version":"1"},', '{"name":"b","version":"1"}]', 9_999),
    "pip_json_keys": ("l.json", "[{", '"a%d":1,', '"a0":1}]', 9_990),
    "pip_json_depth": ("l.json", "", "[", "", 900_000),
    "conda_underlines": ("conda.txt", _CONDA, "_", "x\n", 32_000),
    "conda_rows": ("conda.txt", _CONDA, "a%d 1 py_0 x\n", "", 9_999),
    "conda_names": ("conda.txt", "", "Name ", "\n", 6_000),
    "conda_explicit": ("conda.txt", "@EXPLICIT\nhttps://x.example/linux-64/", "a-", "b\n", 16_000),
    "conda_export": ("conda.txt", "", "a%d=1=0\n", "", 9_999),
    "yaml_blank_specs": ("e.yml", "dependencies:\n", '- "a' + " " * 290 + '["\n', "", 400),
    "yaml_specs": ("e.yml", "dependencies:\n", "- a=1=0\n", "", 9_999),
    "yaml_signs": ("e.yml", "dependencies:\n", "- a " + "<=" * 140 + "[\n", "", 400),
    "yaml_depth": ("e.yml", "dependencies: ", "[", "", 300),
    "yaml_flow": ("e.yml", "dependencies: [\n", "[" * 99 + "a," * 99 + "]" * 99 + ",\n", "]", 300),
    "yaml_keys": ("e.yml", "", "a%d: 1\n", "dependencies: []\n", 9_000),
    "yaml_anchors": ("e.yml", "dependencies:\n", "- &a%d a\n- *a%d\n", "", 4_000),
    "yaml_blank_lines": ("e.yml", "dependencies:\n- torch\n", "\n", "- pip: [a]\n", 120_000),
    "yaml_quotes": ("e.yml", "dependencies:\n", "- '''a'''\n", "", 9_000),
    "toml_dotted": ("uv.lock", _UV, "k%d.a.b.c.d.e.f.g.h.i.j = 1\n", "", 90_000),
    "toml_headers": ("uv.lock", _UV, "[k%d]\n", "", 400_000),
    "toml_escapes": ("uv.lock", _UV, 'a%d = "' + '\\"' * 9_000 + '"\n', "", 200),
    "toml_blanks": ("pyproject.toml", "[project]\nname = 'x'\n", " \n", "", 200_000),
    "toml_multiline": ("pyproject.toml", "[project]\na = '''", "\\'", "'''\n", 15_000),
    "toml_items": ("pyproject.toml", "[project]\nname = 'x'\n[tool.x]\na = [\n", "1,\n", "]\n", 170_000),
    "uv_lock_markers": (
        "uv.lock",
        f"{_UV}[[package]]\nname = 'a'\nresolution-markers = [\n",
        "\"python_version != '3.%d'\",\n",
        "]\n",
        9_900,
    ),
    "uv_lock_packages": ("uv.lock", _UV, "[[package]]\nname = 'p%d'\nversion = '1'\n", "", 9_999),
    "poetry_lock_groups": (
        "poetry.lock",
        f"{_POETRY}[[package]]\nname = 'a'\nversion = '1'\n[package.markers]\n",
        "g%d = \"python_version < '3'\"\n",
        "",
        90_000,
    ),
    "pdm_lock_files": (
        "pdm.lock",
        "[metadata]\n[[package]]\nname = 'a'\nversion = '1'\nfiles = [\n",
        "{url = 'x'},\n",
        "]\n",
        9_999,
    ),
    "pdm_lock_targets": ("pdm.lock", "[metadata]\n", "[[metadata.targets]]\nrequires_python = '>=3.0,<4'\n", "", 9_999),
    "pylock_pythons": (
        "pylock.toml",
        _PYLOCK,
        "[[packages]]\nname = 'a'\ndirectory = {path = 'x'}\nrequires-python = '>=3,!=3.%d,<%d.1'\n",
        "",
        9_999,
    ),
    "pylock_wheels": (
        "pylock.toml",
        f"{_PYLOCK}[[packages]]\nname = 'torch'\nwheels = [\n",
        "{name='torch-%d-cp311-cp311-linux_x86_64.whl',url='x',hashes={a='0'}},\n",
        "]\n",
        9_999,
    ),
    "pipfile_packages": ("Pipfile.lock", '{"_meta":{},"default":{', '"a%d":{"version":"==1"},', '"b":{}}}', 9_999),
    "pipfile_sources": (
        "Pipfile.lock",
        '{"_meta":{"sources":[',
        '{"name":"a%d","url":"b"},',
        '{}]},"default":{"b":{"index":"c"}}}',
        9_999,
    ),
    "pyproject_blanks": ("pyproject.toml", _PROJECT + "'a", " ", "x']\n", 3_990),
    "pyproject_many_blanks": ("pyproject.toml", _PROJECT, "'a" + " " * 3_900 + "x',\n", "]\n", 120),
    "pyproject_pythons": (
        "pyproject.toml",
        "[tool.poetry.dependencies]\n",
        "n%d = {version='1', python='" + ">3," * 90 + "!=%d', git='x'}\n",
        "",
        1_600,
    ),
    "pyproject_self": (
        "pyproject.toml",
        "[project]\nname = 'x'\n[project.optional-dependencies]\na = ['x[",
        "a,",
        "']\n",
        900,
    ),
    "script_openers": ("s.py", "", "# /// script\n", "# ///\n", 300_000),
    "script_blanks": ("s.py", "# /// script\n# dependencies = ['a']\n# ///\n", "\n", "", 400_000),
    "prompt_signs": ("", "", ">" * 80 + " pip \n", "torch==2.6.0\n", 40_000),
    "collect_env_rows": ("", "PyTorch version: 2.6.0\n", "[pip3] a%d==1\n", "", 40_000),
    "log_blanks": ("log", _LOG, " ", "Error\n", 900_000),
    "log_blank_lines": ("log", _LOG, "\n", "Error: x\n", 900_000),
    "log_boxes": ("log", "", "\u2502 " + " \u2502" * 1_500 + " x\n", "", 200),
    "log_colours": ("log", "", "\x1b[0;", "x\n", 200_000),
    "log_links": ("log", "", "\x1b]8;;x", "\n", 100_000),
    "log_levels": ("log", "", "INFO    [" + "a" * 80, "\n", 9_000),
    "log_quotes": ("log", "", "> > > > >" * 200 + "x\n", "", 400),
    "log_json": ("log", "", '{"a": ["b\\n", [[[]]]]}\n', "", 30_000),
    "log_json_depth": ("log", "", '{"a":', "\n", 100_000),
    "log_escaped": ("log", "", "a\\n", "\n", 300_000),
    "log_frames": ("log", "", "site-packages/" + "a/" * 90, "\n", 5_000),
    "log_versions": ("log", "", "torch torch==2.6.0+cu torch version: CUDA Driver Version\n", "", 15_000),
    "log_dots": ("log", "", "." * 70 + "\n", "", 10_000),
    "log_not": ("log", "", "not" + " " * 3_900 + "\n", "", 240),
    "log_pins": ("log", "", "a" * 80 + " " * 60 + "1." + "1" * 59 + " x y z w\n", "torch\n", 4_000),
}


def repeated(name: str) -> Maker:
    file, before, unit, after, full = REPEATED[name]

    def make(size: int = full) -> Made:
        return file, f"{before}{_each(unit, size)}{after}".encode()

    make.__name__ = name
    return make


CRITICAL: tuple[Maker, ...] = (
    conda_blanks,
    yaml_aliases,
    pyproject_groups,
    pyproject_extras,
    poetry_products,
    poetry_extras,
    poetry_groups,
    toml_quoted_keys,
    uv_lock_limits,
    pyproject_blank_lines,
)
"""Of the readers; a query is asked elsewhere."""

OTHERS: tuple[Maker, ...] = (
    yaml_lists,
    poetry_tables,
    poetry_sources,
    uv_sources,
    pyproject_chain,
    pyproject_depth,
    uv_lock_versions,
    uv_lock_chain,
    *map(repeated, REPEATED),
)
