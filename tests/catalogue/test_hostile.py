"""No signature may be slow, whatever a stranger writes."""

import json
import string
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import regex

from knowngood.catalogue.hostile_text import (
    hostile_texts,
    is_slow,
    share_taken,
    slow_signatures,
    slowness,
)
from knowngood.catalogue.loader import read_catalogue
from tests.catalogue.given import Example, shipped
from tests.catalogue.known_redos import HARMLESS, SLOW

MEBIBYTE = 1 << 20
SHIPPED_TAKE = 1 / 3
"""Of what a signature may take: no load makes a sound one slow."""
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


def test_every_shipped_signature_is_known_to_the_checker_and_quick_on_what_it_wrote() -> None:
    slow, new = set(), []
    for issue in shipped().issues:
        pattern = issue.signature.pattern
        if pattern and pattern not in ATTACKS:
            new.append(issue.id)
        elif pattern:
            assert ATTACKS[pattern]["pumps"] or ATTACKS[pattern]["found"] in {"safe", "linear", "safe (fuzz)"}, issue.id
            compiled = regex.compile(pattern)
            slow |= {
                (issue.id, text[:200]) for text in attacks_on(pattern) if share_taken(compiled, text) > SHIPPED_TAKE
            }
    assert new == [], "these patterns are new: see tools/attacks.py"
    assert slow == set()


@pytest.mark.system
def test_every_shipped_signature_takes_a_third_of_what_it_may_at_most() -> None:
    """Which of them takes most is told where one takes more."""
    taken = {issue.id: slowness(issue.signature.pattern) for issue in shipped().issues if issue.signature.pattern}
    assert {name: share for name, share in taken.items() if share > SHIPPED_TAKE} == {}


@pytest.mark.system
@pytest.mark.parametrize(
    "pattern",
    [
        pytest.param(one, id=name, marks=pytest.mark.soak if at % 8 else ())
        for at, (name, one) in enumerate(SLOW.items())
    ],
)
def test_a_slow_pattern_that_the_world_knows_is_refused(pattern: str) -> None:
    assert is_slow(pattern), "and a text was found that takes as long"


@pytest.mark.parametrize("pattern", HARMLESS.values(), ids=HARMLESS)
def test_a_harmless_pattern_is_accepted(pattern: str) -> None:
    assert not is_slow(pattern)
    assert all(share_taken(regex.compile(pattern), text) < 1 for text in attacks_on(pattern))


@pytest.mark.parametrize(
    "pattern",
    [
        r"out of resource: \w[\w ,]*\s+Required: \d+",
        *(
            pytest.param(pattern, marks=pytest.mark.soak)
            for pattern in (
                r"(a+)+$b",
                r"(a|aa)+$",
                r"(?s)Unsupported: .*(once_differentiable|in skipfiles)",
                r"expected the sum .*, got .* \(tolerance 0\)",
                r"started.*\n(?:.*\n)*ended",
                r"^\s+|\s+$",
                r"(?=(a+)+$)a",
                r"^(?:(.*)@)?(\[[^\]]*\]|[^:@/?#]*)(?::(\d*))?$",
            )
        ),
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
    (problem,) = slow_signatures([folder], read_catalogue([folder]).issues)
    assert problem.file == folder / example.id / "issue.toml"
    assert slow.document.splitlines()[problem.line - 1].startswith("pattern =")
    assert "more than 50 times as long as a plain search" in problem.message
