"""What is printed gives a CI system no commands, whoever wrote the texts in it."""

import json
import subprocess
import sys
from xml.etree import ElementTree as ET

import pytest

from knowngood.cli.encoding import defused, one_printable_line

PRINTS = """
import sys
import click
from rich.console import Console
from knowngood.cli.encoding import write_what_can_be_read
write_what_can_be_read()
text = sys.argv[1]
print(text)
sys.stderr.write(text)
sys.stdout.writelines([text, text])
click.echo(text)
click.echo(text, err=True)
Console(highlight=False).print(text, markup=False)
"""


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("::error::x", ": :error::x"),
        ("a::b and std::move", "a::b and std::move"),
        ("told\n  ::set-output name=x::y\n", "told\n  : :set-output name=x::y\n"),
        ("a\r::error::x", "a\r: :error::x"),
        ("a\u2028\xa0::error::x", "a\u2028\xa0: :error::x"),
        ("\u200b::error::x", "\u200b: :error::x"),
        (":\u200b:error::x", ": \u200b:error::x"),
        (":::", ": ::"),
        ("torch ##[error]x", "torch ## [error]x"),
        ("##vso[task.setvariable]x", "## vso[task.setvariable]x"),
        ("#\0#[error]x", "#\0# [error]x"),
        ("###[error]x", "### [error]x"),
        ("## Heading [link](x)", "## Heading [link](x)"),
        ("# one\n## two\n", "# one\n## two\n"),
    ],
)
def test_what_a_ci_system_would_obey_is_spaced(text: str, printed: str) -> None:
    assert defused(text) == printed
    assert defused(printed) == printed


@pytest.mark.parametrize("text", ["##[error]x", "a ##vso[task]", "::error::x", "\u200b##[x]", "###[x]"])
def test_what_programs_read_holds_the_same(text: str) -> None:
    for whole in ({"why": text}, [text]):
        written = defused(json.dumps(whole, indent=1, ensure_ascii=False))
        assert json.loads(written) == whole
        assert "##[" not in written
    element = ET.Element("failure", message=text)
    element.text = f"\n{text}\n"
    xml = defused(ET.tostring(element, encoding="unicode"))
    read = ET.fromstring(xml)  # noqa: S314 - of our own making
    assert (read.get("message"), read.text) == (text, element.text)
    assert "##[" not in xml
    assert "\n::" not in xml


@pytest.mark.parametrize("text", ["::error::x", "a\n::error::x", "##[error]x"])
def test_every_way_of_printing_goes_through_it(text: str) -> None:
    done = subprocess.run([sys.executable, "-c", PRINTS, text], capture_output=True, text=True, check=True)
    assert done.stdout == f"{text}\n{text}{text}{text}\n{text}\n".replace(text, defused(text))
    assert done.stderr == f"{text}{text}\n".replace(text, defused(text))


def test_a_sentence_is_one_line_of_what_can_be_seen() -> None:
    assert one_printable_line("a\r\n::error::b\u2028c\x1b[1m \u202e") == "a ::error::b c\ufffd[1m \ufffd"


@pytest.mark.parametrize("piece", ["\n", " ", "#", "##", ":", "\r:", "##a", "#\0", "\u200b"])
def test_long_texts_take_no_longer_than_their_length(piece: str) -> None:
    """A quadratic pattern would take a quarter of an hour."""
    assert len(defused(piece * 500_000)) >= 500_000
