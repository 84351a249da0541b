"""Warnings about a `repro.py`: code that may fool a verdict although it is no mistake. Nothing here runs or imports
a script.
"""

import ast
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TypeGuard

import regex

from knowngood.catalogue.issue_rules import Outline
from knowngood.catalogue.script_analysis import Function, Script, last_name, own_nodes, reached_from
from knowngood.catalogue.warnings.codes import WarningCode, in_words
from knowngood.domain.issue import BASELINE, CONTROL, SignatureKind
from knowngood.domain.timed_search import search

ScriptWarning = tuple[int, WarningCode, str]
"""The line, the code and the sentence."""

Definition = ast.FunctionDef | ast.ClassDef

_SUPPRESS = re.compile(r"suppress_errors", re.IGNORECASE)
_LOADS = frozenset({"import_module", "find_spec", "hasattr", "getattr", "version"})
_SAY = frozenset({"WrongResult", "NotApplicable"})
_COMPILERS = re.compile(r"compile|export|jit|optimize|script", re.IGNORECASE)
_SWITCHES = re.compile(r"\bis_(dynamo_)?compiling$|\b(compiler|_dynamo)\.(disable|set_stance|skip)$")


def script_warnings(script: Script, outline: Outline) -> Iterator[ScriptWarning]:
    """Warnings about a script beside its issue's document."""
    baseline, control = (reached(script, arm) for arm in (BASELINE, CONTROL))
    refusing = {name for name, function in script.functions.items() if any(map(_is_refusal, own_nodes(function)))}
    for statement in baseline:
        yield from _swallowed(statement)
        yield from _late_refusals(statement, refusing)
        yield from _switched(statement)
    yield from _suppressed(script, [*baseline, *control])
    yield from _quoted(script, outline)
    yield from _uncompared(script, outline, baseline, control)
    yield from _apart(script, outline, baseline, control)
    yield from _discarded(script, outline)


def reached(script: Script, arm: str) -> list[ast.stmt]:
    """The arm's function and every module-level statement that takes part in it, as they stand in the script."""
    return reached_from(script, [script.functions[arm]] if arm in script.functions else [])


def _warning(code: WarningCode, line: int, *values: str) -> ScriptWarning:
    return line, code, in_words(code, *values)


def _swallowed(statement: ast.stmt) -> Iterator[ScriptWarning]:
    for node in ast.walk(statement):
        if isinstance(node, ast.Try) and _calls(node.body):
            for handler in node.handlers:
                if not (_always_raises(handler.body) or _raises_the_rest(handler)):
                    yield _warning(WarningCode.BROAD_EXCEPT, handler.lineno, _handler_name(handler))
            if any(isinstance(inner, ast.Return) for inner in node.finalbody):
                yield _warning(WarningCode.BROAD_EXCEPT, node.finalbody[0].lineno, "`return` in `finally`")
        if isinstance(node, ast.With) and _calls(node.body):
            for item in node.items:
                if isinstance(item.context_expr, ast.Call) and last_name(item.context_expr.func) == "suppress":
                    yield _warning(WarningCode.BROAD_EXCEPT, node.lineno, f"`with {ast.unparse(item.context_expr)}`")


def _handler_name(handler: ast.ExceptHandler) -> str:
    return f"`except {ast.unparse(handler.type)}`" if handler.type else "`except`"


def _always_raises(body: Sequence[ast.stmt]) -> bool:
    last = body[-1]
    if isinstance(last, ast.If):
        return bool(last.orelse) and _always_raises(last.body) and _always_raises(last.orelse)
    return isinstance(last, ast.Raise)


def _raises_the_rest(handler: ast.ExceptHandler) -> bool:
    """Whether it looks at the exception and raises again what it did not expect."""
    return handler.name is not None and any(
        isinstance(node, ast.Raise) and node.exc is None for node in ast.walk(handler)
    )


def _calls(body: Iterable[ast.stmt]) -> bool:
    """Whether something is called that is more than a look for a module or an attribute."""
    calls = (node for statement in body for node in ast.walk(statement) if isinstance(node, ast.Call))
    return any(last_name(call.func) not in _LOADS for call in calls)


