"""That the oracle is none of the product's own judgement."""

import ast
from pathlib import Path

ALLOWED = {
    "knowngood.domain.builds.build",
    "knowngood.domain.issue",
    "knowngood.domain.message",
    "knowngood.gate.policy",
    "knowngood.domain.verdicts.verdict",
}


def test_the_oracle_takes_nothing_from_the_modules_that_decide() -> None:
    tree = ast.parse(Path(__file__).with_name("oracle.py").read_text())
    modules = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    ours = {node.module for node in modules if str(node.module).startswith(("knowngood", "tests"))}
    assert ours <= ALLOWED
    verdict = next(node for node in modules if node.module == "knowngood.domain.verdicts.verdict")
    assert [alias.name for alias in verdict.names] == ["Cell", "Judged"], "values, and nothing that judges"
    plain = [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    assert not [name for name in plain if name.startswith(("knowngood", "tests"))]
