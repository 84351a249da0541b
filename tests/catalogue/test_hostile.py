"""No signature may be slow, whatever a stranger writes."""

import json
import string
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import regex

from knowngood.app.catalogue.hostile_text import hostile_texts, is_slow, refuse_slow_signatures, took_s
from knowngood.app.catalogue.loader import read_catalogue, shipped_catalogue
from knowngood.app.catalogue.problems import CatalogueProblems
from knowngood.app.domain.timed_search import search
from tests.catalogue.given import Example
from tests.catalogue.known_redos import HARMLESS, SLOW

MEBIBYTE = 1 << 20
MOST_S = 0.5
ISSUES = read_catalogue([shipped_catalogue()]).issues
PATTERNS = {issue.signature.pattern: issue.id for issue in ISSUES if issue.signature.pattern}
ATTACKS: dict[str, dict[str, Any]] = json.loads(Path(__file__).with_name("attacks.json").read_text(encoding="utf-8"))
"""What a ReDoS checker wrote to be slow, by pattern: made by tools/attacks.py."""


def attacks_on(pattern: str) -> Iterator[str]:
    """The checker's attack strings, as long as a log may be and shorter, where more ways through it end in time; with
    what the library looks for before anything else as well.
    """
    attack = ATTACKS[pattern]
    pumps, last = attack["pumps"], attack["suffix"]
    for size in (MEBIBYTE, MEBIBYTE >> 4, MEBIBYTE >> 10) if pumps else ():
        times = (size - len(last) - sum(len(lead) for lead, _ in pumps)) // sum(len(pump) for _, pump in pumps)
        text = "".join(lead + pump * times for lead, pump in pumps) + last
        yield from (text, f"{text}\n\0{string.printable}{pattern}")


@pytest.mark.parametrize("pattern", PATTERNS, ids=PATTERNS.values())
def test_a_signature_is_known_to_the_checker_and_quick_on_what_it_wrote(pattern: str) -> None:
    assert pattern in ATTACKS, "this pattern is new: see tools/attacks.py"
    assert ATTACKS[pattern]["pumps"] or ATTACKS[pattern]["found"] in {"safe", "linear", "safe (fuzz)"}
    for text in attacks_on(pattern):
        began = time.thread_time()
        assert not search(pattern, [text]).is_late
        assert time.thread_time() - began < MOST_S


@pytest.mark.system
@pytest.mark.parametrize("pattern", SLOW.values(), ids=SLOW)
def test_a_slow_pattern_that_the_world_knows_is_refused(pattern: str) -> None:
    assert is_slow(pattern), "and a text was found that takes as long"


@pytest.mark.parametrize("pattern", HARMLESS.values(), ids=HARMLESS)
def test_a_harmless_pattern_is_accepted(pattern: str) -> None:
    assert not is_slow(pattern)
    assert all(took_s(regex.compile(pattern), text) < MOST_S for text in attacks_on(pattern))


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
        r"^\s+|\s+$",
        r"(?=(a+)+$)a",
        r"^(?:(.*)@)?(\[[^\]]*\]|[^:@/?#]*)(?::(\d*))?$",
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
