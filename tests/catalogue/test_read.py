"""Refusals of the catalogue: where they say the trouble is, and in which words."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from knowngood.catalogue.loader import Catalogue, CatalogueProblems, FileProblem, read_catalogue
from knowngood.catalogue.script_analysis import assembled
from knowngood.domain.issue import Comparison, Device, Left, Observed, SignatureKind, Suspect
from tests.catalogue.given import Example


def _problems(*folders: Path) -> Sequence[FileProblem]:
    with pytest.raises(CatalogueProblems) as caught:
        read_catalogue(folders)
    return caught.value.problems


def _line_of(text: str, snippet: str) -> int:
    return text[: text.index(snippet)].count("\n") + 1


def test_the_example_of_the_readme_is_sound_and_becomes_an_issue(example: Example, tmp_path: Path) -> None:
    catalogue = read_catalogue([example.write(tmp_path)])

    assert isinstance(catalogue, Catalogue)
    (issue,) = catalogue.issues
    assert issue.id == "pytorch-191308"
    assert issue.signature.kind is SignatureKind.WRONG_RESULT
    assert issue.requires.device is Device.CPU
    assert issue.claims[0].dated == date(2026, 7, 28)
    assert [(arm.id, arm.exercises) for arm in issue.arms] == [
        ("control", ("eager",)),
        ("baseline", ("dynamo_graph", "inductor_cpp")),
        ("two_dimensional", ("dynamo_graph",)),
    ]
    assert [(variant.id, dict(variant.params), variant.is_reported) for variant in issue.variants] == [
        ("n2", {"n": 2}, True),
        ("n64", {"n": 64}, False),
    ]
    assert issue.script == assembled(example.script)
    assert catalogue.builds == ()


def test_what_is_left_is_read_with_its_variant_or_why_there_is_none(example: Example, tmp_path: Path) -> None:
    tables = """[[left]]
what = "vectors of 64"
variant = "n64"

[[left]]
what = "float16"
why_not = "Another row."
applies_to = ">=2.13"

[[workaround]]
"""
    (issue,) = read_catalogue([example.changed(document=("[[workaround]]\n", tables)).write(tmp_path)]).issues
    assert issue.left == (
        Left("vectors of 64", variant="n64"),
        Left("float16", why_not="Another row.", applies_to=">=2.13"),
    )


def test_how_a_value_is_compared_is_read_and_what_is_not_said_is_as_usual(example: Example, tmp_path: Path) -> None:
    tables = """[observed.first]
atol = 2
reason = "a random number"
arms = ["two_dimensional"]

[observed."a name in words"]
compare = "ignore"
reason = "names the machine"