def _late_refusals(statement: ast.stmt, refusing: Collection[str]) -> Iterator[ScriptWarning]:
    """`refusing` are the functions of the script that raise NotApplicable: a call of one is a refusal too."""
    for function in (node for node in ast.walk(statement) if isinstance(node, Function)):
        calls = [node for node in own_nodes(function) if isinstance(node, ast.Call)]
        refusals: list[ast.Raise | ast.Call] = [node for node in own_nodes(function) if _is_refusal(node)]
        refusals += [call for call in calls if last_name(call.func) in refusing]
        handlers = [node for node in own_nodes(function) if isinstance(node, ast.ExceptHandler)]
        suspect = min((call.lineno for call in calls if _is_suspect_call(call, function)), default=None)
        for refusal in refusals:
            around = next((handler for handler in handlers if refusal in set(ast.walk(handler))), None)
            if around is not None:
                where = f"in {_handler_name(around)}"
                yield _warning(WarningCode.LATE_NOT_APPLICABLE, refusal.lineno, where)
            elif suspect is not None and refusal.lineno > suspect:
                where = f"after the call in line {suspect}"
                yield _warning(WarningCode.LATE_NOT_APPLICABLE, refusal.lineno, where)


def _is_refusal(node: ast.AST) -> TypeGuard[ast.Raise]:
    return isinstance(node, ast.Raise) and _raises(node, "NotApplicable")


def _raises(node: ast.Raise, name: str) -> bool:
    raised = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
    return raised is not None and last_name(raised) == name


def _is_suspect_call(node: ast.Call, function: Function) -> bool:
    """A call of what a compiler gave back, or of a function that was handed in."""
    if isinstance(node.func, ast.Call):
        return bool(_COMPILERS.search(last_name(node.func.func)))
    given = {argument.arg for argument in (*function.args.args, *function.args.kwonlyargs)}
    made = {
        target.id
        for statement in own_nodes(function)
        if isinstance(statement, ast.Assign)
        and isinstance(statement.value, ast.Call)
        and _COMPILERS.search(last_name(statement.value.func))
        for target in statement.targets
        if isinstance(target, ast.Name)
    }
    return isinstance(node.func, ast.Name) and node.func.id in given | made


def _switched(statement: ast.stmt) -> Iterator[ScriptWarning]:
    for node in ast.walk(statement):
        if isinstance(node, ast.Attribute) and _SWITCHES.search(ast.unparse(node)):
            yield _warning(WarningCode.PATH_SWITCH, node.lineno, ast.unparse(node))


def _suppressed(script: Script, statements: Iterable[ast.stmt]) -> Iterator[ScriptWarning]:
    acting = [node for node in script.body if isinstance(node, ast.Expr | ast.Assign | ast.With | ast.If | ast.For)]
    for line, words in sorted({setting for node in (*statements, *acting) for setting in _settings(node)}):
        yield _warning(WarningCode.SUPPRESS_ERRORS, line, words)
    for arm, variables in script.environment.items():
        for name in variables:
            if arm in {BASELINE, CONTROL} and _SUPPRESS.search(name):
                yield _warning(WarningCode.SUPPRESS_ERRORS, script.bound["ENV"][0].lineno, name)


def _settings(statement: ast.stmt) -> Iterator[tuple[int, str]]:
    """Where suppress_errors is set: by assignment, as a keyword, or as a text handed to something."""
    for node in ast.walk(statement):
        if isinstance(node, ast.Assign) and not _is_false(node.value):
            yield from (
                (node.lineno, ast.unparse(target)) for target in node.targets if _SUPPRESS.search(ast.unparse(target))
            )
        elif isinstance(node, ast.keyword) and node.arg and _SUPPRESS.search(node.arg) and not _is_false(node.value):
            yield node.value.lineno, node.arg
        elif isinstance(node, ast.Call):
            texts = (arg.value for arg in node.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str))
            yield from ((node.lineno, text) for text in texts if _SUPPRESS.search(text))


