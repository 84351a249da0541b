"""Rules for a `repro.py`, alone and beside its `issue.toml`. Each finding is a line and a sentence."""

import ast
import re
import sys
from collections.abc import Iterator
from typing import TypeGuard

from knowngood.catalogue.issue_rules import Outline
from knowngood.catalogue.script_analysis import (
    OPENING,
    Function,
    Script,
    is_main_guard,
    last_name,
    literal_environment,
    own_nodes,
    standalone,
    undefined_names,
)
from knowngood.domain.issue import BASELINE, CONTROL, SignatureKind
from knowngood.serialization.toml_models import Finding

ScriptFinding = tuple[int, str]

# What every environment holds: torch with its Triton, and what torch <= 2.6 needs at run time beside it.
_ALWAYS_THERE = frozenset({"torch", "triton", "numpy", "setuptools"})
_OURS = frozenset({"knowngood", "knowngood_workers", "repros"})
_KNOWN_MODULES = {
    "flash-linear-attention": "fla",
    "opencv-python": "cv2",
    "pillow": "PIL",
    "pyyaml": "yaml",
    "scikit-learn": "sklearn",
}
_EXITS = frozenset({"exit", "quit", "sys.exit", "SystemExit"})
# The worker gives each attempt fresh ones of these; a script that sets them would be measured with another's cache.
_WORKERS_OWN = frozenset({"TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "TMPDIR", "HOME", "CUDA_VISIBLE_DEVICES"})
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def script_findings(script: Script) -> Iterator[ScriptFinding]:
    """Findings about a script whatever its issue says."""
    if not ast.get_docstring(script.tree):
        yield 1, "has no docstring; say in its first line which issue this is"
    yield from _standalone_parts(script)
    yield from _forbidden_code(script)
    yield from _functions_alone(script)
    for name, line in undefined_names(script).items():
        yield line, f'"{name}" is not defined; what the standalone lines import does not exist in a worker'


def findings_beside(script: Script, outline: Outline) -> Iterator[ScriptFinding]:
    """Contradictions between a script and its issue's document."""
    yield from _arms(script, outline)
    yield from _parameters(script, outline)
    yield from _signature(script, outline)
    yield from _environment(script, outline)
    yield from _imports(script, outline)


def workarounds_without_function(script: Script, outline: Outline) -> Iterator[Finding]:
    """The same, told where the document names the workaround."""
    for id_, at in outline.workarounds.items():
        if id_ not in script.functions:
            yield ("workaround", at, "id"), f"the script defines no function {id_}()"


def _standalone_parts(script: Script) -> Iterator[ScriptFinding]:
    if script.text.count(OPENING) != 1:
        yield (
            _first_import(script),
            "the standalone opening is not above the imports as it must be; see repros/README.md",
        )
    elif script.text[: script.text.index(OPENING)].count("\n") + 1 > _first_import(script):
        yield (
            _first_import(script),
            "this import stands above the standalone opening, so that its failure would exit with 1",
        )
    if not script.text.endswith(standalone()):
        words = "must end with the three lines that end the scaffold of `knowngood new-issue`; see repros/README.md"
        yield max(1, script.text.count("\n")), words
    guards = [node for node in script.tree.body if is_main_guard(node)]
    for node in guards[1:-1]:
        yield node.lineno, 'only the standalone lines belong below `if __name__ == "__main__"`: a worker never runs it'


def _first_import(script: Script) -> int:
    """The line of the first import that can fail, else of the body's first statement."""
    for node in script.body:
        if isinstance(node, ast.Import | ast.ImportFrom) and set(_roots(node)) - sys.stdlib_module_names:
            return node.lineno
    return script.body[0].lineno if script.body else 1


def _forbidden_code(script: Script) -> Iterator[ScriptFinding]:
    for node in script.nodes:
        if isinstance(node, ast.Assert) or _calls_assertion(node):
            yield (
                node.lineno,
                "an assertion is no signature; raise WrongResult with what was expected, got, and tolerated",
            )
        elif isinstance(node, ast.Name | ast.Attribute) and ast.unparse(node) in _EXITS:
            yield node.lineno, f"{ast.unparse(node)}: an arm returns what it observed or raises; it never exits"
        elif isinstance(node, ast.ImportFrom) and any(alias.name == "*" for alias in node.names):
            yield node.lineno, f"from {node.module} import *: what an arm uses cannot be told; import names"


def _calls_assertion(node: ast.AST) -> TypeGuard[ast.Call]:
    """True for `torch.testing.assert_close(...)` and its kin."""
    return isinstance(node, ast.Call) and last_name(node.func).startswith(("assert_", "assertEqual"))


def _functions_alone(script: Script) -> Iterator[ScriptFinding]:
    for name, function in _public(script).items():
        if len(script.bound[name]) > 1:
            yield function.lineno, f'"{name}" is defined {len(script.bound[name])} times'
        if isinstance(function, ast.AsyncFunctionDef):
            yield function.lineno, f'"{name}" is async; an arm is a plain function'
        elif not _returns_something(function):
            yield function.lineno, f'"{name}" never returns what it observed, so that no pass of it could count'


def _public(script: Script) -> dict[str, Function]:
    return {name: function for name, function in script.functions.items() if not name.startswith("_")}


def _returns_something(function: Function) -> bool:
    returned = (node.value for node in own_nodes(function) if isinstance(node, ast.Return))
    return any(
        value is not None and not (isinstance(value, ast.Constant) and value.value is None) for value in returned
    )


def _arms(script: Script, outline: Outline) -> Iterator[ScriptFinding]:
    public = _public(script)
    for name in (CONTROL, BASELINE):
        if name not in public:
            yield 1, f"defines no function {name}()"
    for name, function in public.items():
        if name not in outline.arms:
            yield (
                function.lineno,
                f'"{name}" is no workaround of issue.toml; a helper\'s name starts with "_"',
            )


def _parameters(script: Script, outline: Outline) -> Iterator[ScriptFinding]:
    for name, function in _public(script).items():
        if name not in outline.arms:
            continue
        arguments = function.args
        named = {argument.arg for argument in (*arguments.args, *arguments.kwonlyargs)}
        if arguments.posonlyargs or arguments.vararg:
            yield function.lineno, f'"{name}" takes arguments by position; variants are passed by name'
        required = len(arguments.args) - len(arguments.defaults) + arguments.kw_defaults.count(None)
        if required > 0:
            yield function.lineno, f'"{name}" has a parameter without a default; it must run without a variant'
        for variant in outline.variants:
            missing = [param for param in variant.params if param not in named]
            if missing and not arguments.kwarg and (not variant.arms or name in variant.arms):
                yield function.lineno, f'"{name}" does not take {", ".join(missing)} of variant "{variant.id}"'


def _signature(script: Script, outline: Outline) -> Iterator[ScriptFinding]:
    node = script.assigned("SIGNATURE")
    literal = node.value.value if node and isinstance(node.value, ast.Constant) else None
    if node is None or not isinstance(literal, str):
        yield node.lineno if node else 1, 'must define SIGNATURE = r"..." once, as a literal'
    elif outline.pattern is not None and literal != outline.pattern:
        yield node.lineno, f"SIGNATURE is not the pattern of issue.toml, which is {outline.pattern!r}"
    if outline.kind is SignatureKind.WRONG_RESULT:
        yield from _wrong_result(script)
    if outline.kind is SignatureKind.HANG:
        seconds = script.assigned("HANG_S")
        if seconds is None or not isinstance(seconds.value, ast.Constant) or not isinstance(seconds.value.value, int):
            yield 1, "must define HANG_S = SECONDS: after how long a standalone run is called a hang"


def _wrong_result(script: Script) -> Iterator[ScriptFinding]:
    class_ = script.classes.get("WrongResult")
    if class_ is None or not class_.bases:
        yield class_.lineno if class_ else 1, "must define class WrongResult(Exception), which a wrong result raises"
        return
    raised = (node.exc for node in ast.walk(script.tree) if isinstance(node, ast.Raise) and node.exc)
    if not any(
        "WrongResult" in {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)} for node in raised
    ):
        yield class_.lineno, "WrongResult is never raised"


def _environment(script: Script, outline: Outline) -> Iterator[ScriptFinding]:
    if "ENV" not in script.bound:
        return
    node = script.assigned("ENV")
    value = literal_environment(node)
    if node is None or value is None:
        yield script.bound["ENV"][0].lineno, 'ENV must be a literal {"arm": {"NAME": "value"}}, assigned once'
        return
    for arm, variables in value.items():
        if arm not in outline.arms:
            yield node.lineno, f'ENV names "{arm}", which is no arm; known: {", ".join(outline.arms)}'
        for name, text in variables.items():
            if name in _WORKERS_OWN:
                yield node.lineno, f"ENV sets {name}, which every attempt gets anew"
            elif not _VARIABLE.fullmatch(name) or not text.isprintable():
                yield node.lineno, f"ENV sets {name!r} to {text!r}; write a variable's name and one line of text"


def _imports(script: Script, outline: Outline) -> Iterator[ScriptFinding]:
    packages = sorted({re.split(r"[=<>!~ ]", text)[0] for texts in outline.requirements.values() for text in texts})
    for node in script.nodes:
        if not isinstance(node, ast.Import | ast.ImportFrom):
            continue
        for root in _roots(node):
            if not root:
                yield node.lineno, "a relative import: the script stands alone"
            elif root in _OURS:
                yield node.lineno, f'imports "{root}", which is ours: a repro must run without Known Good'
            elif not _is_there(root, packages, outline.imports):
                yield (
                    node.lineno,
                    f'imports "{root}", which no package of issue.toml provides; name it under [packages]',
                )


def _roots(node: ast.Import | ast.ImportFrom) -> list[str]:
    """The top-level modules; an empty text for a relative import."""
    if isinstance(node, ast.ImportFrom):
        return ["" if node.level else (node.module or "").partition(".")[0]]
    return [alias.name.partition(".")[0] for alias in node.names]


def _is_there(root: str, packages: list[str], imports: tuple[str, ...]) -> bool:
    is_known = root in _ALWAYS_THERE or root in sys.stdlib_module_names or root in imports
    return is_known or any(_provides(package, root) for package in packages)


def _provides(package: str, root: str) -> bool:
    """True where a distribution's name leads to the module: deepmd-kit has deepmd, torch_xla has torch_xla."""
    name, module = (re.sub(r"[-_.]+", "_", text).lower() for text in (package, root))
    return name == module or name.startswith(f"{module}_") or _KNOWN_MODULES.get(name.replace("_", "-")) == root