[requires]
"""
    (issue,) = read_catalogue([example.changed(document=("[requires]\n", tables)).write(tmp_path)]).issues
    assert issue.observed == {
        "first": Observed(Comparison.CLOSE, 1e-3, 2.0, "a random number", ("two_dimensional",)),
        "a name in words": Observed(Comparison.IGNORE, reason="names the machine"),
    }
    assert issue.comparison("first", "two_dimensional").atol == 2.0
    assert issue.comparison("first", "baseline") == issue.comparison("unheard of", "baseline") == Observed()


PATTERN = r"'''expected dtype torch\.int8, got torch\.int\d+'''"
REPORT = 'url = "https://github.com/pytorch/pytorch/issues/191308"\ntitle'
REQUIRES = '[requires]\ndevice = "cpu"\n'
ANY = '[requires]\ndevice = "any"\n'
N64 = "params = { n = 64 }"
NO_CURE = 'arms = ["control", "baseline"]'

# Each row: what is put for what, a text on the line that must be named, words that must be said.
DOCUMENTS = {
    "a misspelt key": ('severity = "medium"', 'severty = "medium"', "severty =", 'did you mean "severity"?'),
    "a missing key": ('component = "Inductor C++"\n', "", "#:schema", '"component" is missing'),
    "a missing key of a table": (
        'source = "pytorch/pytorch#191308, the report"\n',
        "",
        "[[claim]]",
        '"source" is missi',
    ),
    "a misspelt key of a table": ("trade_off = ", "tradeoff = ", "tradeoff = ", 'did you mean "trade_off"?'),
    "a foreign key": (
        "timeout_s = 300",
        "timeout_s = 300\nzzz = 1",
        "zzz = 1",
        'unknown key "zzz"; known here: claim,',
    ),
    "a word out of no list": ('culprit = "torch"', 'culprit = "nobody"', "nobody", "is 'nobody'; write 'torch', 'tri"),
    "a text for a truth": ("silent = true", 'silent = "yes"', 'silent = "yes"', "'yes'; input should be a valid boo"),
    "a table for a list": ("[[link]]", "[link]", "[link]", '"link" must be a list (of tables: [[link]])'),
    "no time at all": ("timeout_s = 300", "timeout_s = 0", "timeout_s = 0", "greater than 0"),
    "a title of two lines": ('title = "Vectors of 2"', 'title = "a\\nb"', 'title = "a', "one line"),
    "a title of 121 characters": (
        'title = "Vectors of 2"',
        f'title = "{"a" * 121}"',
        'title = "aa',
        "has 121 characters",
    ),
    "a summary that tells nothing": (
        'summary = """',
        'summary = "It fails."\nx = """',
        "summary =",
        "say in 80 or more",
    ),
    "an address without https": (REPORT, 'url = "http://x.org/1"\ntitle', "http://x", "no https address"),
    "no report": ('kind = "report"', 'kind = "fix"', 'kind = "fix"', 'no link is the "report"'),
    "a link twice": (
        "[[claim]]",
        f'[[link]]\nkind = "fix"\n{REPORT} = "again"\n[[claim]]',
        f'{REPORT} = "again"',
        "linked twice",
    ),
    "a probe with a slip": ('"inductor_cpp"]', '"inductor_cxx"]', "inductor_cxx", 'did you mean "inductor_cpp"?'),
    "a probe of no kind": ('"inductor_cpp"]', '"operator:x"]', "operator:x", "operator:NAMESPACE::NAME"),
    "no probe": ('["dynamo_graph", "inductor_cpp"]', "[]", "exercises = []", "name at least one"),
    "no specifier": ('torch = ">=2.1"', 'torch = "newer"', '"newer"', "no version specifier"),
    "a capability for a CPU": (REQUIRES, '[requires]\ncompute_capability = "7.0"\n', "compute_c", 'device = "cuda"'),
    "a capability that is none": (REQUIRES, '[requires]\ncompute_capability = "sm_70"\n', "sm_70", 'such as "7.0"'),
    "a vector ISA that is none": (
        REQUIRES,
        '[requires]\nvector_isas = ["sse2"]\n',
        "vector_isas",
        '"avx2" or "avx512"',
    ),
    "a vector ISA of a GPU": (
        REQUIRES,
        '[requires]\ndevice = "cuda"\nvector_isas = ["avx2"]\n',
        "vec",
        'device = "cpu"',
    ),
    "a date in a text": ("dated = 2026-07-28", 'dated = "2026-07-28"', "dated", "valid date"),
    "an expression that is none": (PATTERN, '"(unclosed"', "pattern =", "no regular expression"),
    "an expression for everything": (PATTERN, '"x?"', "pattern =", "matches the empty text"),
    "a signature any host can print": (PATTERN, '"BackendCompilerFailed"', "pattern =", "a failure of the host"),
    "two variants of one name": ('id = "n64"', 'id = "n2" # again', "# again", 'variant "n2" is there twice'),
    "a variant for no arm": (
        N64,
        f'{N64}\narms = ["eager"]\nwhy_not = "x"',
        'arms = ["eager"]',
        "no arm is called",
    ),
    "a workaround left out without a reason": (
        N64,
        f"{N64}\n{NO_CURE}",
        "arms =",
        '"arms" leaves out two_dimensional; say in "why_not" why',
    ),
    "a workaround left out for a blank reason": (N64, f'{N64}\n{NO_CURE}\nwhy_not = " "', "arms =", "leaves out two_"),
    "a reason with nothing left out": (
        N64,
        f'{N64}\narms = ["control", "baseline", "two_dimensional"]\nwhy_not = "x"',
        "why_not =",
        "no workaround is left out",
    ),
    "a reason without arms": (N64, f'{N64}\nwhy_not = "x"', "why_not =", "no workaround is left out"),
    "two variants of the report's own": (
        N64,
        f"{N64}\nreported = true # 2",
        "true # 2",
        'variant "n2" is the report\'s own already',
    ),
    "what is left without a word why": (N64, f'{N64}\n[[left]]\nwhat = "x"', "[[left]]", "write one of the two"),
    "what is left with two of them": (
        N64,
        f'{N64}\n[[left]]\nwhat = "x"\nvariant = "n2"\nwhy_not = "x"',
        "[[left]]",
        "write one of the two",
    ),
    "what is left to no variant": (
        N64,
        f'{N64}\n[[left]]\nwhat = "x"\nvariant = "n3"',
        'variant = "n3"',
        'no variant is called "n3"; known: n2, n64',
    ),
    "any device, with Inductor": (REQUIRES, ANY, 'device = "any"', 'the baseline exercises "inductor_cpp"'),
    "any device, with a capability": (REQUIRES, f'{ANY}compute_capability = "7.0"\n', "compute_c", 'device = "cuda"'),
    "a package in other than its canonical name": (
        REQUIRES,
        '[requires]\npackage = "torch_xla"\n',
        "torch_xla",
        "canonical name",
    ),
    "a comparison of no kind": (
        REQUIRES,
        '[observed.first]\ncompare = "near"\nreason = "x"\n',
        "compare =",
        "is 'near'; write 'equal', 'close', 'at_most' or 'ignore'",
    ),
    "an amount of an issue that no amount tells": (
        REQUIRES,
        '[observed.first]\ncompare = "at_most"\nreason = "x"\n',
        "compare =",
        'compare = "at_most" is for issues of kind bigger or more_work or slower',
    ),
    "an issue that amounts tell without an amount": (
        'kind = "wrong_result"\n',
        'kind = "bigger"\n',
        'kind = "bigger"',
        "is told by amounts; write [observed.KEY]",
    ),
    "a comparison without a reason": (
        REQUIRES,
        '[observed.first]\ncompare = "ignore"\n',
        "[observed.first]",
        '"reason" is missing',
    ),
    "room where nothing is measured": (
        REQUIRES,
        '[observed.first]\ncompare = "ignore"\natol = 1\nreason = "x"\n',
        "atol =",
        '"atol" has no meaning with compare = "ignore"',
    ),
    "room without an end": (REQUIRES, '[observed.first]\natol = inf\nreason = "x"\n', "atol =", "finite number"),
    "a comparison of no arm": (
        REQUIRES,
        '[observed.first]\nreason = "x"\narms = ["control"]\n',
        "arms =",
        '"control" is no arm to compare with the control; known: baseline, two_dimensional',
    ),
    "a package that the script does not have": (
        REQUIRES,
        '[packages]\nrequires = ["torch_xla"]\n[packages."2.7"]\nrequires = ["a-b"]\n[requires]\npackage = "b"\n',
        "package =",
        '"b" is none of the issue\'s packages; known: a-b, torch-xla',
    ),
    "a parameter that is no name": ("{ n = 64 }", '{ "n-m" = 64 }', "n-m", "name of a keyword argument"),
    "a parameter that is a date": ("{ n = 64 }", "{ n = 2024-01-01 }", "n = 2024-01-01", "a text, a boolean or a numb"),
    "a parameter beyond JSON": ("{ n = 64 }", "{ n = 1000000000000000000000 }", "n = 1000", "at most 64 bits"),
    "a workaround that is no function": ('id = "two_dimensional"', 'id = "Two-D"', "Two-D", "the name of a function"),
    "a workaround without a function": (
        'id = "two_dimensional"',
        'id = "three"',
        'id = "three"',
        "no function three()",
    ),
    "a workaround without a snippet": ('body = """', 'body = "x"\ny = """', 'body = "x"', "snippet"),
    "a name every issue has": ('id = "two_dimensional"', 'id = "control"', 'id = "control"', "an arm of every issue"),
    "signals without a signal": ("[signature]", '[signature]\nsignals = ["SIGABRT"]', "signals =", "no meaning"),
    "a signal without its name": ('kind = "wrong_result"', 'kind = "signal"', "[signature]", '"signals" is missing'),
    "a signal that is none": ('kind = "wrong_result"', 'kind = "signal"\nsignals = ["ABRT"]', "ABRT", "no signal"),
    "a message without words": (
        f'"wrong_result"\npattern = {PATTERN}',
        '"message"',
        "[signature]",
        '"pattern" is empty',
    ),
    "a place to fill in": ("timeout_s = 300", "timeout_s = 300  # FILL IN: seconds", "FILL IN", "filled in: seconds"),
    "a character no database keeps": ('title = "Vectors of 2"', 'title = "a\\u0000b"', "u0000", "NUL"),
    "a requirement that is none": (REQUIRES, '[packages]\nrequires = [\n"a b"]\n', '"a b"', "no requirement"),
    "a pin on half a version": (REQUIRES, '[packages]\nrequires = ["a==1.*"]\n', "a==1", "no single version"),
    "a requirement with an extra": (REQUIRES, '[packages]\nrequires = ["a[b]==1"]\n', "a[b]", "has extras"),
    "the build's own package": (REQUIRES, '[packages]\nrequires = ["torch>=2"]\n', "torch>=2", "come from the build"),
    "a package alone, not asked for": (REQUIRES, '[packages]\nno_deps = ["a"]\n', "no_deps", '"a" is not among'),
    "a release that is none": (REQUIRES, '[packages.two]\nrequires = ["a"]\n', "[packages.two]", 'unknown key "two"'),
    "a release without packages": (REQUIRES, '[packages."2.7"]\nrequirs = []\n', "requirs", 'did you mean "requires"?'),
    "the field of a release": (REQUIRES, "[packages.per_release]\n", "[packages.per", 'such as [packages."2.7"]'),
    "no TOML": ("timeout_s = 300", "timeout_s = = 300", "= = 300", "is not TOML: Invalid value"),
    "a number too long to read": (
        "timeout_s = 300",
        f"timeout_s = {'9' * 5000}",
        "#:schema",
        "is not TOML we can read",
    ),
}


