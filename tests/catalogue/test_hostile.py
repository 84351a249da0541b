"""No signature may be slow, whatever a stranger writes."""

from pathlib import Path

import pytest

from app.catalogue.hostile import hostile_texts, is_slow, refuse_slow_signatures
from app.catalogue.problems import CatalogueProblems
from app.catalogue.read import read_catalogue, shipped_catalogue
from tests.catalogue.given import Example

ISSUES = read_catalogue([shipped_catalogue()]).issues
PATTERNS = {issue.signature.pattern: issue.id for issue in ISSUES if issue.signature.pattern}


@pytest.mark.parametrize("pattern", PATTERNS, ids=PATTERNS.values())
def test_a_signature_looks_through_a_megabyte_of_hostile_text_in_half_a_second(pattern: str) -> None:
    assert not is_slow(pattern)


@pytest.mark.parametrize(
    "pattern",
    [
        r"(a+)+$b",
        r"(a|aa)+$",
        r"(?s)Unsupported: .*(once_differentiable|in skipfiles)",
        r"expected the sum .*, got .* \(tolerance 0\)",
        r"out of resource: \w[\w ,]*\s+Required: \d+",
        r"started.*\n(?:.*\n)*ended",
    ],
)
def test_a_slow_signature_is_known(pattern: str) -> None:
    assert is_slow(pattern)


def test_hostile_texts_are_as_long_as_asked_for() -> None:
    lengths = [len(make(4096)) for make in hostile_texts(r"expected the sum .*, got .*")]
    assert lengths
    assert all(2048 <= length <= 4096 for length in lengths), lengths


def test_check_names_the_file_and_the_line_of_a_slow_signature(example: Example, tmp_path: Path) -> None:
    pattern = r"expected dtype torch\.int8, got torch\.int\d+"
    slow = example.changed(
        document=(pattern, "(a+)+$b"), script=(f'SIGNATURE = r"{pattern}"', 'SIGNATURE = r"(a+)+$b"')
    )
    folder = slow.write(tmp_path)
    with pytest.raises(CatalogueProblems) as caught:
        refuse_slow_signatures([folder], read_catalogue([folder]).issues)
    (problem,) = caught.value.problems
    assert problem.file == folder / example.id / "issue.toml"
    assert slow.document.splitlines()[problem.line - 1].startswith("pattern =")
    assert "more than 0.5 s" in problem.message
