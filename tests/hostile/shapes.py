"""Texts that were slow or large to read, or would be if a reader grew careless: makers by reader and shape.

Each maker returns the name under which a text is sent, and its bytes; `size` counts what the shape repeats. By default
it is as large as it was when it stopped a server, or as the readers' bounds on bytes let through; a test doubles
smaller ones.
"""

from collections.abc import Callable

Made = tuple[str, bytes]
Maker = Callable[[int], Made]


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


def poetry_extras(size: int = 300) -> Made:
    """As many extras as dependencies, and each names all of them: `size` * `size` wishes."""
    names = ",".join(f"'n{at}'" for at in range(size))
    return "pyproject.toml", _text(
        "[tool.poetry.extras]",
        *(f"e{at} = [{names}]" for at in range(size)),
        "[tool.poetry.dependencies]",
        *(f"n{at} = {{version='1', optional=true}}" for at in range(size)),
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