@pytest.mark.parametrize("row", DOCUMENTS)
def test_a_broken_document_is_refused_at_its_line(row: str, example: Example, tmp_path: Path) -> None:
    old, new, at, words = DOCUMENTS[row]
    broken = example.changed(document=(old, new))
    folder = broken.write(tmp_path)

    said = [problem for problem in _problems(folder) if words in problem.message]

    file = folder / "pytorch-191308" / "issue.toml"
    assert [(problem.file, problem.line) for problem in said] == [(file, _line_of(broken.document, at))]


BASELINE = "def baseline(n=2):\n    return _observe(torch.compile(_product, fullgraph=True), n)\n"
SIGNATURE = r'SIGNATURE = r"expected dtype torch\.int8, got torch\.int\d+"'

SCRIPTS = {
    "no Python": ("a = torch.ones(", "a = = torch.ones(", "a = = t", "is not Python 3.9: invalid syntax"),
    "newer Python": (BASELINE, f"{BASELINE}    match n:\n        case 2: pass\n", "match n:", "is not Python 3.9"),
    "a return in no function": (SIGNATURE, f"{SIGNATURE}\nreturn 1", "return 1", "'return' outside function"),
    "no docstring": ('"""pytorch-191308: batched', 'X = """pytorch-191308: batched', 'X = """', "has no docstring"),
    "no baseline": ("def baseline(n=2):", "def _baseline(n=2):", '"""pytorch', "defines no function baseline()"),
    "an arm nobody knows": ("def _product(a, b):", "def product(a, b):", "def product", "no workaround of issue.toml"),
    "an arm twice": (
        BASELINE,
        f"{BASELINE}\n\n{BASELINE.replace('(n=2)', '(n=4)')}",
        "def baseline(n=4)",
        "defined 2 times",
    ),
    "an arm that returns nothing": (
        "    return _observe(_product, n)",
        "    _observe(_product, n)",
        "def control",
        "never re",
    ),
    "an arm that must be waited for": ("def control(", "async def control(", "async def", "is async"),
    "a parameter without a default": ("def control(n=2)", "def control(n)", "def control", "without a default"),
    "a parameter by position": ("def control(n=2)", "def control(n=2, /)", "def control", "by position"),
    "a variant's parameter not taken": (
        "def control(n=2):",
        "def control():\n    n = 2",
        "def control",
        'n of variant "n2"',
    ),
    "an assert": (BASELINE, f"{BASELINE}    assert n\n", "assert n", "raise WrongResult"),
    "an assertion of a library": (
        "    if result",
        "    torch.testing.assert_close(a, b)\n    if result",
        "assert_cl",
        "raise Wr",
    ),
    "an exit": ("    if result", "    raise SystemExit(0)\n    if result", "raise SystemExit", "it never exits"),
    "an exit by name": ("    if result", "    exit(0)\n    if result", "exit(0)", "it never exits"),
    "an import of ours": (
        "import torch\n",
        "import torch\nimport knowngood.domain\n",
        "import knowngood.domain",
        "which is ours",
    ),
    "a relative import": ("import torch\n", "import torch\nfrom . import x\n", "from . import", "stands alone"),
    "an import of everything": ("import torch\n", "import torch\nfrom math import *\n", "from math", "import names"),
    "a package not asked for": ("import torch\n", "import torch\nimport einops\n", "import einops", "under [packages]"),
    "a package not asked for, inside": (
        "    if result",
        "    import einops\n    if result",
        "import einops",
        "under [pa",
    ),
    "a name nobody defines": ("    if result", "    os.getpid()\n    if result", "os.getpid", '"os" is not defined'),
    "no signature": (SIGNATURE, "", '"""pytorch', "must define SIGNATURE"),
    "a signature that is computed": (SIGNATURE, 'SIGNATURE = "a".upper()', "SIGNATURE =", "as a literal"),
    "another signature": (SIGNATURE, 'SIGNATURE = r"expected"', "SIGNATURE =", "not the pattern of issue.toml"),
    "variables that are computed": (SIGNATURE, f"{SIGNATURE}\nENV = dict(a=1)", "ENV =", "must be a literal"),
    "variables of no arm": (SIGNATURE, f'{SIGNATURE}\nENV = {{"x": {{}}}}', "ENV =", 'names "x", which is no arm'),
    "the worker's own cache": (SIGNATURE, f'{SIGNATURE}\nENV = {{"control": {{"HOME": "/"}}}}', "ENV =", "sets HOME"),
    "a variable without a name": (SIGNATURE, f'{SIGNATURE}\nENV = {{"control": {{"A=B": "1"}}}}', "ENV =", "'A=B'"),
    "no marked exception": (
        "class WrongResult(Exception):",
        "class _Wrong(Exception):",
        '"""pytorch',
        "must define class",
    ),
    "a mark that is no exception": (
        "class WrongResult(Exception):",
        "class WrongResult:",
        "class Wr",
        "must define class",
    ),
    "a mark never raised": ("raise WrongResult(", "raise ValueError(", "class WrongResult", "is never raised"),
    "a place to fill in": ("    if result", "    # FILL IN: more\n    if result", "# FILL IN", "filled in: more"),
    "no opening": ("    import os, sys\n", "    import sys, os\n", "import torch", "the standalone opening"),
    "an import above the opening": (
        'if __name__ == "__main__":  # Standalone, first',
        'import torch\nif __name__ == "__main__":  # Standalone, first',
        "import torch",
        "would exit with 1",
    ),
    "a tail of one's own": (
        '_second_half.name, "exec"',
        '_second_half.name, "eval"',
        '"eval"',
        "must end with the three lines",
    ),
    "something behind the tail": (
        '_second_half.name, "exec"))\n',
        '_second_half.name, "exec"))\nX = 1\n',
        "X = 1",
        "must end with the three lines",
    ),
    "a guard of one's own": (
        "\n\ndef control",
        '\nif __name__ == "__main__":\n    X = 1\n\n\ndef control',
        'if __name__ == "__main__":\n    X',
        "a worker never runs it",
    ),
}