def _is_false(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and not node.value


def _quoted(script: Script, outline: Outline) -> Iterator[ScriptWarning]:
    """Lines of code that the signature matches. What a script raises itself has to match it."""
    if not outline.pattern or outline.kind is SignatureKind.WRONG_RESULT:
        return
    try:
        regex.compile(outline.pattern)
    except regex.error:
        return  # a problem, which is told as one
    spans = [*map(_span, script.bound.get("SIGNATURE", ())), *_unquoted(script)]
    left_out = {line for first, last in spans for line in range(first, last + 1)}
    lines = script.text.split("\n")
    for node in script.body:
        first, last = _span(node)
        for line in range(first, last + 1):
            if line not in left_out and search(outline.pattern, lines[line - 1 : line]).line is not None:
                yield _warning(WarningCode.SIGNATURE_IN_SCRIPT, line)


def _unquoted(script: Script) -> Iterator[tuple[int, int]]:
    """Lines of what the script raises itself, and of docstrings: a traceback quotes none."""
    for node in script.nodes:
        if isinstance(node, ast.Raise):
            yield _span(node)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(node):
            yield _span(node.body[0])


def _span(node: ast.stmt) -> tuple[int, int]:
    return node.lineno, node.end_lineno or node.lineno


def _uncompared(
    script: Script, outline: Outline, baseline: Sequence[ast.stmt], control: Sequence[ast.stmt]
) -> Iterator[ScriptWarning]:
    if BASELINE not in script.functions:
        return
    if outline.kind is SignatureKind.WRONG_RESULT and not _compares(baseline):
        words = "the baseline never gets to where WrongResult is raised"
        yield _warning(WarningCode.NO_COMPARISON, script.functions[BASELINE].lineno, words)
    for arm, statements in ((BASELINE, baseline), (CONTROL, control)):
        nodes = (inner for statement in statements for inner in ast.walk(statement))
        reports = [node.value for node in nodes if isinstance(node, ast.Return) and isinstance(node.value, ast.Dict)]
        if reports and all(isinstance(value, ast.Constant) for report in reports for value in report.values):
            words = f"what the {arm} reports is written into the script"
            yield _warning(WarningCode.NO_COMPARISON, reports[0].lineno, words)


def _compares(statements: Iterable[ast.stmt]) -> bool:
    nodes = (inner for statement in statements for inner in ast.walk(statement))
    return any(isinstance(node, ast.Raise) and _raises(node, "WrongResult") for node in nodes)


def _discarded(script: Script, outline: Outline) -> Iterator[ScriptWarning]:
    """Warn where an arm uses nothing of what the suspect returns, in any of its calls; each line once."""
    suspects = {name.partition(".")[0] for name in outline.suspect}
    first_calls: dict[int, tuple[str, str]] = {}
    for arm in (BASELINE, *outline.workarounds):
        functions = [node for part in reached(script, arm) for node in ast.walk(part) if isinstance(node, Function)]
        calls = {call: function for function in functions for call in _suspect_calls(function, suspects)}
        unused = {value for function in calls.values() for value in _unused(function)}
        if calls and unused.issuperset(calls):
            first = next(iter(calls))
            first_calls.setdefault(first.lineno, (arm, ast.unparse(first)))
    for line, (arm, call) in first_calls.items():
        yield _warning(WarningCode.DISCARDED_RESULT, line, arm, call)


def _suspect_calls(function: Function, suspects: Collection[str]) -> list[ast.Call]:
    return [
        node
        for node in own_nodes(function)
        if isinstance(node, ast.Call) and (last_name(node.func) in suspects or _is_suspect_call(node, function))
    ]


def _unused(function: Function) -> Iterator[ast.expr]:
    """Yield the values that nothing reads: of statements, and of names that are never loaded."""
    read = {node.id for node in ast.walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    for node in own_nodes(function):
        if isinstance(node, ast.Expr) or (
            isinstance(node, ast.Assign)
            and all(isinstance(target, ast.Name) and target.id not in read for target in node.targets)
        ):
            yield node.value


def _apart(
    script: Script, outline: Outline, baseline: Sequence[ast.stmt], control: Sequence[ast.stmt]
) -> Iterator[ScriptWarning]:
    if not (baseline and control):
        return
    functions = script.functions
    line = functions[CONTROL].lineno
    shared = [node for node in baseline if node in control and isinstance(node, Definition)]
    if not any(node.name not in _SAY for node in shared):
        yield _warning(WarningCode.CONTROL_APART, line, "control and baseline share no function of the script")
    named = {name.partition(".")[0] for name in outline.suspect if "<locals>" not in name}
    suspects = [node for node in baseline if isinstance(node, Definition) and node.name in named]
    if suspects and not any(node in control for node in suspects):
        words = f"the control never gets to {' or '.join(node.name for node in suspects)}, which the baseline compiles"
        yield _warning(WarningCode.CONTROL_APART, line, words)
    if outline.kind is SignatureKind.WRONG_RESULT and _compares(baseline) and not _compares(control):
        words = "the baseline raises WrongResult where the control never gets to"
        yield _warning(WarningCode.CONTROL_APART, line, words)
    for call in (node for node in own_nodes(functions[CONTROL]) if isinstance(node, ast.Call)):
        if _COMPILERS.search(last_name(call.func)):
            yield _warning(WarningCode.COMPILED_CONTROL, call.lineno, ast.unparse(call.func))
    given, other = (_defaults(functions[arm]) for arm in (CONTROL, BASELINE))
    for name in sorted(given.keys() & other.keys()):
        if given[name] != other[name]:
            words = f'"{name}" is {given[name]} in the control and {other[name]} in the baseline'
            yield _warning(WarningCode.CONTROL_APART, line, words)


def _defaults(function: Function) -> dict[str, str]:
    arguments = function.args
    placed = arguments.args[len(arguments.args) - len(arguments.defaults) :]
    pairs = [
        *zip(placed, arguments.defaults, strict=True),
        *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True),
    ]
    return {argument.arg: ast.unparse(value) for argument, value in pairs if value is not None}
