"""Holds the size of the code to budget.toml: fails where a figure is over its budget, and names it.

    .venv/bin/python -m tools.budget            # compare; part of `make check`
    .venv/bin/python -m tools.budget --lower    # write the figures that have fallen, and new packages

A figure that has to rise is raised by hand, in a commit of its own that says what people get for it.
"""

import ast
import itertools
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[1]
FILE = ROOT / "budget.toml"
SHARED = 0.7
FEWEST_FIELDS = 3  # smaller classes share names by chance
Figures = dict[str, int]


@dataclass
class Code:
    """What some files hold."""

    files: int = 0
    statements: int = 0
    functions: int = 0
    documented: int = 0
    classes: list[frozenset[str]] = field(default_factory=list)
    """The annotated fields of each."""

    def add(self, tree: ast.Module) -> None:
        self.files += 1
        for node in ast.walk(tree):
            self.statements += isinstance(node, ast.stmt) and not _is_free(node)
            if isinstance(node, ast.ClassDef):
                self.classes.append(frozenset(_fields(node)))
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("_"):
                self.functions += 1
                self.documented += ast.get_docstring(node) is not None

    def figures(self) -> Figures:
        pairs = sum(_are_alike(*pair) for pair in itertools.combinations(self.classes, 2))
        return {"statements": self.statements, "files": self.files, "classes": len(self.classes), "pairs": pairs}


def _is_free(node: ast.stmt) -> bool:
    """Imports and docstrings: a figure must not be met by leaving either out."""
    is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    return is_text or isinstance(node, ast.Import | ast.ImportFrom)


def _fields(node: ast.ClassDef) -> Iterator[str]:
    return (one.target.id for one in node.body if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name))


def _are_alike(one: frozenset[str], other: frozenset[str]) -> bool:
    """Whether two classes have 70 % of the larger one's fields in common."""
    return min(len(one), len(other)) >= FEWEST_FIELDS and len(one & other) >= SHARED * max(len(one), len(other))


def package_of(path: Path) -> str:
    """`app/knowngood/gate` of app/knowngood/gate/renderers/text.py: a room with all that is in it."""
    return "/".join(path.parts[: min(3, len(path.parts) - 1)])


def measure(root: Path) -> tuple[Figures, Mapping[str, Figures]]:
    """The figures of the whole checkout, and of each package of app and workers."""
    whole, packages, tests = Code(), dict[str, Code](), Code()
    for path in _files(root, "app", "workers"):
        tree = ast.parse((root / path).read_bytes())
        for code in (whole, packages.setdefault(package_of(path), Code())):
            code.add(tree)
    for path in _files(root, "tests"):
        tests.add(ast.parse((root / path).read_bytes()))
    documented = 100 * whole.documented // max(1, whole.functions)
    total = whole.figures() | {"tests": tests.statements, "documented": documented}
    return total, {name: code.figures() for name, code in sorted(packages.items())}


def _files(root: Path, *folders: str) -> Iterable[Path]:
    return sorted(path.relative_to(root) for folder in folders for path in (root / folder).rglob("*.py"))


def breaches(budget: Mapping[str, int], figures: Mapping[str, int], where: str = "") -> Iterator[str]:
    """A sentence for each figure that is over its budget; of `documented`, under it."""
    for name, figure in figures.items():
        bound = budget.get(name, 0)
        if (figure < bound) if name == "documented" else (figure > bound):
            yield f"{where}{name} {figure}, budget {bound}"


def lowered(budget: Mapping[str, int], figures: Figures) -> Figures:
    """The better of both for each figure."""
    return {
        name: max(figure, budget.get(name, figure)) if name == "documented" else min(figure, budget.get(name, figure))
        for name, figure in figures.items()
    }


def write(total: Figures, packages: Mapping[str, Figures]) -> str:
    lines = [
        "# The most that the code may weigh; `make check` compares (tools/budget.py says what each figure counts).",
        "# A figure is raised in a commit of its own; its message says what people get for it, and what was",
        "# looked for to take out. `documented` (public functions with a docstring, per hundred) may not fall.",
        "",
        *(f"{name} = {figure}" for name, figure in total.items()),
        "",
        "[packages]",
        *(
            f'"{package}" = {{ {", ".join(f"{name} = {figure}" for name, figure in figures.items())} }}'
            for package, figures in packages.items()
        ),
    ]
    return "\n".join(lines) + "\n"


def main(arguments: list[str]) -> int:
    budget = tomllib.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
    total, packages = measure(ROOT)
    given: dict[str, Figures] = budget.get("packages", {})
    if arguments == ["--lower"]:
        figures = {name: lowered(given.get(name, {}), of) for name, of in packages.items()}
        FILE.write_text(write(lowered(budget, total), figures), encoding="utf-8")
        return 0
    over = [*breaches(budget, total)]
    for name, of in packages.items():
        over += breaches(given.get(name, {}), of, f"{name}: ")
    if over:
        over.append("look for what can go; else raise it in a commit of its own: CONTRIBUTING.md, The budget")
    print("\n".join(over) or f"within budget: {total['statements']} statements of {budget['statements']}")
    return bool(over)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