@pytest.mark.parametrize("row", SCRIPTS)
def test_a_broken_script_is_refused_at_its_line(row: str, example: Example, tmp_path: Path) -> None:
    old, new, at, words = SCRIPTS[row]
    broken = example.changed(script=(old, new))
    folder = broken.write(tmp_path)

    said = [problem for problem in _problems(folder) if words in problem.message]

    file = folder / "pytorch-191308" / "repro.py"
    assert [(problem.file, problem.line) for problem in said] == [(file, _line_of(broken.script, at))]


def test_every_problem_is_told_at_once(example: Example, tmp_path: Path) -> None:
    broken = example.changed(
        document=('severity = "medium"', 'severty = "medium"'), script=("    if result", "    exit(0)\n    if result")
    )
    folder = broken.changed(document=('source = "pytorch/pytorch#191308, the report"\n', "")).write(tmp_path)
    (folder / "builds.toml").write_text("[[build]]\n")
    (folder / "empty-1").mkdir()

    files = [problem.file.relative_to(folder).as_posix() for problem in _problems(folder)]

    assert files == sorted(files)
    assert {file: files.count(file) for file in files} == {
        "builds.toml": 3,
        "empty-1/issue.toml": 1,
        "empty-1/repro.py": 1,
        "pytorch-191308/issue.toml": 3,
        "pytorch-191308/repro.py": 1,
    }


