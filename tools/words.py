"""`make words`: the Chinese catalogue (gettext) holds every text that templates and pages say, and is compiled.

A text is a sentence of a rule (`SENTENCES`), what stands in `t("...")` of a template, in `say("...")`, `Term("...")` or
`Example(.., "...")` of code, or in a table whose name ends with WORDS, MEANINGS, CAUSES or HEADINGS.
New texts are added without a translation (tests fail until they have one), those that nobody says any more are dropped.
Running it twice changes nothing.
"""

import argparse
import ast
import io
import re
from collections.abc import Iterator, Mapping
from enum import StrEnum
from functools import cache
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po
from jinja2 import Environment
from jinja2.ext import extract_from_ast

from knowngood.ask.explain.answer import Why
from knowngood.domain.issue import NOT_REVIEWED, Culprit, Fidelity, LinkKind, Severity, Status
from knowngood.domain.message import SENTENCES
from knowngood.web.html.i18n import CATALOGUES, DOMAIN

ROOT = Path(__file__).parents[1]
TEMPLATES = ROOT / "app/knowngood/web/templates"
# What speaks English alone: rules, feeds, reports of the gate.
_ENGLISH = re.compile(r"domain/verdicts/|gate/(?!watchlists/)|share/atom\.py|ask/explain/matcher\.py")
SOURCE = CATALOGUES / f"zh/LC_MESSAGES/{DOMAIN}.po"
COMPILED = SOURCE.with_suffix(".mo")

# Said by value where no table has them: the state of a thread, a caveat, what a cell without extra packages is
# compared with.
_ALSO = {
    "app/knowngood/domain/issue.py": ("open", "closed", NOT_REVIEWED),
}
_SAYING = {"say": 0, "Term": 0, "Example": 1}  # which argument is the text
_TABLES = re.compile(r"(WORDS|MEANINGS|CAUSES|HEADINGS)$")
# Shown by their own values: `t(page.issue.severity.value)`.
_ENUMERATIONS: tuple[type[StrEnum], ...] = (Culprit, Fidelity, LinkKind, Severity, Status, Why)

Place = tuple[str, int]


@cache
def texts_said() -> Mapping[str, list[Place]]:
    """Every text that pages say, with the places that say it (file, line)."""
    said: dict[str, list[Place]] = {}
    for path in sorted(TEMPLATES.glob("*.html")):
        _gather(said, path, _in_template(path.read_text(encoding="utf-8")))
    for path in sorted((ROOT / "app/knowngood").rglob("*.py")):
        if _ENGLISH.match(path.relative_to(ROOT / "app/knowngood").as_posix()):
            continue
        _gather(said, path, _in_python(ast.parse(path.read_text(encoding="utf-8"))))
    _gather(said, ROOT / "app/knowngood/domain/message.py", ((text, 0) for text in SENTENCES.values() if text))
    for one in _ENUMERATIONS:
        _gather(
            said,
            ROOT / f"{one.__module__.removeprefix('knowngood.').replace('.', '/')}.py",
            ((member.value, 0) for member in one),
        )
    for name, texts in _ALSO.items():
        _gather(said, ROOT / name, ((text, 0) for text in texts))
    return said


def read() -> Catalog:
    with SOURCE.open("rb") as file:
        return read_po(file, locale="zh", domain=DOMAIN, abort_invalid=True)


def compiled(catalogue: Catalog) -> bytes:
    buffer = io.BytesIO()
    write_mo(buffer, catalogue)
    return buffer.getvalue()


def written(catalogue: Catalog) -> bytes:
    """Without line numbers, which change with every edit."""
    buffer = io.BytesIO()
    write_po(buffer, catalogue, width=120, sort_by_file=True, include_lineno=False)
    return buffer.getvalue()


def brought_up_to_date(old: Catalog) -> Catalog:
    new = Catalog(
        locale="zh",
        domain=DOMAIN,
        project="Known Good",
        version=DOMAIN,
        msgid_bugs_address="the project's issues",
        last_translator="Known Good",
        language_team="Chinese",
        header_comment="# Known Good's pages in Chinese. `make words` gathers new texts and compiles this file.",
        creation_date=old.creation_date,
        revision_date=old.revision_date,
        fuzzy=False,
    )
    for text, places in texts_said().items():
        kept = old.get(text)
        new.add(text, kept.string if kept else "", locations=places)
    return new


def _gather(said: dict[str, list[Place]], path: Path, found: Iterator[tuple[str, int]]) -> None:
    name = path.relative_to(ROOT).as_posix()
    for text, line in found:
        said.setdefault(text, []).append((name, line))


def _in_template(source: str) -> Iterator[tuple[str, int]]:
    for line, _, told in extract_from_ast(Environment().parse(source), ("t",)):  # noqa: S701 - parsed, not rendered
        text = told[0] if isinstance(told, tuple) else told
        if text:
            yield text, line


def _in_python(tree: ast.Module) -> Iterator[tuple[str, int]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            at = _SAYING.get(_name(node.func), len(node.args))
            yield from (found for argument in node.args[at : at + 1] for found in _texts(argument))
    for statement in tree.body:
        target = statement.targets[0] if isinstance(statement, ast.Assign) else getattr(statement, "target", None)
        if isinstance(target, ast.Name) and _TABLES.search(target.id):
            value = getattr(statement, "value", None)
            for one in value.values if isinstance(value, ast.Dict) else [value]:
                if isinstance(one, ast.expr):
                    yield from (found for inner in ast.walk(one) for found in _texts(inner))


def _name(called: ast.expr) -> str:
    return called.attr if isinstance(called, ast.Attribute) else called.id if isinstance(called, ast.Name) else ""


def _texts(node: ast.AST) -> Iterator[tuple[str, int]]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value:
        yield node.value, node.lineno
    if isinstance(node, ast.IfExp):
        yield from (*_texts(node.body), *_texts(node.orelse))


def main() -> None:
    parser = argparse.ArgumentParser(description="Bring the Chinese catalogue up to date and compile it.")
    parser.parse_args()
    catalogue = brought_up_to_date(read())
    SOURCE.write_bytes(written(catalogue))
    COMPILED.write_bytes(compiled(read()))
    wanting = [str(message.id) for message in catalogue if message.id and not message.string]
    for text in wanting:
        print(f"no Chinese yet: {text}")
    print(f"{len(catalogue)} texts, {len(wanting)} without Chinese: {SOURCE.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
