"""A repro's script as source text: what it defines at module level, its literals, and the digest of each arm's code.

Nothing here runs or imports a script. Digests are made of source text, never of a dumped or unparsed tree: those differ
between Python releases, and a digest that changed with our own interpreter would throw away every result.
"""

import ast
import builtins
import symtable
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

from pydantic import TypeAdapter

from knowngood.catalogue.text_files import CatalogueProblems, FileProblem
from knowngood.catalogue_digest import SHIPPED
from knowngood.domain.errors import BadRequest
from knowngood.domain.issue import Issue, digest

OLDEST_PYTHON = (3, 9)
STANDALONE_FUNCTIONS = frozenset({"_run_here", "_standalone"})
STANDALONE = SHIPPED / "standalone.py"
"""The end of every script that is handed out; it also stands beside the folders of other catalogues."""
OPENING = """\
if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
"""
"""Stands above the imports of every script."""
TAIL = """\
if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
"""
"""Ends every script of a catalogue."""

Function = ast.FunctionDef | ast.AsyncFunctionDef
_MODULE_NAMES = frozenset({"__name__", "__file__", "__doc__"})
_ENVIRONMENT = TypeAdapter(dict[str, dict[str, str]])
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


@cache
def standalone() -> str:
    """The block that runs one arm, with a way to end for each of good, the issue, and anything else."""
    return STANDALONE.read_text(encoding="utf-8")


def assembled(text: str) -> str:
    """One file that needs nothing else: the tail, which reads the standalone block, becomes the block. No line above it
    moves, and a script that has the block itself stays as it is.
    """
    return text.removesuffix(TAIL) + standalone() if text.endswith(TAIL) else text


def script_of(issue: Issue) -> str:
    """As one file. Snapshots lack the scripts; those of this release stand in its own files. Raises BadRequest."""
    path = SHIPPED / issue.id / "repro.py"
    if not issue.script and not path.is_file():
        raise BadRequest(f"a snapshot has no script of {issue.id}; ask where its catalogue is")
    return issue.script or assembled(path.read_text(encoding="utf-8"))


@dataclass(frozen=True)
class Script:
    """A parsed script. `body` is its module level without the docstring and without what makes it run by itself.

    `bound` maps each name to the statements of `body` that bind it.
    """

    text: str
    tree: ast.Module
    body: tuple[ast.stmt, ...]
    bound: Mapping[str, tuple[ast.stmt, ...]]

    @property
    def functions(self) -> dict[str, Function]:
        """Module-level functions by name; of two with one name the later, as in Python."""
        return {node.name: node for node in self.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}

    @property
    def classes(self) -> dict[str, ast.ClassDef]:
        return {node.name: node for node in self.body if isinstance(node, ast.ClassDef)}

    def assigned(self, name: str) -> ast.Assign | None:
        """The one plain assignment `name = ...`; None where there is none, or more than that."""
        bindings = self.bound.get(name, ())
        if len(bindings) == 1 and isinstance(bindings[0], ast.Assign) and len(bindings[0].targets) == 1:
            return bindings[0]
        return None

    @property
    def nodes(self) -> Iterator[ast.AST]:
        """All nodes of the body, statement by statement."""
        return (node for statement in self.body for node in ast.walk(statement))

    @property
    def environment(self) -> dict[str, dict[str, str]]:
        """The literal ENV; empty where it is absent or not what it should be (a rule says so)."""
        return literal_environment(self.assigned("ENV")) or {}


def parse_script(text: str, file: Path) -> Script:
    """Read the text of a script in a file, whatever its line ends. Raises CatalogueProblems where our oldest
    interpreter does not accept it.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    tree = _parse(text, file)
    statements = tree.body[1:] if ast.get_docstring(tree, clean=False) is not None else tree.body
    body = tuple(node for node in statements if not _is_standalone(node))
    bound: dict[str, tuple[ast.stmt, ...]] = {}
    for node in body:
        for name in sorted(set(_names_bound(node))):
            bound[name] = (*bound.get(name, ()), node)
    return Script(text=text, tree=tree, body=body, bound=bound)


def _parse(text: str, file: Path) -> ast.Module:
    try:
        with warnings.catch_warnings(action="ignore"):  # as of an odd escape: the author's business
            tree = ast.parse(text, feature_version=OLDEST_PYTHON)
            compile(text, "repro.py", "exec", dont_inherit=True)
    except SyntaxError as error:
        line = _line_of_newer_syntax(text) or error.lineno or 1
        raise CatalogueProblems([FileProblem(file, line, f"is not Python 3.9: {error.msg}")]) from None
    except (ValueError, RecursionError, MemoryError, OverflowError) as error:
        words = f"cannot be parsed: {type(error).__name__}: {error}"
        raise CatalogueProblems([FileProblem(file, 1, words)]) from None
    return tree


def _line_of_newer_syntax(text: str) -> int | None:
    """Where a statement stands that our own Python knows: the parser's refusal names the line behind it."""
    try:
        with warnings.catch_warnings(action="ignore"):
            tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return None
    newer = (node.lineno for node in ast.walk(tree) if isinstance(node, ast.Match | ast.TryStar))
    return min(newer, default=None)


def _is_standalone(node: ast.stmt) -> bool:
    return is_main_guard(node) or (isinstance(node, ast.FunctionDef) and node.name in STANDALONE_FUNCTIONS)