def test_a_problem_prints_as_file_line_and_sentence(example: Example, tmp_path: Path) -> None:
    folder = example.changed(document=("silent = true", "silent = 1")).write(tmp_path)

    with pytest.raises(CatalogueProblems) as caught:
        read_catalogue([folder])

    assert str(caught.value) == f'{folder}/pytorch-191308/issue.toml:11: "silent" is 1; input should be a valid boolean'


def test_a_teams_own_folder_stands_beside_the_shipped_one(example: Example, tmp_path: Path) -> None:
    shipped = example.write(tmp_path / "shipped")
    own = Example(example.document, example.script, "ours-1").write(tmp_path / "own")

    assert [issue.id for issue in read_catalogue([shipped, own]).issues] == ["ours-1", "pytorch-191308"]


def test_an_issue_stands_in_the_catalogue_once(example: Example, tmp_path: Path) -> None:
    first, second = example.write(tmp_path / "a"), example.write(tmp_path / "b")

    (problem,) = _problems(first, second)

    assert problem.file == second / "pytorch-191308" / "issue.toml"
    assert problem.message == f'issue "pytorch-191308" is there already: {first / "pytorch-191308"}'


def test_a_build_stands_in_the_catalogue_once(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "builds.toml").write_text(
            '[[build]]\ntorch = "2.6.0"\norigin = "default"\nas_of = 2025-02-28\n'
        )

    (problem,) = _problems(tmp_path / "a", tmp_path / "b")

    assert (problem.file, problem.line) == (tmp_path / "b" / "builds.toml", 1)
    assert problem.message == f"torch-2.6.0 is there already: {tmp_path / 'a' / 'builds.toml'}"


def test_the_folders_name_is_the_id(example: Example, tmp_path: Path) -> None:
    folder = Example(example.document, example.script, "PyTorch 1").write(tmp_path)

    (problem,) = _problems(folder)

    assert '"PyTorch 1" is no id' in problem.message


def test_folders_that_are_no_issues_are_left_alone(example: Example, tmp_path: Path) -> None:
    folder = example.write(tmp_path)
    for name in ("evidence", "__pycache__", ".git"):
        (folder / name).mkdir()

    assert len(read_catalogue([folder]).issues) == 1


def test_a_folder_that_is_not_there_is_a_problem(tmp_path: Path) -> None:
    (problem,) = _problems(tmp_path / "nowhere")

    assert problem.message == "is no folder of issues: No such file or directory"


@pytest.mark.parametrize(
    ("content", "line", "words"),
    [
        (b'title = "a"\nsummary = "\xff"\n', 2, "is not UTF-8"),
        (b"x" * (1 << 20) + b"y", 1, "at most 1048576"),
        (b"a = " + b"[" * 5000, 1, "is not TOML"),
        (b'title = "a', 1, "is not TOML: Unterminated string"),
        (b'title = "a"\n\n[link\n', 3, "is not TOML"),
    ],
    ids=["bytes that are no text", "a file far too large", "brackets without end", "an open text", "an open header"],
)
def test_a_file_that_cannot_be_read_is_a_problem_at_its_line(
    example: Example, tmp_path: Path, content: bytes, line: int, words: str
) -> None:
    folder = example.write(tmp_path)
    (folder / "pytorch-191308" / "issue.toml").write_bytes(content)

    (problem,) = _problems(folder)

    assert problem.line == line
    assert words in problem.message