def is_main_guard(node: ast.stmt) -> bool:
    """True for `if __name__ == "__main__":`, which a worker never enters."""
    return (
        isinstance(node, ast.If)
        and isinstance(node.test, ast.Compare)
        and isinstance(node.test.left, ast.Name)
        and node.test.left.id == "__name__"
    )


def _names_bound(node: ast.AST) -> Iterator[str]:
    """Names a module-level statement binds; those inside of `if`, `try`, `for` and `with` included."""
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            yield node.name
        case ast.Import() | ast.ImportFrom():
            yield from ((alias.asname or alias.name).partition(".")[0] for alias in node.names)
        case ast.Name(ctx=ast.Store() | ast.Del()):
            yield node.id
        case _:
            if isinstance(node, ast.ExceptHandler) and node.name:
                yield node.name
            for inner in ast.iter_child_nodes(node):
                yield from _names_bound(inner)


def literal_environment(node: ast.Assign | None) -> dict[str, dict[str, str]] | None:
    """The value of `ENV = {"arm": {"NAME": "value"}}`; None where it is not of that form."""
    if node is None:
        return None
    try:
        return _ENVIRONMENT.validate_python(ast.literal_eval(node.value), strict=True)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None


def arm_code(script: Script, arm: str) -> str:
    """The digest of an arm's code: its function and all of the script that takes part in running it.

    That is, transitively, every module-level statement that binds a name it uses; every statement that acts when the
    script is imported (a call, a setting, a loop); and every decorated helper, since a decorator may register it.
    Comments and docstrings inside of these count; what stands between them, and other arms, do not.
    """
    begin = [script.functions[arm], *(node for node in script.body if _acts_on_import(node))]
    lines = script.text.split("\n")
    return digest("\n".join(_source(lines, node) for node in reached_from(script, begin)))


def reached_from(script: Script, begin: Iterable[ast.stmt]) -> list[ast.stmt]:
    """These statements, and transitively every module-level one that binds a name they use, as they stand."""
    waiting = list(begin)
    taken: set[ast.stmt] = set()
    while waiting:
        node = waiting.pop()
        if node not in taken:
            taken.add(node)
            used = {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)}
            waiting.extend(binder for name in used for binder in script.bound.get(name, ()))
    return [node for node in script.body if node in taken]


@lru_cache(maxsize=256)  # each rule looks through the functions of one script, for each of its arms
def own_nodes(function: Function) -> Sequence[ast.AST]:
    """The nodes of a function, and not in one inside it."""
    found: list[ast.AST] = []
    waiting: list[ast.AST] = list(function.body)
    while waiting:
        found.append(node := waiting.pop())
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            waiting.extend(ast.iter_child_nodes(node))
    return found


def last_name(function: ast.expr) -> str:
    """The last part of what is called: `compile` of `torch.compile(...)`."""
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _acts_on_import(node: ast.stmt) -> bool:
    if isinstance(node, _DEFINITIONS):  # arms, which are the public functions, have nothing to do with each other
        return bool(node.decorator_list) and (isinstance(node, ast.ClassDef) or node.name.startswith("_"))
    if isinstance(node, ast.Import | ast.ImportFrom):
        return any(alias.name == "*" for alias in node.names)
    if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        return not all(isinstance(target, ast.Name | ast.Tuple | ast.List) for target in targets)
    return True


def _source(lines: Sequence[str], node: ast.stmt) -> str:
    """As `ast.get_source_segment`, which goes through the whole text character by character for each statement."""
    last = node.end_lineno or node.lineno
    if isinstance(node, _DEFINITIONS):  # whole lines: decorators, and a comment behind the last statement
        first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
        return "\n".join(lines[first - 1 : last])
    taken = [line.encode() for line in lines[node.lineno - 1 : last]]
    taken[-1] = taken[-1][: node.end_col_offset]  # columns count bytes
    taken[0] = taken[0][node.col_offset :]
    return b"\n".join(taken).decode()


def undefined_names(script: Script) -> dict[str, int]:
    """Names that functions and classes of the body use and nothing defines, each with a line that uses it."""
    known = {*script.bound, *dir(builtins), *_MODULE_NAMES}
    with warnings.catch_warnings(action="ignore"):
        table = symtable.symtable(_body_text(script), "repro.py", "exec")
    unknown = {name: line for name, line in _globals_used(table) if name not in known}
    uses = [node for statement in script.body for node in ast.walk(statement) if isinstance(node, ast.Name)]
    return {
        name: min((use.lineno for use in uses if use.id == name and use.lineno >= line), default=line)
        for name, line in unknown.items()
    }


def _body_text(script: Script) -> str:
    """The text with everything but the body blanked, so that lines stay what they are."""
    lines = script.text.split("\n")
    for node in script.tree.body:
        if _is_standalone(node):
            lines[node.lineno - 1 : node.end_lineno] = [""] * ((node.end_lineno or node.lineno) - node.lineno + 1)
    return "\n".join(lines)


def _globals_used(table: symtable.SymbolTable) -> Iterator[tuple[str, int]]:
    for inner in table.get_children():
        for name in inner.get_symbols():
            if name.is_global() and name.is_referenced():
                yield name.get_name(), inner.get_lineno()
        yield from _globals_used(inner)