def test_a_script_with_windows_line_ends_is_the_same_script(example: Example, tmp_path: Path) -> None:
    plain = read_catalogue([example.write(tmp_path / "a")]).issues[0]
    windows = example.write(tmp_path / "b")
    file = windows / "pytorch-191308" / "repro.py"
    file.write_bytes(file.read_bytes().replace(b"\n", b"\r\n"))

    assert read_catalogue([windows]).issues[0] == plain


def test_a_script_that_has_the_standalone_block_itself_is_the_same_script(example: Example, tmp_path: Path) -> None:
    plain = read_catalogue([example.write(tmp_path / "a")]).issues[0]
    whole = replace(example, script=assembled(example.script))

    assert whole != example
    assert read_catalogue([whole.write(tmp_path / "b")]).issues[0] == plain


@pytest.mark.parametrize(
    ("package", "module"),
    [
        ("deepmd-kit==3.1.0", "deepmd"),
        ("torch_xla=={torch}", "torch_xla.core.xla_model"),
        ("torch-xla=={torch}", "torch_xla"),
        ("flash-linear-attention==0.1", "fla.ops"),
        ("einops", "einops"),
        ("ruamel.yaml>=0.18", "ruamel.yaml"),
    ],
)
def test_a_packages_modules_may_be_imported(package: str, module: str, example: Example, tmp_path: Path) -> None:
    asked = ("[requires]", f'[packages]\nrequires = ["{package}"]\n\n[requires]')
    folder = example.changed(document=asked, script=("import torch\n", f"import torch\nimport {module}\n")).write(
        tmp_path
    )

    (issue,) = read_catalogue([folder]).issues

    assert issue.packages.requirements == (package,)


def test_a_module_of_another_name_than_its_package_is_named(example: Example, tmp_path: Path) -> None:
    asked = ("[requires]", '[packages]\nrequires = ["odd-name==1.0"]\nimports = ["other"]\n\n[requires]')
    folder = example.changed(document=asked, script=("import torch\n", "import torch\nimport other.part\n")).write(
        tmp_path
    )

    assert read_catalogue([folder]).issues


def test_packages_of_a_release_replace_the_others(example: Example, tmp_path: Path) -> None:
    text = '[packages]\nrequires = ["deepmd-kit==3.0.0"]\nno_deps = ["deepmd-kit"]\nmutates = true\n'
    text += '[packages."2.7"]\nrequires = ["deepmd-kit==3.1.0"]\n\n[requires]'

    (issue,) = read_catalogue([example.changed(document=("[requires]", text)).write(tmp_path)]).issues

    assert issue.packages.requirements == ("deepmd-kit==3.0.0",)
    assert issue.packages.per_release == {"2.7": ("deepmd-kit==3.1.0",)}
    assert issue.packages.no_deps == ("deepmd-kit",)
    assert issue.packages.mutates


def test_variables_of_an_arm_come_from_the_script(example: Example, tmp_path: Path) -> None:
    script = (SIGNATURE, f'{SIGNATURE}\nENV = {{"baseline": {{"TORCH_LOGS": "output_code"}}}}')

    (issue,) = read_catalogue([example.changed(script=script).write(tmp_path)]).issues

    assert [dict(arm.env) for arm in issue.arms] == [{}, {"TORCH_LOGS": "output_code"}, {}]


def test_a_hang_says_when_it_is_one(example: Example, tmp_path: Path) -> None:
    hanging = example.changed(document=('kind = "wrong_result"', 'kind = "hang"'))
    assert ["HANG_S" in problem.message for problem in _problems(hanging.write(tmp_path / "a"))] == [True]

    timed = hanging.changed(script=(SIGNATURE, f"{SIGNATURE}\nHANG_S = 30"))
    assert read_catalogue([timed.write(tmp_path / "b")]).issues


PROOF = '[proof]\nsuspect = ["_product"]'
SMOKE = ("timeout_s = 300", "timeout_s = 300\nsmoke = true")


@pytest.mark.parametrize(
    ("asked", "at", "words"),
    [
        ('[requires]\npython = ">=3.12"\n', "python =", 'leave "python" out'),
        ('[requires]\npackage = "a"\n', "package =", 'leave "package" out'),
        ('[packages]\nrequires = ["a"]\n[requires]\n', "[packages]", "leave its packages out"),
    ],
    ids=["of one Python", "of a package", "with packages"],
)
def test_a_smoke_row_asks_nothing_of_its_environment(
    asked: str, at: str, words: str, example: Example, tmp_path: Path
) -> None:
    broken = example.changed(document=SMOKE).changed(document=(REQUIRES, asked))
    (problem,) = _problems(broken.write(tmp_path))

    assert problem.line == _line_of(broken.document, at)
    assert words in problem.message


def test_smoke_rows_may_be_several(example: Example, tmp_path: Path) -> None:
    smoke = example.changed(document=SMOKE)
    smoke.write(tmp_path)
    Example(smoke.document, smoke.script, "pytorch-2").write(tmp_path)

    assert [issue.is_smoke for issue in read_catalogue([tmp_path]).issues] == [True, True]


def test_a_workaround_is_left_out_of_a_variant_for_a_reason(example: Example, tmp_path: Path) -> None:
    changed = example.changed(document=(N64, f'{N64}\n{NO_CURE}\nwhy_not = "It multiplies vectors of 2."'))

    (issue,) = read_catalogue([changed.write(tmp_path)]).issues

    assert [(variant.arms, variant.why_not) for variant in issue.variants] == [
        ((), ""),
        (("control", "baseline"), "It multiplies vectors of 2."),
    ]


def test_a_fault_that_no_compiler_makes_may_be_on_any_device(example: Example, tmp_path: Path) -> None:
    changed = example.changed(document=(REQUIRES, ANY)).changed(
        document=('["dynamo_graph", "inductor_cpp"]', '["dynamo_graph"]')
    )

    (issue,) = read_catalogue([changed.write(tmp_path)]).issues

    assert issue.requires.device is Device.ANY


@pytest.mark.parametrize("packages", ["", '[packages]\nrequires = ["torch_xla=={torch}"]\n'])
def test_an_issue_is_one_of_whoever_has_a_package(packages: str, example: Example, tmp_path: Path) -> None:
    changed = example.changed(document=(REQUIRES, f'{packages}[requires]\npackage = "torch-xla"\n'))

    (issue,) = read_catalogue([changed.write(tmp_path)]).issues

    assert issue.requires.package == "torch-xla"


def test_the_vector_isas_that_a_result_depends_on_are_read(example: Example, tmp_path: Path) -> None:
    document = (REQUIRES, '[requires]\nvector_isas = ["avx2", "avx512"]\n')

    (issue,) = read_catalogue([example.changed(document=document).write(tmp_path)]).issues

    assert issue.requires.vector_isas == ("avx2", "avx512")


def test_a_needed_capability_is_a_pair_of_numbers(example: Example, tmp_path: Path) -> None:
    document = (REQUIRES, '[requires]\ndevice = "cuda"\ncompute_capability = "10.0"\n')

    (issue,) = read_catalogue([example.changed(document=document).write(tmp_path)]).issues

    assert issue.requires.compute_capability == (10, 0)


def test_the_suspect_is_read(example: Example, tmp_path: Path) -> None:
    text = '[proof]\nsuspect = ["Model.forward", "_layer.<locals>.<lambda>"]\nraises = true'
    (issue,) = read_catalogue([example.changed(document=(PROOF, text)).write(tmp_path)]).issues

    assert issue.suspect == Suspect(("Model.forward", "_layer.<locals>.<lambda>"), raises=True)


def test_a_suspect_that_is_no_name_is_refused(example: Example, tmp_path: Path) -> None:
    (problem,) = _problems(example.changed(document=(PROOF, '[proof]\nsuspect = ["model(x)"]')).write(tmp_path))

    assert '"model(x)" is not the name of a function, a kernel or a class' in problem.message
